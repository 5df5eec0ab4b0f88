"""Excel workbooks: sheets read as columns, and files written with the same bytes every time."""

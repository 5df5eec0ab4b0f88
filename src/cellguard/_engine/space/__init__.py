"""The structure of a table: reduction, echelon forms, networks, grids of cells."""

"""The job file: its model, its reader, and the checks of its content."""

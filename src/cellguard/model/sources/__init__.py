"""Where tables come from: equations, frames of cells, files."""

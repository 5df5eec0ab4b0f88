"""The closest table: interior point, Newton systems, distances, directions."""

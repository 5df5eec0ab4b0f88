"""The parts of a table: structure, contents, protection. :class:`cellguard.Table` adds where it comes from."""

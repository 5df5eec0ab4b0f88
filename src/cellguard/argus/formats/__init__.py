"""The file formats of tau-ARGUS: microdata, ready tables, metadata, hierarchies, decisions and batches.

This package only parses and writes. :mod:`cellguard.argus` interprets a batch.
"""

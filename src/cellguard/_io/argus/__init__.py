"""The files of tau-ARGUS: microdata, ready tables, their metadata, hierarchies, decisions and batches.

Everything here only parses and writes. What a batch means is decided by :mod:`cellguard.argus`.
"""

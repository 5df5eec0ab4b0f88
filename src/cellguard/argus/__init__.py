"""Batches of tau-ARGUS, run by cellguard's own methods.

Every method name of a batch maps to one of ours, with a note that says which; what a batch asks for
and we do not have is an error that names the line.
"""

from cellguard.argus.batch import BatchOutcome, Result, read_table_of_batch, run_batch

__all__ = ["BatchOutcome", "Result", "read_table_of_batch", "run_batch"]

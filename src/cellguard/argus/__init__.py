"""Run tau-ARGUS batches with cellguard's own methods.

Every method name of a batch maps to one of ours, with a note that says which. If a batch uses a feature
that cellguard does not have, an error names the line.
"""

from cellguard.argus.batch import BatchOutcome, Result, read_table_of_batch, run_batch

__all__ = ["BatchOutcome", "Result", "read_table_of_batch", "run_batch"]

"""Jobs: one file says what an office does every month, one call does it.

A job is read with all its mistakes at once (:func:`read_job`), planned (:func:`plan`) and run (:func:`run`):
tabulate, flag, protect, audit, write. Nothing that fails the audit is written; a run that is killed
leaves no release at all, or a whole one.
"""

from cellguard.publish.model import Job, job_schema
from cellguard.publish.read import JobError, JobFile, read_job

__all__ = ["Job", "JobError", "JobFile", "job_schema", "read_job"]

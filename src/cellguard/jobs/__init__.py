"""Jobs: one file describes a release, and one call makes it.

A job is read (:func:`read_job`, which reports all mistakes at once), planned (:func:`plan`) and run (:func:`run`):
tabulate, flag, protect, audit, write. Nothing that fails the audit is written; a run that is killed
leaves either no release or a complete one.
"""

from cellguard.jobs.definition.model import Job, build_job_schema
from cellguard.jobs.definition.read import JobError, JobFile, read_job

__all__ = ["Job", "JobError", "JobFile", "build_job_schema", "read_job"]

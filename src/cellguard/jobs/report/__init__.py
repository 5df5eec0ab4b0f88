"""The report: one self-contained page that a reviewer can read and sign, without network access.

There are two versions of the same content. The internal one shows everything. The public one shows what is
published and how it was checked, and nothing from which a withheld value could be inferred: no sum of
suppressed values (the cost of a pattern is one), no level, no range, no parameter of a rule.
"""

from cellguard.jobs.report.content import Content
from cellguard.jobs.report.page import render_report, write_report

__all__ = ["Content", "render_report", "write_report"]

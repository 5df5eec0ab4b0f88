"""The report: one page that a reviewer can read and sign, without network and without scripts from elsewhere.

Two versions of the same content: the internal one shows everything; the public one shows what is
published and how it was checked, and nothing from which a withheld number could be computed: no sum of
suppressed values (the cost of a pattern is one), no level, no range, no parameter of a rule.
"""

from cellguard.publish.report.content import Content
from cellguard.publish.report.page import render_report, write_report

__all__ = ["Content", "render_report", "write_report"]

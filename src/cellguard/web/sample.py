"""The sample project: invented enterprises with two hierarchies, ready to be protected."""

from __future__ import annotations

from cellguard.web.places import free_name_in_project
from cellguard.web.projects import Project, Projects

__all__ = ["write_sample"]

_NAME = "sample"
_RECORDS = 3000
_JOB = """\
# Turnover of 3,000 invented enterprises, to try the page with.
name = "turnover"
title = "Turnover of enterprises by region and activity (invented data)"

[data]
file = "enterprises.csv"
value = "turnover"
holding = "holding"        # enterprises of one holding know each other's figures

[dimensions.region]
hierarchy = "regions.hrc"

[dimensions.activity]
hierarchy = "activities.hrc"

[[rules]]
rule = "p_percent"         # no attacker may estimate the largest contribution to within 10%
p = 10

[[rules]]
rule = "min_frequency"     # every published number has at least three contributors
n = 3
percent = 10

[method]
name = "suppress"
rounds = 10                # a fixed number: every run gives the same release

[output]
folder = "release"
formats = ["csv", "xlsx"]
"""


def write_sample(projects: Projects) -> Project:
    """Make the sample project under a name that is free; return it."""
    from cellguard.datasets.survey import write_survey

    folder = projects.root.folder / free_name_in_project(projects.root.folder, _NAME)
    folder.mkdir(mode=0o700)
    write_survey(folder, n=_RECORDS, job=_JOB)
    return Project(projects.root, folder)

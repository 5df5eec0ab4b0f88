"""The bodies of HTTP requests; unknown keys are refused."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "CellDecision",
    "Checking",
    "Chosen",
    "Files",
    "HierarchyFile",
    "Limit",
    "NewProject",
    "OneCell",
    "Removal",
    "Sections",
    "Signing",
    "Source",
    "TableListFile",
    "Window",
]  # fmt: skip


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class NewProject(_Body):
    """A project to create."""

    name: str


class Removal(_Body):
    """A project to remove; `signers` are the people who signed its releases."""

    signers: list[str] = Field(default=[], max_length=100)


class TableListFile(_Body):
    """A list of tables to be published."""

    file: str


class HierarchyFile(_Body):
    """A file that says how the codes of a dimension nest: relative to the folder of the server."""

    file: str
    dimension: str | None = None
    """The dimension; None for every dimension whose codes the file has."""


class Chosen(_Body):
    """A data file: relative to the folder of the server."""

    file: str


class Files(_Body):
    """Data files to begin with: relative to the folder of the server. Several make a publication."""

    files: list[str] = Field(min_length=1, max_length=200)


class Sections(_Body):
    """Sections of the job; null removes one."""

    sections: dict[str, Any]


class CellDecision(_Body):
    """A decision about one cell."""

    codes: dict[str, str]
    decision: Literal["protect", "publish", "withhold", "none"]


class Limit(_Body):
    """For a comparison: time limit of each method in seconds. A run takes its limit from the job."""

    time_limit_s: float | str | None = None


class Source(_Body):
    """Which table: a release by its name, or the table before protection."""

    release: str | None = None


class Window(Source):
    """A part of a table: codes of two dimensions, and one code of each other dimension."""

    view: int = 0
    rows: int
    """The dimension of the rows."""
    columns: int | None = None
    """The dimension of the columns; None if there is only one column."""
    at: dict[int, int] = {}
    """Dimension -> its code, if it is not the total."""
    down: list[int]
    across: list[int] = []

    @property
    def width(self) -> int:
        """Number of columns."""
        return max(len(self.across), 1)


class Signing(_Body):
    """The signer's name and remarks."""

    release: str
    who: str
    remark: str = ""
    read: bool = False
    manifest: str | None = None
    """Fingerprint of the release that the page shows; None if a script does not say."""


class TableVerdict(_Body):
    """The checker's verdict on one table."""

    approved: bool
    comment: str = ""


class Checking(_Body):
    """The verdict of the second person, who checks a signed release."""

    release: str
    who: str
    remark: str = ""
    tables: dict[str, TableVerdict] = Field(max_length=1000)


class OneCell(Source):
    """A cell, by the indices of its codes."""

    view: int = 0
    codes: dict[int, int]

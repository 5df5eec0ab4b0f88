"""What the HTTP interface is asked: the bodies of its requests, which hold nothing that is not known."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "CellDecision", "Chosen", "Files", "Limit", "NewProject", "OneCell", "Sections", "Signing", "Source", "Window",
]  # fmt: skip


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class NewProject(_Body):
    """A project to be made."""

    name: str


class Chosen(_Body):
    """A data file: relative to the folder of the server."""

    file: str


class Files(_Body):
    """Data files to begin with: relative to the folder of the server. Several make a publication."""

    files: list[str] = Field(min_length=1, max_length=200)


class Sections(_Body):
    """Sections of the job; null takes one away."""

    sections: dict[str, Any]


class CellDecision(_Body):
    """What is decided of one cell by hand."""

    codes: dict[str, str]
    decision: Literal["protect", "publish", "withhold", "none"]


class Limit(_Body):
    """Of a comparison: seconds for each method. A run takes its limit from the job."""

    time_limit_s: float | str | None = None


class Source(_Body):
    """Which table: a release by its name, or the table as it is."""

    release: str | None = None


class Window(Source):
    """A part of a table: codes of two dimensions, and one code of every other."""

    view: int = 0
    rows: int
    """The dimension of the rows."""
    columns: int | None = None
    """The dimension of the columns; None where there is one column only."""
    at: dict[int, int] = {}
    """Dimension -> its code, where that is not the total."""
    down: list[int]
    across: list[int] = []

    @property
    def width(self) -> int:
        """How many columns it has."""
        return max(len(self.across), 1)


class Signing(_Body):
    """Who signs, and what he says."""

    release: str
    who: str
    remark: str = ""
    read: bool = False


class OneCell(Source):
    """A cell by the places of its codes."""

    view: int = 0
    codes: dict[int, int]

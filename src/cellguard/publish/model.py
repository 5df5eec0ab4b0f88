"""The job file: what an office asks for, as typed as TOML allows.

Only shapes are checked here; whether files exist and choices fit together is the business of
:mod:`cellguard.publish.check`. Every field's description is what editors show (``cellguard init --schema``).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from cellguard.methods.registry import METHODS
from cellguard.publish.method_sections import METHOD_SECTIONS, MethodName, MethodSection, MethodUnion
from cellguard.publish.rule_sections import Rules, RuleSection
from cellguard.publish.sections import Codes, Percent, Positive, Seconds, Section

__all__ = [
    "AttackSection", "AttackerSection", "CompareSection", "DataSection", "DimensionSection", "IndicatorSection",
    "Job", "LevelsSection", "LimitsSection", "MethodSection", "OutputSection", "PrioritySection", "RuleSection",
    "TableSection", "job_schema",
]  # fmt: skip

Format = Literal["csv", "parquet", "xlsx", "sdmx", "px", "jj"]


class DataSection(Section):
    """Where the records are and which column plays which part; or a table that is already added up."""

    file: str | None = None
    """Records: CSV or Parquet (wildcards allowed), relative to the job file."""
    template: str | None = None
    """With records: a file whose rows list the cells to be published; its tables are found from it."""
    table: str | None = None
    """A table instead of records: .jj, .jj.gz, or .csv or .parquet with its description beside it."""
    value: str | None = None
    """Column to add up; left out, records are counted."""
    weight: str | None = None
    """Column of sampling weights."""
    holding: str | None = None
    """Column that says which records belong to one holding: rules see holdings, not records."""
    shadow: str | None = None
    """Column whose contributions the rules look at, instead of the value's."""
    waiver: str | None = None
    """Column of truth values: contributors who consented to publication."""
    request: str | None = None
    """Column that says who asked for protection."""
    request_codes: list[str] = ["1", "2"]
    """Codes of the first and the second kind of request."""
    cost: str | None = None
    """Column to add up as the information lost with a cell; the value unless given."""
    skip_missing: bool = False
    """Leave out records without a value; they are refused otherwise."""
    standalone: bool = False
    """Records without a holding stand alone; they are refused otherwise."""
    known_zeros: bool = True
    """Everybody knows which cells have no contributor; they are published, and hide nothing."""
    decimal: Literal[".", ","] = "."
    """Decimal sign of numbers in text files."""
    decimals: Annotated[int, Field(ge=0, le=9)] | None = None
    """Decimals of the table: weighted records are rounded to them before they are added up; the data's unless given."""
    encoding: str | None = None
    """Encoding of text files; UTF-8, else Latin-1, unless given."""


class DimensionSection(Section):
    """One dimension: a column of codes and how they add up."""

    hierarchy: str | dict[str, Any] | list[Any] | None = None
    """A file (.hrc, .txt, .csv, .parquet), or the tree itself; left out, all codes add up to the total."""
    levels: Annotated[list[str], Field(min_length=2)] | None = None
    """Columns from coarse to fine: of the data, the last of them the dimension; or of the hierarchy's file."""
    digits: Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1)] | None = None
    """Instead of a hierarchy: digits of each level of the codes; [1, 2] puts 417 below 4 below the total."""
    total: str | None = None
    """Code of the total, where the hierarchy does not name it."""
    missing: list[str] = []
    """Codes for "not known"; records without a code get the first of them."""


class IndicatorSection(Section):
    """Something that is measured, where the publication shows several."""

    name: str
    """How tables and equations call it."""
    value: str | None = None
    """Column to add up; left out, records are counted."""
    shadow_of: str | None = None
    """Another indicator: where that is sensitive this one is, too, with the same share of its value as level."""


class TableSection(Section):
    """One of several linked tables, protected together."""

    dimensions: list[str] = Field(min_length=1)
    """Its dimensions; all margins are published."""
    name: str | None = None
    """How the report calls it."""
    file: str | None = None
    """A table that is already added up: CSV or Parquet, one row per cell; it is made from the records unless given."""
    value: str | None = None
    """Of a file: its column of values; `value` unless given."""
    sheet: str | None = None
    """Of a workbook: the sheet; the first unless given."""
    count: str | None = None
    """Of a file: its column with the numbers of contributors; the column of values itself for a table of counts."""
    top: list[str] = []
    """Of a file: its columns of the largest contributions; where it shows several indicators, to the first of them."""
    columns: dict[str, str] = {}
    """Of a file: dimension, or key of `where` -> its column, where it has another name."""
    total: dict[str, str] = {}
    """Of a file: dimension -> its code of the total, where it is not the dimension's or hierarchy's."""
    where: dict[str, str] = {}
    """The part of the population it covers: column or dimension -> code."""
    hierarchies: dict[str, str | dict[str, Any] | list[Any]] = {}
    """Dimension -> how its codes add up in this table, where that differs: a file, or the tree itself."""
    indicators: list[str] = []
    """What it shows; every indicator unless given."""
    priority: Positive = 1.0
    """How much more it costs to withhold or change a cell of this table."""

    @property
    def title(self) -> str:
        """How it is called: by its name, or by its dimensions."""
        return self.name or " by ".join(self.dimensions)


class PrioritySection(Section):
    """Cells that should stay whole, or must be published."""

    only: Codes = {}
    """Dimension -> codes: the cells that have one of these codes in each; every cell unless given."""
    tables: list[str] = []
    """Cells of these tables only."""
    indicators: list[str] = []
    """Cells of these indicators only."""
    priority: Positive | None = None
    """How much more it costs to withhold or change them."""
    publish: bool = False
    """They are published as they are, whatever it costs: headline figures."""
    published: str | None = None
    """A file of cells that were published before, a column for each dimension: they are known, and published again."""
    value: str = "value"
    """Of that file: its column of values; cells without one were withheld."""


class LevelsSection(Section):
    """Protection levels, where they shall differ from what the rules say."""

    lower_ratio: Percent = 1.0
    """Lower level as a share of the upper one; 0.25 keeps the truth away from the middle of its range."""
    lower: Percent | None = None
    """Lower level of every sensitive cell as a share of its value, instead of the rules'."""
    upper: Percent | None = None
    """Upper level of every sensitive cell as a share of its value, instead of the rules'."""
    sliding: Percent | None = None
    """Width that the range of every sensitive cell must have, as a share of its value."""
    width: Positive | None = None
    """Width that the range of every sensitive cell must have, in units, instead of all other levels: for counts."""
    smallest_width: Positive | None = None
    """What a sensitive cell asks for that no rule has measured: of a count so many whole numbers (3 unless given), of
    a magnitude a range of this share of its value (0.1 unless given)."""


class AttackerSection(Section):
    """Somebody who knows his own contribution, or several who tell each other."""

    name: str
    """How the internal report calls him; never published."""
    knows: list[dict[str, Any]] = Field(min_length=1)
    """What he contributed: {cell = {region = "N1"}, contribution = 40.0}, as often as needed."""
    levels: Annotated[list[Percent], Field(min_length=2, max_length=2)] | None = None
    """Lower and upper level against him, as shares of what the others contributed to his cells."""


class AttackSection(Section):
    """Attacks on the release by somebody who knows how it was made."""

    scenario: Literal["B1", "B2", "B3", "C", "decimals", "matching"]
    """The scenario: castro2012's and decimals for adjusted tables, matching for suppressed tables of counts."""
    replications: Annotated[int, Field(ge=1)] = 10
    """How often the attacker draws what he does not know."""


class CompareSection(Section):
    """The other methods on the same table, for the report."""

    methods: list[MethodName] = list(METHODS)
    """Which methods."""
    time_limit_s: Seconds = 60.0
    """For each of them."""


class LimitsSection(Section):
    """What a run may use."""

    time_limit_s: Seconds = 600.0
    """For the method. A run that reaches it may give another result on another machine."""
    threads: Annotated[int, Field(ge=1)] | None = None
    """Processor cores, all unless given: for reading the records, for the search, and for clusters of a publication."""
    memory: str | None = None
    """Memory for reading the records, such as "4GB"."""


class OutputSection(Section):
    """What is written, and where."""

    folder: str = "release"
    """Folder, relative to the job file; it gets two folders, public and internal (only its owner reads that)."""
    formats: list[Format] = ["csv"]
    """csv, parquet, xlsx, sdmx (SDMX-CSV) and px hold the release; jj the confidential table, internally."""
    layout: str | None = None
    """A workbook of the publisher's: a copy of it, filled with the release, is written too."""
    dataflow: str | None = None
    """sdmx: what the column DATAFLOW says, such as "ESTAT:TURNOVER(1.0)"; made from the name unless given."""
    report: bool = True
    """Write the two reports, public and internal."""
    witnesses: bool = True
    """Write the tables that prove safety (confidential), for cellguard verify."""
    mark_primary: bool = False
    """Tell in public files which withheld cells are sensitive themselves. Of a count that says that it is small."""


class Job(Section):
    """A job: data, tables, rules, method, outputs."""

    model_config = ConfigDict(title="cellguard job")

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._ -]{0,99}$")] = "table"
    """Name of the release: names its files and titles its report."""
    title: str | None = None
    """Title of the report; the name unless given."""
    seed: Annotated[int, Field(ge=0)] = 0
    """The same seed gives the same release. Keep it secret where the method draws random numbers."""
    unconfirmed: list[str] = []
    """Guesses of cellguard init that nobody has confirmed; nothing is published as long as there are any."""
    data: DataSection = DataSection()
    dimensions: dict[str, DimensionSection] = {}
    """Column -> how its codes add up."""
    tables: list[TableSection] = []
    """Linked tables, protected together; one with all dimensions unless given."""
    indicators: list[IndicatorSection] = []
    """What the tables measure, where it is more than one value."""
    equations: list[str] = []
    """What holds between indicators in every cell: "turnover = domestic + exports"."""
    tolerance: Percent = 1e-6
    """Values of a cell that tables share may differ by this share, as rounding makes them."""
    priorities: list[PrioritySection] = []
    """Cells that should stay whole, must be published, or were published before."""
    rules: list[Rules] = []
    """Which cells are sensitive: those that one of the rules flags."""
    levels: LevelsSection = LevelsSection()
    method: MethodUnion = METHOD_SECTIONS["suppress"]()
    attackers: list[AttackerSection] = []
    """Everybody the release must withstand besides the external attacker and the respondents."""
    insiders: bool = True
    """Respondents who are alone or one of two in a cell, and holdings in several, are attackers too."""
    nothing_sensitive: Literal["stop", "publish"] = "stop"
    """What to do when no cell is sensitive: stop, or publish the table because that may be."""
    attack: AttackSection | None = None
    compare: CompareSection | None = None
    limits: LimitsSection = LimitsSection()
    output: OutputSection = OutputSection()

    @property
    def is_publication(self) -> bool:
        """Whether it publishes more than linked tables of one value from the records."""
        return bool(self.indicators or self.equations or self.data.template) or any(
            entry.file is not None or entry.where or entry.hierarchies or entry.priority != 1.0 for entry in self.tables
        )


def job_schema() -> dict[str, Any]:
    """Return the JSON schema of job files, for editors."""
    out = Job.model_json_schema()
    out["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    return out

"""The job file: the description of a release, as strictly typed as TOML allows.

Only shapes are checked here; whether files exist and choices fit together is checked by
:mod:`cellguard.jobs.definition.check`. Editors show the description of each field (``cellguard init --schema``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import ConfigDict, Field

from cellguard.jobs.definition.attack_section import AttackSection
from cellguard.jobs.definition.method_sections import METHOD_SECTIONS, MethodName, MethodSection, MethodUnion
from cellguard.jobs.definition.rule_sections import Rules, RuleSection
from cellguard.jobs.definition.sections import (
    Amount,
    Codes,
    FileName,
    Percent,
    Positive,
    Ratio,
    Seconds,
    Section,
    Share,
)
from cellguard.methods.limits import LONGEST_LIMIT_S, MOST_THREADS
from cellguard.methods.registry import METHODS
from cellguard.release.formats.registry import FORMATS

__all__ = [
    "AttackSection",
    "AttackerSection",
    "CompareSection",
    "DataSection",
    "DerivedSection",
    "DimensionSection",
    "IndicatorSection",
    "Job",
    "LedgerSection",
    "LevelsSection",
    "LimitsSection",
    "MethodSection",
    "OutputSection",
    "PrioritySection",
    "RuleSection",
    "TableSection",
    "build_job_schema",
]  # fmt: skip

if TYPE_CHECKING:
    Format = str
else:  # the names registered when the model is built: the schema, the web page and the checks list them
    Format = Literal[tuple(FORMATS)]


class DataSection(Section):
    """Where the records are and what each column means; or a ready table."""

    file: FileName | None = None
    """Records: CSV or Parquet (wildcards allowed), relative to the job file."""
    template: FileName | None = None
    """With records: a file whose rows list the cells to be published; the tables are derived from it."""
    table: FileName | None = None
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
    """Column that marks contributors who requested protection."""
    request_codes: list[str] = ["1", "2"]
    """Codes of the first and the second kind of request."""
    cost: str | None = None
    """Column to add up as the information lost with a cell; default: the value."""
    skip_missing: bool = False
    """Leave out records without a value; otherwise they are refused."""
    standalone: bool = False
    """Treat each record without a holding as its own holding; otherwise such records are refused."""
    known_zeros: bool = True
    """Attackers know which cells have no contributor; these cells are published, and cannot protect others."""
    decimal: Literal[".", ","] = "."
    """Decimal sign of numbers in text files."""
    decimals: Annotated[int, Field(ge=0, le=9)] | None = None
    """Decimals of the table: weighted records are rounded to them before they are added up; default: the data's."""
    encoding: str | None = None
    """Encoding of text files; default: UTF-8, otherwise Latin-1."""


class DimensionSection(Section):
    """One dimension: a column of codes and how they add up."""

    hierarchy: FileName | dict[str, Any] | list[Any] | None = None
    """A file (.hrc, .txt, .csv, .parquet), or the tree itself; left out, all codes add up to the total."""
    levels: Annotated[list[str], Field(min_length=2)] | None = None
    """Columns from coarse to fine: of the data, the last of them the dimension; or of the hierarchy's file."""
    digits: Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1)] | None = None
    """Instead of a hierarchy: digits of each level of the codes; [1, 2] puts 417 below 4 below the total."""
    total: str | None = None
    """Code of the total, where the hierarchy does not name it."""
    missing: list[str] = []
    """Codes for "not known"; records without a code get the first of them."""
    leading_zeros: bool = False
    """The codes of the records lost leading zeros: 7 is the hierarchy's 07, where it has no 7 and one such code."""
    names_respondents: bool = False
    """Confirms that codes may name single respondents; otherwise a dimension where most do is refused."""


class IndicatorSection(Section):
    """A measured variable, where the publication shows several."""

    name: str
    """Its name in tables and equations."""
    value: str | None = None
    """Column to add up; left out, records are counted."""
    shadow_of: str | None = None
    """Another indicator: where it is sensitive, this one is too, with the same share of its value as level."""


class TableSection(Section):
    """One of several linked tables, protected together."""

    dimensions: list[str] = Field(min_length=1)
    """Its dimensions; all margins are published."""
    name: str | None = None
    """Its name in the report."""
    file: FileName | None = None
    """A ready table: CSV or Parquet, one row per cell; default: made from the records."""
    value: str | None = None
    """For a file: its column of values; default: `value`."""
    sheet: str | None = None
    """For a workbook: the sheet; default: the first."""
    count: str | None = None
    """For a file: its column with the number of contributors; for a table of counts, the column of values itself."""
    top: list[str] = []
    """For a file: its columns of the largest contributions; with several indicators, those to the first."""
    columns: dict[str, str] = {}
    """For a file: dimension, or key of `where` -> its column, where the name differs."""
    total: dict[str, str] = {}
    """For a file: dimension -> its code of the total, where it differs from the dimension's or hierarchy's."""
    where: dict[str, str] = {}
    """The part of the population it covers: column or dimension -> code."""
    hierarchies: dict[str, FileName | dict[str, Any] | list[Any]] = {}
    """Dimension -> how its codes add up in this table, where that differs: a file, or the tree itself."""
    indicators: list[str] = []
    """The indicators it shows; default: all."""
    priority: Positive = 1.0
    """How much more it costs to withhold or change a cell of this table."""

    @property
    def title(self) -> str:
        """Its name, or its dimensions if it has none."""
        return self.name or " by ".join(self.dimensions)


class PrioritySection(Section):
    """Cells that should be published unchanged, or must be."""

    only: Codes = {}
    """Dimension -> codes: the cells that have one of these codes in each; default: every cell."""
    tables: list[str] = []
    """Cells of these tables only."""
    indicators: list[str] = []
    """Cells of these indicators only."""
    priority: Positive | None = None
    """How much more it costs to withhold or change them."""
    publish: bool = False
    """Publish them unchanged, regardless of the cost: headline figures."""
    published: FileName | None = None
    """A file of cells published earlier, with a column per dimension: they are known, and published again."""
    value: str = "value"
    """Column of values in that file; cells without a value were withheld."""


class LevelsSection(Section):
    """Protection levels, where they differ from those of the rules."""

    lower_ratio: Ratio = 1.0
    """Lower level as a share of the upper one; 0.25 keeps the truth away from the middle of its range."""
    lower: Share | None = None
    """Lower level of every sensitive cell as a share of its value, instead of the rules'."""
    upper: Share | None = None
    """Upper level of every sensitive cell as a share of its value, instead of the rules'."""
    sliding: Share | None = None
    """Width that the range of every sensitive cell must have, as a share of its value."""
    width: Positive | None = None
    """Width that the range of every sensitive cell must have, in units, instead of all other levels: for counts."""
    smallest_width: Positive | None = None
    """Width required for a sensitive cell that no rule has measured: for a count this many integers (default 3),
    for a magnitude this share of its value (default 0.1)."""


class AttackerSection(Section):
    """A respondent who knows their own contributions, or several respondents who share their knowledge."""

    name: str
    """Name of the attacker in the internal report; never published."""
    knows: list[dict[str, Any]] = Field(min_length=1)
    """Known contributions, as a list of entries such as {cell = {region = "N1"}, contribution = 40.0}."""
    levels: Annotated[list[Ratio], Field(min_length=2, max_length=2)] | None = None
    """Lower and upper level against this attacker, as shares of the other contributions to these cells."""


class CompareSection(Section):
    """Other methods to run on the same table, for the report."""

    methods: list[MethodName] = list(METHODS)
    """Which methods."""
    time_limit_s: Seconds = 60.0
    """Time limit for each method."""


class LimitsSection(Section):
    """Resources that a run may use."""

    time_limit_s: Annotated[float, Field(ge=0, le=LONGEST_LIMIT_S, allow_inf_nan=False)] = 600.0
    """Time limit for the method. A run that reaches it may give a different result on another machine."""
    threads: Annotated[int, Field(ge=1, le=MOST_THREADS)] | None = None
    """Processor cores (default: all): for reading the records, for the search, and for clusters of a publication."""
    memory: str | None = None
    """Memory for the run, such as "4GB": for reading the records; a large job that needs more is refused."""
    scheduler: str | None = None
    """Address of a Dask scheduler whose workers protect the clusters of a publication, such as "tcp://10.0.0.5:8786"."""


class LedgerSection(Section):
    """Earlier releases, recorded in the ledger. With a period, all linked ones are protected together."""

    again: bool = False
    """Publish a table again, or publish cells of an earlier release differently, although attackers may know both."""
    folder: FileName | None = None
    """Folder of the ledger, where several jobs share one; the folder of the job unless given."""
    office: str = ""
    """The office that the ledger belongs to; the ledger of another one is refused."""
    period: str = ""
    """Reference period: 2025, 2025Q1, 2025-03, or a span such as 2025-01..2025-06."""
    population: str = ""
    """The population; releases about different populations are not linked."""
    additive: bool = False
    """Values of periods add up: quarters to years, months to cumulative sums. Not for stocks."""
    sums: dict[str, list[str]] = {}
    """Further sums of periods: total -> parts."""
    tolerance: Amount = 0.0
    """By how many units the sum of periods may differ from the total."""
    revision_percent: Percent | None = None
    """Largest revision of a value, in per cent of the earlier one; without it no value may have changed."""
    prior_percent: Percent | None = None
    """Attackers know each value within this percentage of the preceding period's."""
    correspondence: dict[str, dict[str, str]] = {}
    """Dimension -> earlier code -> code now, for codes that changed; an empty text where there is none."""
    reopen: bool = False
    """Publish cells that were withheld earlier and are not sensitive any more."""
    accept: bool = False
    """Accept as known the cells that earlier releases alone make impossible to protect."""

    @property
    def remembers(self) -> bool:
        """Whether the release is protected together with earlier ones, and recorded with its content."""
        return bool(self.period or self.population or self.folder)


class DerivedSection(Section):
    """A statistic that is published with the table: its figures are audited, coarsened or withheld with it."""

    name: Annotated[str, Field(min_length=1)]
    """Name of the statistic."""
    kind: Literal["mean", "ratio", "share", "growth", "index", "total"]
    """One cell over another (mean, ratio, share), over that of another period (growth, index), or a sum of cells."""
    of: Codes = {}
    """The cells for which it is published: dimension -> code or codes."""
    by: dict[str, str] = {}
    """Codes that the denominator has in place of the numerator's."""
    period: str = ""
    """Period of the denominator; for growth, the preceding one unless given."""
    decimals: Annotated[int, Field(ge=-9, le=9)] = 1
    """Decimals of the figures; -2 means hundreds."""
    factor: Positive = 1.0
    """What the ratio is multiplied by; shares, growth rates and indices are percentages anyway."""


class OutputSection(Section):
    """The output files and their folder."""

    folder: FileName = "release"
    """Folder, relative to the job file; it gets two folders, public and internal (readable by its owner only)."""
    formats: list[Format] = ["csv"]
    """csv, parquet, xlsx, sdmx (SDMX-CSV) and px hold the release; jj holds the confidential table and is internal."""
    layout: FileName | None = None
    """A workbook template; a copy filled with the release is also written."""
    dataflow: str | None = None
    """sdmx: content of the column DATAFLOW, such as "ESTAT:TURNOVER(1.0)"; default: derived from the name."""
    report: bool = True
    """Write the two reports, public and internal."""
    witnesses: bool = True
    """Write the tables that prove safety (confidential), for cellguard verify."""
    row_order: Literal["canonical", "input"] = "canonical"
    """Order of rows in public files: by dimension and code, or as in the input. Input sorted by value reveals sizes."""
    mark_primary: bool = False
    """Mark in public files which withheld cells are sensitive. For a count, this reveals that it is small."""


class Job(Section):
    """A job: data, tables, rules, method, outputs."""

    model_config = ConfigDict(title="cellguard job")

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._ -]{0,99}$")] = "table"
    """Name of the release; used in file names and as the report's title."""
    title: str | None = None
    """Title of the report; default: the name."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the search. Refused where the method protects by random draws: a seed is not a secret; see method.key."""
    unconfirmed: list[str] = []
    """Guesses of cellguard init that no user has confirmed; nothing is published while there are any."""
    data: DataSection = DataSection()
    dimensions: dict[str, DimensionSection] = {}
    """Column -> how its codes add up."""
    tables: list[TableSection] = []
    """Linked tables, protected together; default: one table with all dimensions."""
    indicators: list[IndicatorSection] = []
    """The measured variables, where there is more than one."""
    equations: list[str] = []
    """Equations between indicators that hold in every cell: "turnover = domestic + exports"."""
    different: list[Annotated[list[str], Field(min_length=2, max_length=2)]] = []
    """Pairs of names that look alike but mean different things: [["origin", "target"]]. Otherwise a value that one
    publishes and the other withholds is refused."""
    tolerance: Share = 1e-6
    """Largest difference, as a share, between the values of a cell in several tables; rounding causes differences."""
    priorities: list[PrioritySection] = []
    """Cells that should or must be published unchanged, or were published earlier."""
    rules: list[Rules] = []
    """Which cells are sensitive: those that one of the rules flags."""
    levels: LevelsSection = LevelsSection()
    method: MethodUnion = METHOD_SECTIONS["suppress"]()
    attackers: list[AttackerSection] = []
    """Described attackers that the release must resist, besides the external attacker and the respondents."""
    insiders: bool = True
    """Treat respondents as attackers too: each knows their contribution to every cell that contains it."""
    nothing_sensitive: Literal["stop", "publish"] = "stop"
    """What to do when no cell is sensitive: stop, or publish the table."""
    attack: AttackSection | None = None
    compare: CompareSection | None = None
    limits: LimitsSection = LimitsSection()
    ledger: LedgerSection = LedgerSection()
    derived: list[DerivedSection] = []
    """Statistics that are published with the table: means, shares, ratios, growth rates, indices."""
    output: OutputSection = OutputSection()

    @property
    def is_publication(self) -> bool:
        """Whether the job publishes more than linked tables of one value from the records."""
        return bool(self.indicators or self.equations or self.data.template) or any(
            entry.file is not None or entry.where or entry.hierarchies or entry.priority != 1.0 for entry in self.tables
        )


def build_job_schema() -> dict[str, Any]:
    """Return the JSON schema of job files, for editors."""
    out = Job.model_json_schema()
    out["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    return out

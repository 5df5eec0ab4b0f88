"""The job file: what an office asks for, as typed as TOML allows.

Only shapes are checked here; whether files exist and choices fit together is the business of
:mod:`cellguard.publish.check`. Every field's description is what editors show (``cellguard init --schema``).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "AttackSection",
    "AttackerSection",
    "CompareSection",
    "DataSection",
    "DimensionSection",
    "IndicatorSection",
    "Job",
    "LevelsSection",
    "LimitsSection",
    "MethodSection",
    "OutputSection",
    "RuleSection",
    "TableSection",
    "schema",
]

Format = Literal["csv", "parquet", "xlsx", "jj"]
MethodName = Literal["suppress", "adjust", "intervals", "round", "perturb"]
Weights = Literal["table", "unit", "inverse", "value", "sqrt", "log"]
Codes = dict[str, str | list[str]]
Percent = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, strict=True)


class DataSection(_Section):
    """Where the records are and which column plays which part; or a table that is already added up."""

    file: str | None = None
    """Records: CSV or Parquet (wildcards allowed), relative to the job file."""
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


class DimensionSection(_Section):
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


class IndicatorSection(_Section):
    """Something that is measured, where the publication shows several."""

    name: str
    """How tables and equations call it."""
    value: str | None = None
    """Column to add up; left out, records are counted."""
    shadow_of: str | None = None
    """Another indicator: where that is sensitive this one is, too, with the same share of its value as level."""


class TableSection(_Section):
    """One of several linked tables, protected together."""

    dimensions: list[str] = Field(min_length=1)
    """Its dimensions; all margins are published."""
    name: str | None = None
    """How the report calls it."""
    file: str | None = None
    """A table that is already added up: CSV or Parquet, one row per cell; it is made from the records unless given."""
    value: str | None = None
    """Of a file: its column of values; `value` unless given."""
    count: str | None = None
    """Of a file: its column with the numbers of contributors."""
    top: list[str] = []
    """Of a file: its columns of the largest contributions."""
    columns: dict[str, str] = {}
    """Of a file: dimension -> its column, where it has another name."""
    total: dict[str, str] = {}
    """Of a file: dimension -> its code of the total, where it is not the hierarchy's."""
    where: dict[str, str] = {}
    """The part of the population it covers: column or dimension -> code."""
    indicators: list[str] = []
    """What it shows; every indicator unless given."""
    priority: Positive = 1.0
    """How much more it costs to withhold or change a cell of this table."""


class RuleSection(_Section):
    """A rule that makes cells sensitive."""

    rule: Literal["p_percent", "dominance", "prior_posterior", "min_frequency", "zero", "request", "manual", "a_priori"]
    """Which rule."""
    p: Positive | None = None
    """p_percent and prior_posterior: how closely, in per cent, the largest contribution may be estimated."""
    q: Positive | None = None
    """prior_posterior: how closely, in per cent, an attacker knew it before."""
    n: Annotated[int, Field(ge=1)] | None = None
    """dominance: how many contributors; min_frequency: the least number that is safe."""
    k: Annotated[float, Field(gt=0, le=100)] | None = None
    """dominance: share of the total, in per cent, that the n largest may hold."""
    coalition: Annotated[int, Field(ge=1)] | None = None
    """p_percent and prior_posterior: how many contributors work together."""
    percent: Percent | None = None
    """min_frequency, request, manual and a_priori: protection level in per cent of the value; unless given 10, and
    20 for cells marked by hand; counts below a minimum keep a width of n whole numbers instead."""
    upper: Percent | None = None
    """zero: upper protection level, in units of the value."""
    first: Annotated[float, Field(ge=0, le=100)] | None = None
    """request: share of the total, in per cent, for the first kind of request."""
    second: Annotated[float, Field(ge=0, le=100)] | None = None
    """request: the same for the second kind."""
    min_frequency: Percent | None = None
    """request: fewer contributors than this are flagged whatever the share."""
    cells: list[dict[str, str]] | None = None
    """manual: cells by their codes; dimensions that are left out are at their total."""
    file: str | None = None
    """a_priori: the file of decisions (tau-ARGUS .hst)."""
    tables: list[str] = []
    """The rule holds for these tables only."""
    indicators: list[str] = []
    """The rule holds for these indicators only."""
    only: Codes = {}
    """Dimension -> codes: the rule holds for these only."""
    excluding: Codes = {}
    """Dimension -> codes: the rule holds for all others."""


class LevelsSection(_Section):
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


class MethodSection(_Section):
    """How the table is protected."""

    name: MethodName = "suppress"
    """suppress, adjust, intervals, round or perturb."""
    rounds: Annotated[int, Field(ge=0)] | None = None
    """suppress: so many rounds of improvement and no more: the same work on every machine, without a proof."""
    search: Literal["auto", "heuristic", "exact"] | None = None
    """suppress: how the pattern is searched; unless given auto, with a proof where one is found in the time, and
    heuristic where rounds are given."""
    resist: Literal["matching"] | None = None
    """suppress: withstand an attacker who knows the algorithm; for two-way tables of counts. Keep the seed secret."""
    norm: Literal["l1", "l2", "linf", "l12"] | None = None
    """adjust: which distance from the truth is made least; l1 unless given."""
    senses: Literal["upper", "lower", "key", "optimal"] | None = None
    """adjust: which way sensitive cells go; by a secret key unless given."""
    surplus: Percent | None = None
    """adjust: what stays possible for a sensitive cell, in widths of its levels; 1 unless given, 0 stops there."""
    whole: bool | None = None
    """adjust: true publishes whole numbers, false any; unless given, numbers with as many decimals as the true ones."""
    keep: list[str | list[str] | dict[str, str]] | None = None
    """adjust: what stays as it is: "total", a dimension or a list of them (their margin), or the codes of a cell."""
    repair: Literal["senses", "relations", "none"] | None = None
    """adjust: when no table fits, flip senses (unless given), let fixed cells change, or give up."""
    base: Positive | None = None
    """round and perturb: the base; unless given, the least usual one that leaves room for every level."""
    step: Annotated[int, Field(ge=1)] | None = None
    """round: cells move by less than this number of bases; the least possible unless given."""
    position: Literal["narrowest", "random"] | None = None
    """intervals: random keeps the truth away from the middle, at a price; narrowest unless given."""
    gap: Annotated[float, Field(ge=0, lt=1)] | None = None
    """Stop when proven this close to the best."""
    weights: Weights = "table"
    """Information lost per cell: the table's (its values, or the cost column), or by the value."""


class AttackerSection(_Section):
    """Somebody who knows his own contribution, or several who tell each other."""

    name: str
    """How the internal report calls him; never published."""
    knows: list[dict[str, Any]] = Field(min_length=1)
    """What he contributed: {cell = {region = "N1"}, contribution = 40.0}, as often as needed."""
    levels: Annotated[list[Percent], Field(min_length=2, max_length=2)] | None = None
    """Lower and upper level against him, as shares of what the others contributed to his cells."""


class AttackSection(_Section):
    """Attacks on the release by somebody who knows how it was made."""

    scenario: Literal["B1", "B2", "B3", "C", "decimals", "matching"]
    """The scenario: castro2012's and decimals for adjusted tables, matching for suppressed tables of counts."""
    replications: Annotated[int, Field(ge=1)] = 10
    """How often the attacker draws what he does not know."""


class CompareSection(_Section):
    """The other methods on the same table, for the report."""

    methods: list[MethodName] = ["suppress", "adjust", "intervals", "round", "perturb"]
    """Which methods."""
    time_limit_s: Seconds = 60.0
    """For each of them."""


class LimitsSection(_Section):
    """What a run may use."""

    time_limit_s: Seconds = 600.0
    """For the method. A run that reaches it may give another result on another machine."""
    threads: Annotated[int, Field(ge=1)] | None = None
    """Processor cores for reading the records."""
    memory: str | None = None
    """Memory for reading the records, such as "4GB"."""


class OutputSection(_Section):
    """What is written, and where."""

    folder: str = "release"
    """Folder, relative to the job file; it gets two folders, public and internal (only its owner reads that)."""
    formats: list[Format] = ["csv"]
    """csv, parquet and xlsx hold the release; jj the confidential table, in the internal folder."""
    report: bool = True
    """Write the two reports, public and internal."""
    witnesses: bool = True
    """Write the tables that prove safety (confidential), for cellguard verify."""
    mark_primary: bool = False
    """Tell in public files which withheld cells are sensitive themselves. Of a count that says that it is small."""


class Job(_Section):
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
    rules: list[RuleSection] = []
    """Which cells are sensitive: those that one of the rules flags."""
    levels: LevelsSection = LevelsSection()
    method: MethodSection = MethodSection()
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


def schema() -> dict[str, Any]:
    """Return the JSON schema of job files, for editors."""
    out = Job.model_json_schema()
    out["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    return out

"""``[[rules]]`` of a job: one section per rule, which knows its keys and the rule it stands for."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import Field

from cellguard.data.rules import Dominance, Manual, MinFrequency, PPercent, PriorPosterior, Request, Rule, Zero
from cellguard.nouns.table import Table
from cellguard.publish.sections import Codes, Percent, Positive, Section

__all__ = ["RULE_SECTIONS", "AprioriSection", "ManualSection", "RuleSection", "Rules"]

Share = Annotated[float, Field(ge=0, le=100)]
Number = Annotated[int, Field(ge=1)]


class RuleSection(Section):
    """A rule that makes cells sensitive."""

    makes: ClassVar[type[Rule]]
    """The rule, whose parameters are the section's other keys."""
    rule: str
    """Which rule."""
    tables: list[str] = []
    """The rule holds for these tables only."""
    indicators: list[str] = []
    """The rule holds for these indicators only."""
    only: Codes = {}
    """Dimension -> codes: the rule holds for these only."""
    excluding: Codes = {}
    """Dimension -> codes: the rule holds for all others."""

    def to_rule(self, table: Table) -> Rule | None:
        """Return the rule for a table; None where single cells are decided instead."""
        rule = self.plain(table)
        return None if rule is None else rule.only(**self.only).excluding(**self.excluding)

    def plain(self, table: Table | None) -> Rule | None:  # noqa: ARG002 - cells named by hand are those of a table
        """Return the rule without saying where it holds."""
        return self.makes(**self.given)

    @property
    def given(self) -> dict[str, Any]:
        """What the section says about the rule itself, and not about where it holds."""
        own = self.model_fields_set - set(RuleSection.model_fields)
        return {key: value for key in own if (value := getattr(self, key)) is not None}

    @property
    def largest(self) -> int:
        """How many of the largest contributions the rule looks at: two at least."""
        rule = self.plain(None)
        return 2 if rule is None else max(2, rule.units)


class PPercentSection(RuleSection):
    """Nobody may estimate the largest contribution to within p per cent."""

    makes: ClassVar[type[Rule]] = PPercent
    rule: Literal["p_percent"]
    """Which rule."""
    p: Positive
    """How closely, in per cent, the largest contribution may be estimated."""
    coalition: Number | None = None
    """How many contributors work together."""


class DominanceSection(RuleSection):
    """The n largest contributors may not hold more than k per cent of a cell."""

    makes: ClassVar[type[Rule]] = Dominance
    rule: Literal["dominance"]
    """Which rule."""
    n: Number
    """How many contributors."""
    k: Annotated[float, Field(gt=0, le=100)]
    """Share of the total, in per cent, that the n largest may hold."""


class PriorPosteriorSection(RuleSection):
    """Who knew a contribution to within q per cent may not get to know it to within p per cent."""

    makes: ClassVar[type[Rule]] = PriorPosterior
    rule: Literal["prior_posterior"]
    """Which rule."""
    p: Positive
    """How closely, in per cent, the largest contribution may be estimated."""
    q: Positive
    """How closely, in per cent, an attacker knew it before."""
    coalition: Number | None = None
    """How many contributors work together."""


class MinFrequencySection(RuleSection):
    """A cell needs at least n contributors."""

    makes: ClassVar[type[Rule]] = MinFrequency
    rule: Literal["min_frequency"]
    """Which rule."""
    n: Number
    """The least number that is safe."""
    percent: Percent | None = None
    """Protection level in per cent of the value; 10 unless given. Counts below n keep a width of n whole numbers."""


class ZeroSection(RuleSection):
    """Cells with contributors whose value is 0 are sensitive."""

    makes: ClassVar[type[Rule]] = Zero
    rule: Literal["zero"]
    """Which rule."""
    upper: Percent
    """Upper protection level, in units of the value."""


class RequestSection(RuleSection):
    """Contributors who asked for it are protected where they hold a large share."""

    makes: ClassVar[type[Rule]] = Request
    rule: Literal["request"]
    """Which rule."""
    first: Share
    """Share of the total, in per cent, for the first kind of request."""
    second: Share | None = None
    """The same for the second kind."""
    min_frequency: Percent | None = None
    """Fewer contributors than this are flagged whatever the share."""
    percent: Percent | None = None
    """Protection level in per cent of the value; 10 unless given."""


class ManualSection(RuleSection):
    """Cells named one by one."""

    rule: Literal["manual"]
    """Which rule."""
    cells: list[dict[str, str]]
    """Cells by their codes; dimensions that are left out are at their total."""
    percent: Percent = 20.0
    """Protection level in per cent of the value."""

    def plain(self, table: Table | None) -> Rule:
        """Return the rule for these cells of a table; of no table, to see whether the section can be one."""
        cells = [] if table is None else [table.cell(codes) for codes in self.cells]
        return Manual(cells, self.percent)


class AprioriSection(RuleSection):
    """Decisions about single cells, from a file of tau-ARGUS."""

    rule: Literal["a_priori"]
    """Which rule."""
    file: str
    """The file of decisions (.hst)."""
    percent: Percent = 20.0
    """Protection level of cells that it makes sensitive, in per cent of the value."""

    def plain(self, table: Table | None) -> None:
        """Return None: the file decides about single cells after all rules."""
        del table


_Sections = (
    PPercentSection | DominanceSection | PriorPosteriorSection | MinFrequencySection | ZeroSection | RequestSection
    | ManualSection | AprioriSection
)  # fmt: skip
Rules = Annotated[_Sections, Field(discriminator="rule")]

RULE_SECTIONS: dict[str, type[RuleSection]] = {
    get_args(section.model_fields["rule"].annotation)[0]: section for section in get_args(_Sections)
}
"""Name of a rule -> its section."""

"""``[[rules]]`` of a job: one section per rule, with its keys and the rule that it builds."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import Field

from cellguard.jobs.definition.sections import Amount, Codes, Count, FileName, Percent, Positive, Section
from cellguard.model.table import Table
from cellguard.rules import Dominance, Manual, MinFrequency, PPercent, PriorPosterior, Request, Rule, Zero

__all__ = ["RULE_SECTIONS", "AprioriSection", "ManualSection", "RuleSection", "Rules"]

PercentOfTotal = Annotated[float, Field(ge=0, le=100)]
Number = Annotated[int, Field(ge=1)]


class RuleSection(Section):
    """A rule that makes cells sensitive."""

    makes: ClassVar[type[Rule]]
    """The class of the rule; its parameters are the section's other keys."""
    rule: str
    """Which rule."""
    tables: list[str] = []
    """The rule applies to these tables only."""
    indicators: list[str] = []
    """The rule applies to these indicators only."""
    only: Codes = {}
    """Dimension -> codes: the rule applies to these only."""
    excluding: Codes = {}
    """Dimension -> codes: the rule applies to all others."""

    def build_rule(self, table: Table) -> Rule | None:
        """Return the rule for a table; None if the section decides about single cells instead."""
        rule = self.build_plain_rule(table)
        return None if rule is None else rule.only(**self.only).excluding(**self.excluding)

    def build_plain_rule(self, table: Table | None) -> Rule | None:  # noqa: ARG002 - cells named by hand are those of a table
        """Return the rule without its restriction to codes."""
        return self.makes(**self.given)

    @property
    def given(self) -> dict[str, Any]:
        """The parameters of the rule itself, without the keys that restrict where it applies."""
        own = self.model_fields_set - set(RuleSection.model_fields)
        return {key: value for key in own if (value := getattr(self, key)) is not None}

    @property
    def largest(self) -> int:
        """Number of largest contributions that the rule uses: at least two."""
        rule = self.build_plain_rule(None)
        return 2 if rule is None else max(2, rule.units)


class PPercentSection(RuleSection):
    """No attacker may estimate the largest contribution to within p per cent."""

    makes: ClassVar[type[Rule]] = PPercent
    rule: Literal["p_percent"]
    """Which rule."""
    p: Positive
    """How closely, in per cent, the largest contribution may be estimated."""
    coalition: Number | None = None
    """Number of contributors who work together."""


class DominanceSection(RuleSection):
    """The n largest contributors may not hold more than k per cent of a cell."""

    makes: ClassVar[type[Rule]] = Dominance
    rule: Literal["dominance"]
    """Which rule."""
    n: Number
    """Number of contributors."""
    k: Annotated[float, Field(gt=0, le=100)]
    """Share of the total, in per cent, that the n largest may hold."""


class PriorPosteriorSection(RuleSection):
    """An attacker who knew a contribution to within q per cent may not infer it to within p per cent."""

    makes: ClassVar[type[Rule]] = PriorPosterior
    rule: Literal["prior_posterior"]
    """Which rule."""
    p: Positive
    """How closely, in per cent, the largest contribution may be estimated."""
    q: Positive
    """How closely, in per cent, an attacker knew it before."""
    coalition: Number | None = None
    """Number of contributors who work together."""


class MinFrequencySection(RuleSection):
    """A cell needs at least n contributors."""

    makes: ClassVar[type[Rule]] = MinFrequency
    rule: Literal["min_frequency"]
    """Which rule."""
    n: Number
    """The least number that is safe."""
    percent: Percent | None = None
    """Protection level in per cent of the value; default: 10. Counts below n keep a width of n whole numbers."""
    basis: Literal["contributors", "weights", "both"] | None = None
    """With sampling weights: count the contributors (default), the units they stand for, or both."""


class ZeroSection(RuleSection):
    """Cells with contributors whose value is 0 are sensitive."""

    makes: ClassVar[type[Rule]] = Zero
    rule: Literal["zero"]
    """Which rule."""
    upper: Amount
    """Upper protection level, in units of the value."""


class RequestSection(RuleSection):
    """Contributors who requested protection are protected where they hold a large share."""

    makes: ClassVar[type[Rule]] = Request
    rule: Literal["request"]
    """Which rule."""
    first: PercentOfTotal
    """Share of the total, in per cent, for the first kind of request."""
    second: PercentOfTotal | None = None
    """The same for the second kind."""
    min_frequency: Count | None = None
    """Cells with fewer contributors than this are flagged regardless of the share."""
    percent: Percent | None = None
    """Protection level in per cent of the value; default: 10."""


class ManualSection(RuleSection):
    """Cells named one by one."""

    rule: Literal["manual"]
    """Which rule."""
    cells: list[dict[str, str]]
    """Cells by their codes; omitted dimensions are at their total."""
    percent: Percent = 20.0
    """Protection level in per cent of the value."""

    def build_plain_rule(self, table: Table | None) -> Rule:
        """Return the rule for these cells of a table; without a table, an empty rule that validates the section."""
        cells = [] if table is None else [table.cell(codes) for codes in self.cells]
        return Manual(cells, self.percent)


class AprioriSection(RuleSection):
    """Decisions about single cells, from a tau-ARGUS file."""

    rule: Literal["a_priori"]
    """Which rule."""
    file: FileName
    """The file of decisions (.hst)."""
    percent: Percent = 20.0
    """Protection level of cells that it makes sensitive, in per cent of the value."""

    def build_plain_rule(self, table: Table | None) -> None:
        """Return None: the file's decisions apply after all rules."""
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

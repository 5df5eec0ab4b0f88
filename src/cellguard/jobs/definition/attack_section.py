"""``[attack]`` of a job, generated from the options of the attacks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, create_model

from cellguard._attack_options import ATTACK_KINDS, find_attack_kind, list_scenarios
from cellguard._options import Option
from cellguard.jobs.definition.method_sections import build_field
from cellguard.jobs.definition.sections import Section

__all__ = ["AttackSection"]


class _AttackSection(Section):
    """Attacks on the release by an informed attacker."""

    scenario: Any
    """What the attacker knows."""

    def collect_options(self, method: str) -> dict[str, Any]:
        """Return the options that the job gives for an attack on this method, as the attack's function takes them."""
        given = {key: getattr(self, key) for key in self.model_fields_set if getattr(self, key) is not None}
        return {
            option.name: given[key] if option.job_read is None else option.job_read(given[key])
            for option in self._get_options(method)
            if (key := option.job_key) in given and key is not None
        }

    def list_unused(self, method: str) -> list[str]:
        """Return the keys that the job gives and that this attack does not have."""
        used = {option.job_key for option in self._get_options(method)} | {"scenario"}
        return sorted(self.model_fields_set - used)

    def _get_options(self, method: str) -> tuple[Option, ...]:
        kind = find_attack_kind(self.scenario, method)
        return () if kind is None else kind.options


def _list_options() -> Iterator[Option]:
    """Yield every option of an attack once."""
    seen = set()
    for kind in ATTACK_KINDS:
        for option in kind.options:
            if option.job_key is not None and option.job_key not in seen:
                seen.add(option.job_key)
                yield option


def _build_section() -> type[_AttackSection]:
    words = (
        "What the attacker knows. Adjusted tables: B1, B2, B3, C or decimals; rounded and perturbed tables: nearest or "
        "levels; intervals: levels, formulas or sets; suppressed tables of counts: matching or weighing."
    )
    scenario: Any = (Literal[list_scenarios()], Field(description=words))
    fields: dict[str, Any] = {str(o.job_key): build_field(o, o.default) for o in _list_options()}
    made: type[_AttackSection] = create_model(
        "AttackSection", __base__=_AttackSection, __doc__=_AttackSection.__doc__, scenario=scenario, **fields
    )
    return made


if TYPE_CHECKING:  # generated, which the type checker cannot follow
    AttackSection = _AttackSection
else:
    AttackSection = _build_section()

"""What can be chosen on the pages: methods with their options, rules with their figures, files, attacks.

Everything is read from the registry of methods and the model of the job: what is added there stands on the page.
"""

from __future__ import annotations

from functools import cache
from typing import Any, get_args

from cellguard.methods.method import Method, Option
from cellguard.methods.registry import METHODS

__all__ = ["choices"]

_LISTS = ("keep",)
"""Options that are lists of margins: written in the job file, and kept as they are."""


@cache
def choices() -> dict[str, Any]:
    """Return every choice of a job that is one of several, with its default and what it decides."""
    from cellguard.publish.check import method_for_attack_section
    from cellguard.publish.method_sections import MethodSection
    from cellguard.publish.model import AttackSection, LimitsSection, OutputSection

    scenarios = get_args(AttackSection.model_fields["scenario"].annotation)
    (formats,) = get_args(OutputSection.model_fields["formats"].annotation)
    return {
        "methods": [_choices_of_method(method) for method in METHODS.values()],
        "weights": list(get_args(MethodSection.model_fields["weights"].annotation)),
        "rules": _choices_of_rules(),
        "formats": list(get_args(formats)),
        "time_limit_s": LimitsSection().time_limit_s,
        "attacks": [{"scenario": name, "method": method_for_attack_section(name)} for name in scenarios],
    }


def _choices_of_method(method: Method) -> dict[str, Any]:
    options = [_choices_of_option(o) for o in method.options if o.job_key is not None and o.job_key not in _LISTS]
    return {
        "name": method.name,
        "title": method.title,
        "publishes": method.publishes,
        "choose": method.choose,
        "options": options,
    }


def _choices_of_option(option: Option) -> dict[str, Any]:
    default = option.job_value(lambda _: None)
    kind = "tick" if option.kind is bool else "choice" if option.choices else "number"
    return {
        "key": option.job_key,
        "kind": kind,
        "choices": list(option.choices),
        "default": default if isinstance(default, (str, int, float)) else None,
        "help": option.help,
    }


def _choices_of_rules() -> list[dict[str, Any]]:
    """Return each rule with what it asks for: the figures of its section in the job."""
    from cellguard.publish.rule_sections import RULE_SECTIONS, RuleSection

    out = []
    for name, section in RULE_SECTIONS.items():
        own = {k: f for k, f in section.model_fields.items() if k not in RuleSection.model_fields and k != "cells"}
        keys = [
            {"key": key, "required": field.is_required(), "help": field.description or ""} for key, field in own.items()
        ]
        out.append({"name": name, "keys": keys, "help": (section.__doc__ or "").strip()})
    return out

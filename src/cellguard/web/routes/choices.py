"""The choices on the pages: methods with their options, rules with their parameters, files, attacks.

All choices are read from the registry of methods and the model of the job, so additions there appear on the page.
"""

from __future__ import annotations

from functools import cache
from typing import Any, get_args

from cellguard.methods.method import Method, Option
from cellguard.methods.registry import METHODS

__all__ = ["list_choices"]

_LISTS = ("keep",)
"""Options that are lists of margins: like expert options, users write them in the job file; the page keeps them."""


@cache
def list_choices() -> dict[str, Any]:
    """Return every choice between alternatives in a job, with its default and its meaning."""
    from cellguard._attack_options import list_attacked_methods, list_scenarios
    from cellguard.jobs.definition.method_sections import MethodSection
    from cellguard.jobs.definition.model import LimitsSection, OutputSection

    (formats,) = get_args(OutputSection.model_fields["formats"].annotation)
    return {
        "methods": [_describe_method_choices(method) for method in METHODS.values()],
        "weights": list(get_args(MethodSection.model_fields["weights"].annotation)),
        "rules": _describe_rule_choices(),
        "formats": list(get_args(formats)),
        "time_limit_s": LimitsSection().time_limit_s,
        "attacks": [
            {"scenario": name, "method": method} for name in list_scenarios() for method in list_attacked_methods(name)
        ],
    }


def _describe_method_choices(method: Method) -> dict[str, Any]:
    shown = [o for o in method.options if o.job_key is not None and o.job_key not in _LISTS and not o.only_given]
    options = [_describe_option_choices(o) for o in shown]
    return {
        "name": method.name,
        "title": method.title,
        "publishes": method.publishes,
        "choose": method.choose,
        "options": options,
    }


def _describe_option_choices(option: Option) -> dict[str, Any]:
    default = option.get_job_default(lambda _: None)
    kind = "tick" if option.kind is bool else "choice" if option.choices else "number"
    return {
        "key": option.job_key,
        "kind": kind,
        "choices": list(option.choices),
        "default": default if isinstance(default, (str, int, float)) else None,
        "help": option.help,
    }


def _describe_rule_choices() -> list[dict[str, Any]]:
    """Return each rule with its parameters: the numbers of its section in the job."""
    from cellguard.jobs.definition.rule_sections import RULE_SECTIONS, RuleSection

    out = []
    for name, section in RULE_SECTIONS.items():
        own = {k: f for k, f in section.model_fields.items() if k not in RuleSection.model_fields and k != "cells"}
        keys = [
            {"key": key, "required": field.is_required(), "help": field.description or ""} for key, field in own.items()
        ]
        out.append({"name": name, "keys": keys, "help": (section.__doc__ or "").strip()})
    return out

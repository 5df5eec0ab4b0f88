"""Interval protection: every open cell is published as an interval that contains its value."""

from __future__ import annotations

from cellguard.methods.method import Method, Option

__all__ = ["METHOD"]

METHOD = Method(
    name="intervals",
    title="Interval protection",
    summary="Publish some cells as intervals, so that every sensitive cell keeps its levels.",
    help="Publish some cells as intervals, so that every sensitive cell keeps its levels.\n\n"
    "Intervals by classes have a secret offset: an informed attacker learns only a set as wide as the levels. The "
    "narrowest intervals (--position narrowest) reveal most values to an attacker who knows the levels.",
    publishes="Some cells are published as an interval that contains the true value.",
    choose="Every cell states something true, and none is empty. Readers and programs must be able to use intervals.",
    made_with=("rule", "key"),
    randomised=lambda value_of: value_of("position") == "classes",
    columns=("lower", "upper"),
    options=(
        Option(
            name="position", default="classes", choices=("classes", "narrowest"), metavar="KIND",
            help="How the ends are chosen: classes, or narrowest (for experiments: it reveals the values).",
        ),
        Option(
            name="gap", kind=float, default=1e-3, least=0.0, below=1.0, metavar="SHARE",
            help="Stop when the result is proven to be within this share of the optimum.",
        ),
    ),
)  # fmt: skip

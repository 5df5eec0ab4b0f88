"""Interval protection: every open cell is published as an interval that contains its value."""

from __future__ import annotations

from cellguard.methods.method import Method, Option

__all__ = ["METHOD"]

METHOD = Method(
    name="intervals",
    title="Interval protection",
    summary="Publish some cells as intervals from which nobody computes a sensitive cell too closely.",
    help="Publish some cells as intervals from which nobody computes a sensitive cell too closely.\n\n"
    "By classes with a secret offset: who knows the method learns no more than a set as wide as the levels ask. The "
    "narrowest intervals (--position narrowest) tell most values to who knows the levels.",
    publishes="Some cells are published as an interval that contains the true value.",
    choose="Every cell says something true, and none is empty; readers and their programs must cope with intervals.",
    made_with=("rule", "seed"),
    columns=("lower", "upper"),
    options=(
        Option(
            name="position", default="classes", choices=("classes", "narrowest"), metavar="KIND",
            help="How the ends are chosen: by classes, or narrowest (tells the values).",
        ),
        Option(
            name="gap", kind=float, default=1e-3, least=0.0, below=1.0, metavar="SHARE",
            help="Stop when proven this close to the best.",
        ),
    ),
)  # fmt: skip

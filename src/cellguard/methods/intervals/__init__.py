"""Interval protection: every open cell is published as an interval that contains its value."""

from __future__ import annotations

from cellguard.methods.method import Method, Option

__all__ = ["METHOD"]

METHOD = Method(
    name="intervals",
    title="Interval protection",
    summary="Publish some cells as intervals, as narrow as safety allows.",
    help="Publish some cells as intervals, as narrow as safety allows.\n\n"
    "With symmetric levels the midpoint of most intervals is the truth: use --levels 0.05,0.20 or --position random.",
    publishes="Some cells are published as an interval that contains the true value.",
    choose="Every cell says something true, and none is empty; readers and their programs must cope with intervals.",
    progress=True,
    options=(
        Option(
            name="position", default="narrowest", choices=("narrowest", "random"), metavar="KIND",
            help="Where the truth lies: narrowest, or random (wider).",
        ),
        Option(
            name="gap", kind=float, default=1e-3, least=0.0, below=1.0, metavar="SHARE",
            help="Stop when proven this close to the best.",
        ),
    ),
)  # fmt: skip

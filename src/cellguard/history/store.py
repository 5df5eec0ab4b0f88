"""Earlier releases as bytes: the public part is all that the attack needs, the internal part is confidential."""

from __future__ import annotations

import io
import json
from dataclasses import asdict
from typing import Any

import numpy as np

from cellguard.exceptions import FormatError
from cellguard.history.derived import Derived, Figures
from cellguard.history.earlier import EarlierRelease

__all__ = ["dump_internal", "dump_public", "load_earlier"]

FORMAT = "cellguard release content 1"
INTERNAL = ("values", "sensitive", "lower", "upper", "sliding", "widths")
"""Fields that only the office knows."""
_PUBLIC = ("coordinates", "rhs", "low", "high", "counted")


def dump_public(release: EarlierRelease) -> bytes:
    """Return the public content and the structure of a release."""
    T = release.relations
    head = {
        "format": FORMAT, "name": release.name, "period": release.period, "population": release.population,
        "dimensions": release.dimensions, "codes": release.codes, "parts": [dict(p) for p in release.parts],
        "whole": release.whole, "figures": [_describe_figures(one) for one in release.figures],
    }  # fmt: skip
    arrays = {name: getattr(release, name) for name in _PUBLIC}
    arrays |= {"T_data": T.data, "T_indices": T.indices, "T_indptr": T.indptr}
    arrays["head"] = np.frombuffer(json.dumps(head, ensure_ascii=False).encode(), np.uint8)
    return _pack(arrays)


def dump_internal(release: EarlierRelease) -> bytes:
    """Return the confidential part of a release: true values, sensitive cells and levels."""
    return _pack({name: getattr(release, name) for name in INTERNAL})


def load_earlier(public: bytes, internal: bytes | None) -> EarlierRelease:
    """Return a release from its parts; without the internal part, every withheld cell must stay protected."""
    from scipy.sparse import csr_array

    try:
        found = _unpack(public)
        head = json.loads(found["head"].tobytes())
        low, high = found["low"], found["high"]
        shape = (len(found["rhs"]), len(low))
        T = csr_array((found["T_data"], found["T_indices"], found["T_indptr"]), shape=shape)
        own = _guess_internal(low, high) if internal is None else _unpack(internal)
        if head["format"] != FORMAT or any(len(own[name]) != len(low) for name in INTERNAL):
            raise ValueError
        return EarlierRelease(
            name=head["name"], period=head["period"], population=head["population"],
            dimensions=tuple(head["dimensions"]), codes=tuple(tuple(c) for c in head["codes"]),
            parts=tuple({k: tuple(v) for k, v in p.items()} for p in head["parts"]), whole=bool(head["whole"]),
            figures=tuple(_read_figures(one) for one in head["figures"]), relations=T,
            **{name: found[name] for name in _PUBLIC}, **{name: own[name] for name in INTERNAL},
        )  # fmt: skip
    except (KeyError, ValueError, TypeError, OSError) as error:
        raise FormatError("the content of a release in the ledger is damaged.") from error


def _guess_internal(low: Any, high: Any) -> dict[str, Any]:
    """Return what is known without the internal part: published values, and that withheld cells are not to be known."""
    from cellguard.history.earlier import find_published

    shown = find_published(low, high)
    nothing = np.zeros(len(low))
    return {
        "values": np.where(shown, low, np.nan), "sensitive": ~shown, "lower": nothing, "upper": nothing,
        "sliding": nothing, "widths": np.where(shown, 0.0, 1e-6),
    }  # fmt: skip


def _describe_figures(figures: Figures) -> dict[str, Any]:
    derived = {**asdict(figures.derived), "values": None}
    shown = [None if np.isnan(v) else float(v) for v in figures.values]
    return {
        "derived": derived, "cells": figures.cells.tolist(), "values": shown, "decimals": figures.decimals.tolist(),
        "computed": figures.computed,
    }  # fmt: skip


def _read_figures(told: dict[str, Any]) -> Figures:
    return Figures(
        derived=Derived(**told["derived"]), cells=np.array(told["cells"], np.int64),
        values=np.array([np.nan if v is None else v for v in told["values"]]),
        decimals=np.array(told["decimals"], np.int64), computed=told["computed"],
    )  # fmt: skip


def _pack(arrays: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def _unpack(content: bytes) -> dict[str, Any]:
    with np.load(io.BytesIO(content), allow_pickle=False) as found:
        return {name: found[name] for name in found.files}

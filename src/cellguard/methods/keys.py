"""How a method gets its key: given by the user, or drawn from the operating system; never a short seed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from cellguard.exceptions import InputError
from cellguard.model.key import Key, KeyGiven, hash_cell_names

if TYPE_CHECKING:
    from cellguard.methods.method import Method
    from cellguard.model.table import Table

__all__ = ["HOW_TO_GIVE_A_KEY", "draw_for_table", "refuse_seed_as_secret", "take_key"]

HOW_TO_GIVE_A_KEY = (
    "leave the seed out: a key is drawn from the operating system. To repeat a release, give its key back: "
    "key= in Python, --key FILE on the command line, key in [method] of a job."
)


def take_key(given: KeyGiven | None) -> Key:
    """Return the given key, or draw one."""
    return Key.draw() if given is None else Key.from_any(given)


def refuse_seed_as_secret(method: Method, options: Mapping[str, Any]) -> None:
    """Refuse a seed if the release would hide something by chance: an attacker can try all seeds."""
    seed = options.get("seed")
    if seed and method.is_randomised(options):
        raise InputError(
            f"seed {seed}: a seed is not a secret, and this release of {method.name} hides values by chance.",
            hint=HOW_TO_GIVE_A_KEY,
        )


def draw_for_table(key: Key, purpose: str, table: Table) -> np.random.Generator:
    """Return the random numbers for one purpose and table: clusters with the same key get different numbers."""
    names = hash_cell_names(zip(*table.cell_codes().values(), strict=True))
    return key.make_generator(f"{purpose} {names}")

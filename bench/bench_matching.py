"""The matching attack of minami2019: processor seconds per generated table; what was not finished is said."""

from __future__ import annotations

import time

from figures import figure

from cellguard import Key, generate
from cellguard.attacks import CountRule, matching_attack
from cellguard.methods.suppress.resist import suppress_against_matching, suppress_counts_optimally

RULE = CountRule(minimum=5, width=8)
LIMIT = 50_000_000
"""Nodes of an attack; what needs more is not finished."""


def tables(side: int, number: int):
    """Return generated tables that some pattern protects, with their optimal suppression."""
    made = (generate.frequency(seed=seed, rows=side, columns=side) for seed in range(10**6))
    released = (suppress_counts_optimally(table, RULE) for table in made)
    kept = (release for release in released if release.published)
    return [next(kept) for _ in range(number)]


def attack(cells: int, number: int, target: float | None, printed: float | None) -> None:
    """Attack the deterministic optimum."""
    times, unsafe, primary, open_ends = [], 0, 0, 0
    for release in tables(round(cells**0.5), number):
        start = time.process_time()
        found = matching_attack(release, RULE, limit=LIMIT)
        times.append(time.process_time() - start)
        unsafe, primary = unsafe + int(found.unsafe.sum()), primary + int(found.primary.sum())
        open_ends += not found.exact
    note = f"max {max(times):.3g} s, not finished {open_ends} of {number}, unsafe {unsafe / primary:.2f}"
    paper = "" if printed is None else f", the paper {printed} s"
    figure(f"attack, {cells} cells, mean of {number}", sum(times) / number, target, note=note + paper)


def defend(cells: int, number: int) -> None:
    """Suppress so that the attack is resisted."""
    times, draws, paid, least = [], 0, 0, 0
    for release in tables(round(cells**0.5), number):
        start = time.process_time()
        resistant = suppress_against_matching(release.table, RULE, key=Key.from_public_number(1))
        times.append(time.process_time() - start)
        if resistant.published:
            draws += resistant.details["draws"]
            paid, least = paid + int(resistant.suppressed.sum()), least + int(release.suppressed.sum())
    note = f"{draws / number:.2f} draws, price {100 * (paid / least - 1):.2f}%"
    figure(f"resistant suppression, {cells} cells, mean of {number}", sum(times) / number, note=note)


def main() -> None:
    """Print the figures; the first table loads what is needed."""
    matching_attack(tables(4, 1)[0], RULE)
    suppress_against_matching(tables(4, 1)[0].table, RULE, key=Key.from_public_number(1))
    attack(16, 200, None, 1.412)
    attack(25, 200, 0.01, 102.2)
    attack(36, 200, 0.1, 538.9)
    attack(49, 200, 1.0, None)
    attack(64, 20, None, None)
    for cells in (16, 25, 36, 49):
        defend(cells, 200)


if __name__ == "__main__":
    main()

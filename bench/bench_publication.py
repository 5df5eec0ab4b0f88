"""The publication: tables that share cells, assembled, protected and audited as one.

``python bench/bench_publication.py [linked] [generated] [protected] [aside]``: without arguments the first two; the
others protect the generated publication, against respondents too or with respondents aside, which takes minutes.
"""

from __future__ import annotations

import csv
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from figures import figure, peak_gib
from joblib import parallel_config

import cellguard as cg
from cellguard.model.linked.publication import Part
from cellguard.tabulation.many import AskedTable, tabulate_parts

FOLDER = Path(os.environ.get("CELLGUARD_PUBLICATION", Path(__file__).resolve().parents[2] / "shared" / "publication"))
LINKED = {
    "activity by size": ("turnover_act_size.csv", "ACTIVITY", "SIZE", "activity_corr_table.csv"),
    "activity by form": ("turnover_act_cj.csv", "ACTIVITY", "CJ", "activity_corr_table.csv"),
    "region by size": ("turnover_nuts_size.csv", "NUTS", "SIZE", "nuts23_fr_corr_table.csv"),
    "region by form": ("turnover_nuts_cj.csv", "NUTS", "CJ", "nuts23_fr_corr_table.csv"),
}
"""Four tables of a public example: file, dimensions, and the levels of the first."""
EQUATIONS = ("turnover = domestic + exports", "exports = union + elsewhere")


# ---------------------------------------------------------------- four tables as an office has them


def linked_table(file: str, first: str, second: str, levels: str) -> cg.Table:
    """Read one of the four, with the codes of the correspondence table that it has."""
    rows = list(csv.DictReader((FOLDER / file).open(newline="")))
    codes = {row[first] for row in rows}
    pairs = {}
    for row in csv.DictReader((FOLDER / levels).open(newline="")):
        chain = list(dict.fromkeys(code for code in row.values() if code in codes))
        pairs |= dict(zip(chain, ["Total", *chain], strict=False))
    frame = {name: [row[name] for row in rows] for name in (first, second)}
    frame |= {name: [float(row[name]) for row in rows] for name in ("N_OBS", "TOT", "MAX")}
    dims = {first: cg.Hierarchy.from_pairs(sorted(pairs.items())), second: None}
    made = cg.Table.from_frame(frame, dims, value="TOT", counts="N_OBS", top=["MAX"], name=file)
    return made.apply(cg.Dominance(1, 85), cg.MinFrequency(3, percent=10))


def linked() -> None:
    """The four linked tables: secondaries summed over them, as rtauargus counts, with and without respondents."""
    if not FOLDER.is_dir():
        print("the example's files are not there; set CELLGUARD_PUBLICATION")
        return
    found = cg.Publication.of({name: linked_table(*what) for name, what in LINKED.items()})
    for insiders, target in ((False, 280.0), (None, None)):
        # a cell weighs one in every table that shows it: the sum over the tables is what is made small
        publication = found.replace_table(found.table.with_(weights=found.sum_priorities(), insiders=insiders))
        begin = time.monotonic()
        # whoever counts rounds leaves time to confirm that no respondent computes anything
        release = cg.suppress(
            publication, method="heuristic", time_limit_s=58, rounds=None if insiders is False else 40
        )
        took = time.monotonic() - begin
        if not release.published:
            print(f"{release.status}: {release.explanation}")
            continue
        audit = release.audit()
        each = [int(release.secondary[part.cells].sum()) for part in publication.parts]
        who = "respondents aside" if insiders is False else "against respondents too"
        note = f"{' + '.join(map(str, each))}; {int(release.secondary.sum())} distinct, gap {release.gap:.2f}, "
        note += (
            f"{took:.0f} s, {audit.checked} checked, {'safe' if audit.safe else 'NOT SAFE'}; tau-ARGUS, one by one: 354"
        )
        figure(f"four linked tables, secondaries, {who}", sum(each), target, "", note=note)


# ---------------------------------------------------------------- two hundred tables


def records(n: int = 60_000, seed: int = 1) -> dict[str, np.ndarray]:
    """Make firms with eight characteristics and three measured indicators; turnover and exports are sums of them."""
    rng = np.random.default_rng(seed)
    codes = {
        "activity": [f"{a}{k:02d}" for a in "ABCDEFGHIJ" for k in range(6)],
        "region": [f"R{a}{k}" for a in range(8) for k in range(4)],
        **{name: [f"{name[:2]}{k}" for k in range(m)] for name, m in SMALL.items()},
    }
    out = {}
    for name, listed in codes.items():
        share = rng.dirichlet(np.full(len(listed), 1.5))
        out[name] = np.array(listed)[rng.choice(len(listed), n, p=share)]
    size = np.round(np.exp(rng.normal(4.0, 1.6, n))) + 1
    out["domestic"] = size
    out["union"] = np.round(size * rng.random(n) * (rng.random(n) < 0.6))
    out["elsewhere"] = np.round(size * rng.random(n) * (rng.random(n) < 0.4))
    out["exports"] = out["union"] + out["elsewhere"]
    out["turnover"] = out["domestic"] + out["exports"]
    return out


SMALL = {"size": 5, "form": 4, "age": 5, "owner": 3, "seat": 4, "status": 3}


LAYOUTS = (
    ("activity", "size", "form"), ("region", "seat", "owner"), ("activity", "age"), ("activity", "status"),
    ("region", "size"), ("region", "form"), ("region", "age"), ("size", "form", "age"),
)  # fmt: skip
SURVEYS = 5
"""Each has eight layouts of five indicators: 40 tables, a cluster. Together 200 tables."""


def generated_parts() -> list[Part]:
    """Return 200 tables: five surveys, eight layouts, five indicators: three are measured, two are sums of others."""
    activity = cg.Hierarchy.from_nested({a: [f"{a}{k:02d}" for k in range(6)] for a in "ABCDEFGHIJ"})
    region = cg.Hierarchy.from_nested({f"R{a}": [f"R{a}{k}" for k in range(4)] for a in range(8)})
    by = {"activity": activity, "region": region, **dict.fromkeys(SMALL)}
    surveys = [records(12_000, seed) for seed in range(SURVEYS)]
    rows = {name: np.concatenate([one[name] for one in surveys]) for name in surveys[0]}
    rows["survey"] = np.repeat([f"survey {k}" for k in range(SURVEYS)], 12_000)
    asked = [
        AskedTable(name=f"{survey} {' x '.join(layout)}", dimensions=layout, where={"survey": survey})
        for survey in np.unique(rows["survey"]).tolist()
        for layout in LAYOUTS
    ]
    names = ("turnover", "domestic", "exports", "union", "elsewhere")
    return tabulate_parts(rows, by, asked, {name: name for name in names}, top=2)


def generated(*, protect: bool = False, insiders: bool | None = None) -> None:
    """Assemble and audit 200 tables; protect them where asked, two clusters at a time."""
    begin = time.monotonic()
    parts = generated_parts()
    made = time.monotonic() - begin
    rules = (cg.PPercent(10), cg.MinFrequency(3, percent=10))
    begin = time.monotonic()
    parts = [replace(p, table=p.table.apply(*rules)) for p in parts]
    flagged = time.monotonic() - begin
    begin = time.monotonic()
    found = cg.Publication.of(parts, equations=EQUATIONS)
    took = time.monotonic() - begin
    figure(f"{len(parts)} tables from records", made, note=f"rules {flagged:.1f} s")
    figure(f"{len(parts)} tables, {found.table.n_cells} distinct cells assembled", took, 10.0, note=repr(found))
    if not protect:
        return
    found = found.replace_table(found.table.with_(insiders=insiders))
    begin = time.monotonic()
    with parallel_config(n_jobs=2):
        release = cg.suppress(found, method="heuristic", rounds=0, time_limit_s=570)
    spent = time.monotonic() - begin
    note = f"{release.status}, {int(release.secondary.sum())} secondaries {release.explanation}"
    figure("protected" + (", respondents aside" if insiders is False else ""), spent, 600.0, note=note)
    if not release.published:
        return
    begin = time.monotonic()
    with parallel_config(n_jobs=2):
        audit = release.audit()
    note = f"{audit.checked} checked, {'safe' if audit.safe else 'NOT SAFE'}, {peak_gib():.1f} GiB"
    figure("audited", time.monotonic() - begin, 60.0, note=note)


def main(chosen: list[str]) -> None:
    """Print the figures."""
    if not chosen or "linked" in chosen:
        linked()
    if not chosen or {"generated", "protected", "aside"} & set(chosen):
        generated(protect="protected" in chosen or "aside" in chosen, insiders=False if "aside" in chosen else None)


if __name__ == "__main__":
    main(sys.argv[1:])

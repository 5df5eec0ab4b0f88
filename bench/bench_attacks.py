"""The whole experiment of castro2012 on the instances at hand, against a tenth of the printed CPU time."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from figures import CSPLIB, figure

from cellguard.papers import Settings, get_experiment, reproduce
from cellguard.papers._framework import read_paper_figures


def main() -> None:
    """Print the processor time of tables 2 to 9: ten replications, four scenarios, two norms."""
    if not CSPLIB.is_dir():
        print("castro2012: skipped, CSPLIB not found")
        return
    name = "castro2012-tables2to9"
    with tempfile.TemporaryDirectory() as folder:
        reproduce(get_experiment(name), Settings(), Path(folder))
        lines = (Path(folder) / f"{name}.jsonl").read_text().splitlines()
    spent: dict[str, float] = {}
    for line in filter(None, lines):
        entry = json.loads(line)
        instance = entry["key"].split()[0]
        spent[instance] = spent.get(instance, 0.0) + entry["result"]["cpu_s"]
    printed = {r["instance"]: r["l1_cpu_s"] + r["l2_cpu_s"] for r in read_paper_figures("castro2012-table1")}
    for instance, seconds in spent.items():
        figure(f"castro2012 tables 2 to 9, {instance}", seconds, printed[instance] / 10)
    total = sum(printed[instance] for instance in spent)
    figure(f"castro2012 tables 2 to 9, all {len(spent)}", sum(spent.values()), total / 10)


if __name__ == "__main__":
    main()

"""A few hundred strange tables, another few hundred on every run: the seed is printed and can be given again."""

import os
import secrets

import pytest

from adversary import informed
from adversary.campaign import campaign, summary

SEED = int(os.environ.get("CELLGUARD_ADVERSARY_SEED", secrets.randbits(31)))
CASES = int(os.environ.get("CELLGUARD_ADVERSARY_CASES", "50"))
"""Tables for each method."""


@pytest.mark.slow
@pytest.mark.parametrize("method", ["suppress", "round", "perturb", "intervals", "adjust"])
def test_nothing_unsafe_is_called_safe(method, tmp_path):
    path = tmp_path / "campaign.jsonl"
    print(f"CELLGUARD_ADVERSARY_SEED={SEED}")  # noqa: T201 - pytest shows it with a failure
    campaign(SEED, range(CASES), path, methods=(method,))
    figures, found = summary(path)
    assert figures["releases"] > CASES // 5
    shown = [f"case {f['case']}: {f['method']} {f['options']} ({f['what']})\n  {f['kind']}: {f['text']}" for f in found]
    assert not found, f"seed {SEED}, {len(found)} violations:\n" + "\n".join(shown[:20])
    assert not informed.verdict(figures), f"seed {SEED}"

"""A few hundred strange tables, another few hundred on every run: the seed is printed and can be given again."""

import os
import secrets

import pytest

from adversary import informed
from adversary.campaign import campaign, summary

SEED = int(os.environ.get("CELLGUARD_ADVERSARY_SEED", secrets.randbits(31)))
CASES = int(os.environ.get("CELLGUARD_ADVERSARY_CASES", "240"))


@pytest.mark.slow
@pytest.mark.xfail(strict=False, reason="known faults are being mended")
def test_nothing_unsafe_is_called_safe(tmp_path):
    path = tmp_path / "campaign.jsonl"
    print(f"CELLGUARD_ADVERSARY_SEED={SEED}")  # noqa: T201 - pytest shows it with a failure
    campaign(SEED, range(CASES), path)
    figures, found = summary(path)
    assert figures["releases"] > CASES
    shown = [f"case {f['case']}: {f['method']} {f['options']} ({f['what']})\n  {f['kind']}: {f['text']}" for f in found]
    assert not found, f"seed {SEED}, {len(found)} violations:\n" + "\n".join(shown[:20])
    assert not informed.verdict(figures), f"seed {SEED}"

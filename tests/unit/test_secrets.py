"""Secrets are drawn, never defaulted: a reader who has the code and tries seeds learns nothing (issue 29, finding 2)."""

import json
import os
import stat
from pathlib import Path

import numpy as np
import pytest

import cellguard as cg
from builders import key, write_columns, write_job
from cellguard.cli import main
from cellguard.datasets.survey import JOB
from cellguard.jobs import read_job
from cellguard.jobs.runner import run


def amounts(n: int = 8) -> cg.Table:
    """Return a table of amounts with a sensitive cell in every row."""
    leaves = np.random.default_rng(2).integers(100, 900, (n, 6)).astype(float)
    dims = {"region": [f"r{i}" for i in range(n)], "trade": [f"t{j}" for j in range(6)]}
    table = cg.Table.from_leaves(dims, leaves)
    cells = [table.cell({"region": f"r{i}", "trade": f"t{i % 6}"}) for i in range(n)]
    return table.with_(sensitive=np.isin(np.arange(table.n_cells), cells)).with_levels(0.05, 0.05)


def counts() -> cg.Table:
    return cg.generate.frequency(seed=3)


RANDOMISED = {
    "adjust": (cg.adjust, amounts, {}),
    "adjust, surplus": (cg.adjust, amounts, {"senses": "upper"}),
    "adjust, optimal": (cg.adjust, amounts, {"senses": "optimal", "gap": 0.1}),
    "adjust, senses": (cg.adjust, amounts, {"surplus": 0}),
    "adjust, noise": (cg.adjust, amounts, {"senses": "upper", "surplus": 0, "noise": 0.02, "norm": "l1"}),
    "perturb": (cg.perturb, amounts, {"base": 100}),
    "perturb, distance": (cg.perturb, amounts, {"distance": 100}),
    "perturb, nearest": (cg.perturb, amounts, {"base": 100, "draw": "nearest"}),
    "round, coins": (cg.round, amounts, {"base": 100, "objective": "coins", "gap": 0.1}),
    "round, unbiased": (cg.round, amounts, {"base": 50, "objective": "unbiased", "gap": 0.1}),
    "intervals": (cg.intervals, amounts, {}),
    "suppress, resist": (cg.suppress, counts, {"resist": "matching"}),
}
SEARCHED = {
    "adjust, optimal": (cg.adjust, amounts, {"senses": "optimal", "surplus": 0, "gap": 0.1}),
    "adjust, upper": (cg.adjust, amounts, {"senses": "upper", "surplus": 0}),
    "round": (cg.round, amounts, {"base": 100}),
    "intervals": (cg.intervals, amounts, {"position": "narrowest"}),
    "suppress": (cg.suppress, amounts, {"method": "heuristic", "rounds": 2}),
}
EVERY_RANDOMISED = pytest.mark.parametrize("name", RANDOMISED)


def published(release: cg.Release, path: Path) -> bytes:
    release.save(path, allow_unsafe=True)
    return path.read_bytes()


@EVERY_RANDOMISED
def test_a_short_seed_is_refused(name):
    verb, table, options = RANDOMISED[name]
    with pytest.raises(cg.InputError, match="seed 1: a seed is not a secret") as error:
        verb(table(), seed=1, **options)
    assert "--key FILE" in error.value.hint


@pytest.mark.parametrize("name", SEARCHED)
def test_a_seed_steers_what_hides_nothing_by_chance(name):
    verb, table, options = SEARCHED[name]
    release = verb(table(), seed=1, **options)
    assert release.published
    assert "key" not in release.options


@EVERY_RANDOMISED
def test_the_same_key_gives_the_same_bytes_and_another_does_not(name, tmp_path):
    verb, table, options = RANDOMISED[name]
    secret = os.urandom(32)
    made = [published(verb(table(), key=k, **options), tmp_path / "r.csv") for k in (secret, cg.Key(secret))]
    assert made[0] == made[1]
    others = {published(verb(table(), key=key(n), **options), tmp_path / "r.csv") for n in range(6)}
    assert len(others) > 1


@EVERY_RANDOMISED
def test_the_default_draws_another_key_every_time(name, tmp_path):
    verb, table, options = RANDOMISED[name]
    first, second = (verb(table(), **options) for _ in range(2))
    assert first.options["key"] != second.options["key"]
    again = verb(table(), key=first.options["key"], **options)
    assert published(again, tmp_path / "a.csv") == published(first, tmp_path / "b.csv")


@pytest.mark.parametrize("name", ["adjust", "perturb", "perturb, distance", "intervals"])
def test_a_reader_with_the_code_and_small_numbers_does_not_hit_the_release(name, tmp_path):
    """With seed 0 or 1 the code told the draws: now no public number gives what was published."""
    verb, table, options = RANDOMISED[name]
    file = published(verb(table(), **options), tmp_path / "r.csv")
    guesses = [cg.Key.from_public_number(n) for n in (0, 1)]
    assert file not in [published(verb(table(), key=k, **options), tmp_path / "g.csv") for k in guesses]
    for n in (0, 1):
        with pytest.raises(cg.InputError, match="repeats itself"):
            verb(table(), key=n.to_bytes(16, "little"), **options)


def test_clusters_of_a_publication_have_one_key_and_different_coins():
    from cellguard.model.linked.publication import Part, Publication

    table = amounts()
    both = Publication.of(
        [Part(name=name, table=table, indicator=name) for name in ("cattle", "sheep")], different=[["cattle", "sheep"]]
    )
    assert len(both.clusters) == 2
    release = cg.perturb(both, base=100, key=key(1))
    assert release.options["key"] == key(1)
    one, other = (release.values[part.cells] for part in release.table.parts)
    assert not np.array_equal(one, other)


# ---------------------------------------------------------------------- the command line


@pytest.fixture
def files(tmp_path):
    amounts().write(tmp_path / "t.csv")
    cg.Key.draw().write(tmp_path / "key")
    return tmp_path


def command(folder, *words):
    return main([*words[:1], str(folder / "t.csv"), *words[1:], "--quiet"])


COMMANDS = {
    "adjust": ("adjust",),
    "perturb": ("perturb", "--base", "100"),
    "round": ("round", "--base", "100", "--objective", "coins"),
    "intervals": ("intervals",),
}


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_the_command_line_refuses_a_seed_and_takes_a_key(files, capsys, words):
    out = files / "r.csv"
    assert command(files, *words, "--seed", "1", "--out", str(out)) == 1
    assert "a seed is not a secret" in capsys.readouterr().err
    assert not out.exists()
    made = []
    for _ in range(2):
        assert command(files, *words, "--key", str(files / "key"), "--out", str(out), "--json", "--internal") == 0
        made.append(out.read_bytes())
        printed = capsys.readouterr()
        for text in (printed.out, printed.err, out.read_text()):
            assert (files / "key").read_bytes().hex() not in text
    assert made[0] == made[1]


@pytest.mark.parametrize("words", [("round", "--base", "100"), ("suppress",), ("intervals", "--position", "narrowest")])
def test_the_command_line_takes_a_seed_for_a_search(files, words):
    assert command(files, *words, "--seed", "1", "--out", str(files / "r.csv")) == 0


def break_key(path: Path, how: str) -> None:
    if how == "missing":
        path.unlink()
    elif how == "short":
        path.write_bytes(b"123456789")
    else:
        path.chmod(0o644)


@pytest.mark.parametrize(
    ("how", "text"), [("missing", "no such file"), ("short", "too short"), ("readable", "others can read")]
)
def test_a_bad_key_file_is_refused_and_nothing_is_written(files, office, capsys, how, text):
    break_key(files / "key", how)
    out = files / "r.csv"
    assert command(files, "adjust", "--key", str(files / "key"), "--out", str(out)) == 1
    assert text in capsys.readouterr().err
    assert not out.exists()
    assert main(["protect", str(perturbed(office)), "--key", str(files / "key"), "--quiet"]) == 1
    assert text in capsys.readouterr().err
    assert main(["protect", str(perturbed(office, key=os.path.relpath(files / "key", office))), "--quiet"]) == 1
    shown = capsys.readouterr().err
    assert text in shown
    assert "method.key" in shown or "[method]" in shown or "key" in shown
    assert not (office / "out").exists()


# ---------------------------------------------------------------------- jobs


@pytest.fixture
def office(tmp_path):
    folder = tmp_path / "office"
    folder.mkdir()
    rng = np.random.default_rng(5)
    columns = {
        "region": rng.choice(list("abcd"), 60).tolist(),
        "sector": rng.choice(list("xyz"), 60).tolist(),
        "turnover": np.ceil(np.exp(rng.normal(6, 1.8, 60))).astype(int).tolist(),
    }
    write_columns(folder / "firms.csv", columns)
    return folder


def perturbed(office, *, seed=None, **method):
    sections = {} if seed is None else {"seed": seed}
    return write_job(office, "region", "sector", method={"name": "perturb", **method}, **sections)


def public_bytes(office):
    files = sorted((office / "out" / "public").glob("*.csv"))
    assert files
    return [path.read_bytes() for path in files]


def test_a_job_refuses_a_seed(office, capsys):
    assert main(["protect", str(perturbed(office, seed=1)), "--quiet"]) == 1
    shown = capsys.readouterr().err
    assert "a seed is not a secret" in shown
    assert "key in [method] of a job" in shown
    assert not (office / "out").exists()


def test_a_job_for_a_search_takes_a_seed(office):
    path = write_job(office, "region", "sector", seed=3, method={"name": "suppress", "rounds": 2})
    run(read_job(path))
    assert not (office / "out" / "internal" / "release.key").exists()


def test_the_internal_folder_gives_the_key_back(office, tmp_path):
    path = perturbed(office)
    first = run(read_job(path))
    made, kept = public_bytes(office), office / "out" / "internal" / "release.key"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert cg.Key.read(kept) == first.release.options["key"]
    saved = tmp_path / "saved.key"
    first.release.options["key"].write(saved)
    assert main(["protect", str(path), "--again", "--quiet"]) == 0
    assert public_bytes(office) != made
    assert main(["protect", str(path), "--again", "--quiet", "--key", str(saved)]) == 0
    assert public_bytes(office) == made
    assert main(["protect", str(perturbed(office, key="../saved.key")), "--again", "--quiet"]) == 0
    assert public_bytes(office) == made
    assert main(["verify", str(office / "out" / "internal" / "manifest.json")]) == 0


def test_the_key_is_in_one_internal_file_and_nowhere_else(office):
    outcome = run(read_job(perturbed(office)))
    secret = outcome.release.options["key"]
    raw, text = bytes.fromhex(secret.to_hex()), secret.to_hex().encode()
    holding = [
        p.name for p in (office / "out").rglob("*") if p.is_file() and (raw in p.read_bytes() or text in p.read_bytes())
    ]
    assert holding == ["release.key"]
    told = json.dumps(outcome.summary(internal=True), default=str)
    assert secret.to_hex() not in told
    manifest = json.loads((office / "out" / "internal" / "manifest.json").read_text())
    assert manifest["key"] == "release.key"
    assert "key" not in manifest["options"]
    public = json.loads((office / "out" / "public" / "manifest.json").read_text())
    assert not {"key", "seed", "options"} & public.keys()


def test_a_killed_run_goes_on_with_its_key(office, monkeypatch):
    """What is left of a publication must not get another key than what was protected already."""
    from cellguard.jobs import runner as runs

    path = perturbed(office)
    seen = []
    usual = runs.protect_table

    def killed(*args, **options):
        seen.append(options["key"])
        if len(seen) == 1:
            raise MemoryError
        return usual(*args, **options)

    monkeypatch.setattr(runs, "protect_table", killed)
    with pytest.raises(MemoryError):
        run(read_job(path))
    outcome = run(read_job(path))
    assert seen[0] == seen[1] == outcome.release.options["key"]


# ---------------------------------------------------------------------- templates


def test_templates_hold_no_seed(office, capsys):
    assert main(["init", str(office / "firms.csv"), "--out", str(office / "new.toml")]) == 0
    assert "seed" not in (office / "new.toml").read_text()
    assert "seed" not in JOB
    from cellguard.jobs.proposal import text as proposal_text

    assert "seed" not in Path(proposal_text.__file__).read_text()


def test_the_comparison_takes_a_seed_and_draws_for_the_others():
    found = cg.compare(amounts(4), ["suppress", "perturb"], seed=1, time_limit_s=5, base=100)
    assert set(found.releases) == {"suppress", "perturb"}
    assert found.releases["suppress"].options["seed"] == 1
    again = cg.compare(amounts(4), ["perturb"], key=found.releases["perturb"].options["key"], time_limit_s=5, base=100)
    assert np.array_equal(again.releases["perturb"].values, found.releases["perturb"].values)


def test_a_method_command_keeps_the_key_that_it_drew_or_says_that_it_is_lost(tmp_path, capsys):
    amounts().write(tmp_path / "t.csv")
    asked = ["adjust", str(tmp_path / "t.csv"), "--out", str(tmp_path / "r.csv")]
    assert main(asked) == 0
    assert "the key was drawn and is not kept" in capsys.readouterr().err
    inside = tmp_path / "inside.csv"
    assert main([*asked, "--internal-file", str(inside)]) == 0
    assert "not kept" not in capsys.readouterr().err
    kept, made = tmp_path / "inside.csv.key", (tmp_path / "r.csv").read_bytes()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert main([*asked, "--key", str(kept)]) == 0
    assert (tmp_path / "r.csv").read_bytes() == made
    assert "key" not in capsys.readouterr().err
    assert main(["adjust", str(tmp_path / "t.csv"), "--senses", "upper", "--surplus", "0"]) == 0
    assert "key" not in capsys.readouterr().err  # nothing is drawn

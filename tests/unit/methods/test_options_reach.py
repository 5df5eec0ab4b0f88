"""Every option of a method can be given in Python, on the command line and in a job, from one definition."""

from __future__ import annotations

import inspect
import json

import numpy as np
import pytest

import cellguard as cg
from builders import key
from cellguard._attack_options import ATTACK_KINDS, find_attack_kind
from cellguard.attacks import attack_by_weighing, attack_intervals, attack_method, matching_attack
from cellguard.attacks.intruder import Knowledge
from cellguard.attacks.scenarios import attack as attack_by_scenario
from cellguard.cli import main
from cellguard.jobs.definition.attack_section import AttackSection
from cellguard.jobs.definition.method_sections import METHOD_SECTIONS
from cellguard.methods.method import Option
from cellguard.methods.registry import METHODS

LIMITS = {"table", "time_limit_s", "seed", "key", "threads", "progress", "keeper", "insiders", "earlier", "derived"}
"""What all verbs have: the limits of a job, and `--time-limit`, `--seed`, `--threads`, `--no-insiders`."""
BY_WEIGHTS = {"weights", "power"}
"""`weights` belongs to every method of a job, whatever its verb calls it; `power` is an exponent of a kind of them."""


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_every_keyword_of_a_verb_is_an_option(method) -> None:
    keywords = set(inspect.signature(method.verb).parameters) - LIMITS - BY_WEIGHTS
    assert keywords == {option.name for option in method.options} - BY_WEIGHTS


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_every_option_is_on_the_command_line_and_in_jobs(method) -> None:
    fields = set(METHOD_SECTIONS[method.name].model_fields)
    for option in method.options:
        if option.name in BY_WEIGHTS:
            continue
        assert option.flag is not None, option.name
        assert option.job_key in fields, option.name
        assert option.help.endswith("."), option.name


def section(name: str, **given: object):
    return METHOD_SECTIONS[name](name=name, **given)


def test_jobs_pass_on_what_experts_ask_for_and_nothing_else() -> None:
    asked = {
        "adjust": {"noise": 0.02, "omega": 0.9, "squares": "margins", "square_weights": "unit", "solver": "simplex"},
        "round": {"objective": "unbiased", "max_step": 3, "keep_multiples": True, "shares_up": [0, 0.2, 0.4, 0.6, 0.8]},
        "perturb": {"distance": 4.0, "draw": "truth", "between": True, "round_sensitive": True},
    }
    for name, options in asked.items():
        given = section(name, **options).collect_options()
        assert {key: given[key] for key in options} == options
        assert not set(options) & set(section(name).collect_options())
    assert section("round", search="exact").collect_options()["method"] == "exact"
    assert section("perturb", given=["6=25", "N,f=10"]).collect_options()["given"] == {6: 25.0, ("N", "f"): 10.0}
    assert section("adjust", senses=[1, -1]).collect_options()["senses"] == [1, -1]
    assert section("adjust", senses="Optimal").collect_options()["senses"] == "optimal"
    with pytest.raises(ValueError, match="senses"):
        section("adjust", senses=[2])


def small_table() -> cg.Table:
    table = cg.Table.from_leaves({"r": list("abc"), "c": list("xyz")}, [[20, 31, 42], [53, 64, 25], [36, 47, 58]])
    cells = np.isin(np.arange(table.n_cells), [5, 10])
    return table.with_(sensitive=cells, lower=2.0 * cells, upper=2.0 * cells, insiders=False)


def test_a_distance_takes_the_place_of_the_base_that_a_job_would_suggest() -> None:
    options = section("perturb", distance=4.0).collect_options(small_table())
    assert options.get("base") is None
    assert cg.perturb(small_table(), key=key(1), **options).published
    assert section("perturb").collect_options(small_table())["base"] == 5.0


def test_the_command_line_takes_arrays(tmp_path, capsys) -> None:
    path, senses = tmp_path / "t.jj", tmp_path / "senses.txt"
    small_table().write(path)
    senses.write_text("1\n-1\n")
    shared = [str(path), "--no-insiders", "--internal", "--json", "--quiet"]
    for given in ("1,-1", str(senses)):
        assert main(["adjust", *shared, "--senses", given, "--surplus", "0", "--noise", "0.01"]) == 0
        assert json.loads(capsys.readouterr().out)["multipliers_norm1"] > 0
    assert main(["adjust", *shared, "--senses", "sideways"]) == 1
    assert "senses" in capsys.readouterr().err
    words = ["--objective", "unbiased", "--shares-up", "0,0.2,0.4,0.6,0.8", "--base", "5"]
    assert main(["round", *shared, *words]) == 0
    assert main(["round", *shared, "--shares-up", "many"]) == 1
    capsys.readouterr()


def test_multipliers_are_printed_inside_only(tmp_path, capsys) -> None:
    path = tmp_path / "t.jj"
    small_table().write(path)
    assert main(["adjust", str(path), "--no-insiders", "--json", "--quiet"]) == 0
    assert "multipliers_norm1" not in json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("method", "scenario"),
    [
        ("round", "nearest"),
        ("round", "levels"),
        ("perturb", "nearest"),
        ("intervals", "formulas"),
        ("intervals", "sets"),
    ],
)
def test_attacks_on_every_method_are_on_the_command_line(tmp_path, capsys, method: str, scenario: str) -> None:
    path = tmp_path / "t.jj"
    small_table().write(path)
    base = [] if method == "intervals" else ["--base", "5"]
    assert main(["attack", str(path), "--method", method, *base, "--scenario", scenario, "--json", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out)["knowledge"] == scenario
    assert main(["attack", str(path), "--method", "suppress"]) == 1
    capsys.readouterr()


def test_beta_and_soft_bounds_are_on_the_command_line(tmp_path, capsys) -> None:
    path = tmp_path / "t.jj"
    small_table().write(path)
    shared = ["attack", str(path), "--scenario", "B3", "--replications", "1", "--json", "--quiet"]
    assert main([*shared, "--beta", "0.4", "--hard", "--levels-around", "published"]) == 0
    assert json.loads(capsys.readouterr().out)["beta"] == 0.4
    assert main([*shared, "--soft"]) == 0
    assert json.loads(capsys.readouterr().out)["infeasible_draws"] == 1


def test_weighing_is_on_the_command_line(tmp_path, capsys) -> None:
    path = tmp_path / "t.jj"
    cg.generate.frequency(seed=3).write(path)
    assert main(["match", str(path), "--minimum", "5", "--width", "8", "--weigh", "--json", "--quiet"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["weighed"]["unsafe"] >= 0
    assert found["weighed"]["candidates"] > 0


def test_an_option_that_another_replaces_is_not_filled_in() -> None:
    method = METHODS["perturb"]
    base = method.get_option("base")
    assert isinstance(base, Option)
    assert base.instead == "distance"
    assert method.fill_options({"distance": 3.0}, small_table()).get("base") is None


ATTACKS = {
    "scenarios": (attack_by_scenario, Knowledge),
    "decimals": (attack_by_scenario,),
    "method": (attack_method,),
    "intervals": (attack_intervals,),
    "matching": (matching_attack,),
    "weighing": (attack_by_weighing,),
}
"""Kind of attack -> the functions and classes whose keywords are its options."""
NOT_ASKED = {"release", "suppression", "rule", "scenario", "knowledge", "knows", "seed", "n_jobs", "shares"}
"""What an attack is given otherwise: what is attacked, the seed, the cores; `shares` belongs to decimals alone."""
FUNCTIONS = {"algorithm", "prior"}
"""Python only: they are functions."""


@pytest.mark.parametrize("kind", ATTACK_KINDS, ids=lambda kind: kind.name)
def test_every_keyword_of_an_attack_is_an_option(kind) -> None:
    found = {name for source in ATTACKS[kind.name] for name in inspect.signature(source).parameters}
    options = {option.name for option in kind.options}
    assert found - NOT_ASKED - FUNCTIONS == options - NOT_ASKED
    assert "knows" not in found or "knows" in options or kind.name in {"scenarios", "decimals"}
    defaults = {
        name: parameter.default
        for source in ATTACKS[kind.name]
        for name, parameter in inspect.signature(source).parameters.items()
    }
    for option in kind.options:
        assert option.name == "knows" or defaults[option.name] == option.default, option.name


@pytest.mark.parametrize("kind", ATTACK_KINDS, ids=lambda kind: kind.name)
def test_every_option_of_an_attack_is_on_the_command_line_and_in_jobs(kind) -> None:
    from cellguard.cli.commands.check import attack, match

    command = (match if "suppress" in kind.methods else attack).command
    flags = {name.removeprefix("attack_") for name in inspect.signature(command).parameters}
    for option in kind.options:
        assert option.name in flags
        assert option.job_key in AttackSection.model_fields
        assert option.help.endswith("."), option.name


def test_jobs_pass_the_options_of_an_attack_on() -> None:
    asked = AttackSection(scenario="B3", beta=0.4, soft=False, levels_around="published", norm="L2", replications=2)
    assert asked.collect_options("adjust") == {
        "beta": 0.4, "soft": False, "levels_around": "published", "norm": "l2", "replications": 2,
    }  # fmt: skip
    assert AttackSection(scenario="decimals", shares=[0.1, 0.2]).collect_options("adjust") == {"shares": (0.1, 0.2)}
    assert AttackSection(scenario="sets", cells=7).collect_options("intervals") == {"cells": 7}
    assert AttackSection(scenario="matching", withheld="primary").collect_options("suppress") == {"cells": "primary"}
    assert AttackSection(scenario="matching", beta=1.0).list_unused("suppress") == ["beta"]
    assert find_attack_kind("matching", "adjust") is None
    with pytest.raises(ValueError, match="replications"):
        AttackSection(scenario="B1", replications=0)


def test_shares_of_the_decimals_are_on_the_command_line(tmp_path, capsys) -> None:
    path = tmp_path / "t.jj"
    small_table().write(path)
    shared = ["attack", str(path), "--scenario", "decimals", "--replications", "1", "--json", "--quiet"]
    found = []
    for shares in ("0.05,0.05", "0.4,0.4"):
        assert main([*shared, "--shares", shares]) == 0
        found.append(json.loads(capsys.readouterr().out)["candidates"])
    assert found[0] != found[1]
    assert main([*shared, "--shares", "many"]) == 1
    assert "two numbers" in capsys.readouterr().err


def test_a_scenario_of_another_method_is_refused(tmp_path, capsys) -> None:
    path = tmp_path / "t.jj"
    small_table().write(path)
    assert main(["attack", str(path), "--method", "round", "--base", "5", "--scenario", "B2"]) == 1
    assert "nearest" in capsys.readouterr().err

"""Conventions that no linter checks: functions on one screen, few parameters, shallow nesting."""

import ast
import subprocess
import sys
from pathlib import Path

import cellguard as cg
from cellguard.methods.registry import METHODS

SOURCE = Path(cg.__file__).parent
MOST_LINES, MOST_PARAMETERS, MOST_NESTING = 60, 6, 4
INTERFACES = {*cg.__all__, "from_equations", "from_frame", "matching_attack", "attack_by_weighing", "command", "run"}
"""What users call with an option per choice: the public verbs, the verbs of the command line, and the run of a job."""
GENERATORS = {"onehier", "geography", "census"}
"""Of ``cg.generate``: a parameter per property of the table."""

OPTIONAL = tuple(f"cellguard.{name}" for name in ("papers", "argus", "web", "cli", "testing"))

Function = ast.FunctionDef | ast.AsyncFunctionDef
BLOCKS = (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.Match)


def functions() -> list[tuple[str, Function]]:
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        where = path.relative_to(SOURCE).as_posix()
        found += [(where, node) for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, Function)]
    return found


def lines(node: Function) -> int:
    """Lines of the body, without the docstring."""
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def parameters(node: Function) -> int:
    given = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return len(given) - (given[:1] in (["self"], ["cls"]))


def nesting(node: ast.AST, depth: int = 0) -> int:
    deepest = depth
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (*BLOCKS, ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            otherwise = isinstance(node, ast.If) and isinstance(child, ast.If) and node.orelse == [child]
            inside = isinstance(child, BLOCKS) and not otherwise
            deepest = max(deepest, nesting(child, depth + inside) if isinstance(child, BLOCKS) else depth)
        else:
            deepest = max(deepest, nesting(child, depth))
    return deepest


FUNCTIONS = functions()


def test_functions_fit_on_a_screen():
    assert len(FUNCTIONS) > 1000
    assert [f"{where}: {node.name}" for where, node in FUNCTIONS if lines(node) > MOST_LINES] == []


def test_nesting_is_shallow():
    assert [f"{where}: {node.name}" for where, node in FUNCTIONS if nesting(node) > MOST_NESTING] == []


def test_many_parameters_are_a_noun():
    wide = [
        f"{where}: {node.name}"
        for where, node in FUNCTIONS
        if parameters(node) > MOST_PARAMETERS and node.name not in INTERFACES | GENERATORS
    ]
    assert wide == []


def test_a_package_has_at_most_a_dozen_modules():
    """A reader can survey it."""
    modules = {
        folder.relative_to(SOURCE).as_posix(): len([path for path in folder.glob("*.py") if path.stem != "__init__"])
        for folder in (SOURCE, *SOURCE.rglob("*/"))
    }
    assert {name: n for name, n in modules.items() if n > 12} == {}
    assert len(modules) > 20


def test_the_core_imports_no_optional_package():
    """Whatever is imported for a table, a method, an audit and a job file: papers, argus, web and the command line are not."""
    core = "cellguard.methods.registry, cellguard.auditing.audit, cellguard.jobs.runner, cellguard.release.readers.read_release"
    words = f"import sys, {core}; print([m for m in sys.modules if m.startswith({OPTIONAL!r})])"
    ran = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_every_hook_has_its_function():
    from importlib import import_module

    from cellguard import _hooks

    assert len(_hooks._PROVIDERS) >= 7
    for place in _hooks._PROVIDERS.values():
        module, _, function = place.partition(":")
        assert callable(getattr(import_module(module), function))


def test_import_is_light():
    """Heavy libraries are imported where they are used."""
    heavy = ("scipy", "highspy", "pyscipopt", "duckdb", "pyarrow", "pydantic", "typer", "pandas")
    words = f"import sys, cellguard; print([m for m in {heavy!r} if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_tests_stand_in_the_rooms_of_what_they_test():
    tests = Path(__file__).parent
    folders = [folder.relative_to(tests) for folder in tests.rglob("*/") if next(folder.glob("test_*.py"), None)]
    assert len(folders) > 10
    rooms = {path.relative_to(SOURCE).as_posix().replace("_", "") for path in SOURCE.rglob("*/")}
    assert [folder.as_posix() for folder in folders if folder.as_posix() not in rooms | {".", "packaging"}] == []


def test_the_version_is_in_the_changelog():
    changes = Path(__file__).resolve().parents[2] / "CHANGELOG.md"
    assert f"\n## {cg.__version__}\n" in changes.read_text()


# ---------------------------------------------------------------------- every mechanism once

TREES = {path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text()) for path in sorted(SOURCE.rglob("*.py"))}
INNER = {where: tree for where, tree in TREES.items() if where.startswith(("_engine/", "methods/"))}
CACHED = {
    "_get_blas_controller", "_read_all_figures", "_load_templates", "_LAST", "_report_template", "_seen", "list_choices",
    "read_texts", "_PROVIDERS",
}  # fmt: skip
"""What lives as long as the process: no table's structure."""


def calls(tree: ast.AST, name: str) -> list[ast.Call]:
    return [n for n in ast.walk(tree) if isinstance(n, ast.Call) and ast.unparse(n.func).split(".")[-1] == name]


def test_the_engine_and_the_methods_have_one_clock():
    """Whoever takes long is handed a Deadline; nobody else looks at the time."""
    others = {"time", "monotonic", "perf_counter", "process_time"}
    found = [
        f"{where}:{node.lineno}"
        for where, tree in INNER.items()
        if where != "_engine/clock.py"
        for node in ast.walk(tree)
        if (isinstance(node, ast.Import) and any(alias.name == "time" for alias in node.names))
        or (isinstance(node, ast.ImportFrom) and node.module == "time" and {a.name for a in node.names} & others)
    ]
    assert found == []


def test_a_deadline_is_never_a_number():
    found = [
        f"{where}:{argument.lineno}"
        for where, tree in INNER.items()
        for argument in ast.walk(tree)
        if isinstance(argument, ast.arg)
        and argument.arg.endswith("deadline")
        and "Deadline" not in ast.unparse(argument.annotation or ast.Constant(value=""))
    ]
    assert found == []


def test_only_the_space_looks_up_the_variable_of_a_cell():
    found = [
        f"{where}:{call.lineno}"
        for where, tree in INNER.items()
        if where != "_engine/space/space.py"
        for call in calls(tree, "searchsorted")
        if any(word in ast.unparse(call) for word in (".alias", "reduction", "space.cells", "lift"))
    ]
    assert found == []
    aliases = [
        where
        for where, tree in INNER.items()
        if not where.startswith("_engine/space/")
        and any("alias" in ast.unparse(c) and "inverse" in ast.unparse(c) for c in calls(tree, "unique"))
    ]
    assert aliases == []


def test_only_the_space_finds_the_least_room_of_merged_cells():
    """What views of attackers know of variables is their own (tally); whoever else wants their room asks the space."""
    found = [
        f"{where}:{call.lineno}"
        for where, tree in INNER.items()
        if not where.startswith("_engine/space/") and where != "_engine/ranges/tally.py"
        for call in (*calls(tree, "at"), *calls(tree, "reduceat"))
        if ast.unparse(call.func).startswith("np.minimum")
        and any(word in ast.unparse(call) for word in ("variable", "alias", "lift", "member"))
    ]
    assert found == []


def test_a_search_with_a_best_and_a_bound_is_a_standing():
    found = []
    for where, tree in INNER.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and node.name != "Standing" and not node.bases:
                kept = {a.attr for a in ast.walk(node) if isinstance(a, ast.Attribute) and isinstance(a.ctx, ast.Store)}
                found += [f"{where}: {node.name}"] if {"best", "bound"} <= kept else []
    assert found == []


def test_classes_are_named_by_what_they_are_of():
    named: dict[str, list[str]] = {}
    for where, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                named.setdefault(node.name, []).append(where)
    assert {name: places for name, places in named.items() if len(places) > 1} == {}


def test_types_of_arrays_are_named_once():
    found = [
        f"{where}:{node.lineno}"
        for where, tree in TREES.items()
        if where != "_types.py"
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("NDArray[np.")
        and ast.unparse(node.value) not in ("NDArray[np.object_]", "NDArray[np.uint64]")
    ]  # fmt: skip
    assert found == []


def test_tolerances_stand_together():
    """A name of what is nearly nothing, nearly whole or nearly the same belongs to no module alone."""
    words = {"NOISE", "NEAR", "TOLERANCE", "WHOLE", "TRIVIAL", "ZERO", "SAME", "VIOLATION", "TIGHT"}
    found = [
        f"{where}: {node.targets[0].id} = {node.value.value}"
        for where, tree in TREES.items()
        if where != "_tolerances.py"
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id.strip("_") in words
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, float)
        and node.value.value < 1e-5
    ]
    assert found == []


def test_nothing_is_kept_from_one_call_to_the_next():
    """A structure is reduced once and handed on, not found again through a global cache."""
    found = set()
    for tree in TREES.values():
        for node in ast.walk(tree):
            if isinstance(node, Function):
                marks = {ast.unparse(mark).split("(")[0].split(".")[-1] for mark in node.decorator_list}
                found |= {node.name} if marks & {"cache", "lru_cache"} else set()
        for node in tree.body:
            value = getattr(node, "value", None)
            empty = isinstance(value, ast.Dict | ast.List) and not (
                getattr(value, "keys", None) or getattr(value, "elts", None)
            )
            if isinstance(node, ast.Assign | ast.AnnAssign) and empty:
                target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
                found.add(ast.unparse(target))
    assert found <= CACHED, found - CACHED


ONLY_IN = {
    "connected_components": {"_engine/space/groups.py"},
    "highspy": {"_engine/solvers/lp.py"},
    "pyscipopt": {"_engine/solvers/branch_and_cut.py", "_engine/solvers/scip_rows.py"},
    "reduce_to_echelon_form": {"_engine/space/echelon_form.py", "_engine/space/space.py"},
    "read_file_facts": {"_io/facts.py"},
    "dpotrf": {"_engine/closest/newton_systems.py"},
}
"""What is imported in its own room only: everybody else calls what stands there."""


def test_mechanisms_are_called_where_they_live():
    for name, rooms in ONLY_IN.items():
        users = {
            where
            for where, tree in TREES.items()
            for node in ast.walk(tree)
            if (isinstance(node, ast.Import) and any(a.name.split(".")[0] == name for a in node.names))
            or (isinstance(node, ast.ImportFrom) and (node.module == name or name in {a.name for a in node.names}))
        }
        assert users <= rooms, (name, users - rooms)


def test_the_step_of_an_interior_point_has_one_length():
    """The compiled core knows how far slacks and multipliers may go; nobody divides one by its change again."""
    core = Path(__file__).resolve().parents[2] / "src" / "core"
    assert [path.name for path in core.glob("*.cpp") if "double longest_step(" in path.read_text()] == ["interior.cpp"]
    assert [where for where, tree in INNER.items() if calls(tree, "longest_step")] == [
        "methods/intervals/narrowest/newton.py"
    ]
    again = [
        f"{where}:{node.lineno}"
        for where, tree in INNER.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Div)
        and any(word in ast.unparse(node.right) for word in ("d_slack", "d_dual", "d_multiplier"))
    ]
    assert again == []


def test_one_movement_for_all_requests_has_one_home():
    """Whoever wants a joint movement says what it must do and which solver finds it; nobody else sets one up."""
    home = "_engine/closest/joint_movement.py"
    users = {
        where: calls(tree, "find_joint_movement") for where, tree in INNER.items() if calls(tree, "find_joint_movement")
    }
    assert set(users) == {"methods/intervals/problem.py", "methods/suppress/search/joint_movement.py"}
    assert all("solver" in {k.arg for k in call.keywords} for found in users.values() for call in found)
    others = [
        f"{where}: {node.name}"
        for where, node in FUNCTIONS
        if where != home and "joint" in node.name and (calls(node, "Adjuster") or calls(node, "LinearProgram"))
    ]
    assert others == []
    assert not [where for where in INNER if where.startswith("methods/suppress/") and calls(INNER[where], "Adjuster")]


def test_files_are_written_at_once_or_not_at_all():
    """Whoever writes a file calls `_io.files`; the ledger grows line by line, and the command has its own output."""
    apart = ("_io/files.py", "jobs/outputs/ledger.py", "__main__.py")
    found = [
        f"{where}:{call.lineno}"
        for where, tree in TREES.items()
        if where not in apart
        for name in ("open", "fdopen", "mkstemp", "NamedTemporaryFile", "write_bytes")
        for call in calls(tree, name)
        if name not in ("open", "fdopen")
        or any(isinstance(a, ast.Constant) and str(a.value)[:1] == "w" for a in call.args)
    ]
    assert found == []


def test_nobody_but_the_methods_asks_which_method_it_is():
    """What depends on the method is said by its entry in the registry, or by its kind of release."""
    names = set(METHODS)
    found = [
        f"{where}:{node.lineno}"
        for where, tree in TREES.items()
        if not where.startswith("methods/")
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare)
        and names & {c.value for c in ast.walk(node) if isinstance(c, ast.Constant) and isinstance(c.value, str)}
    ]
    assert found == []


def test_a_model_is_solved_through_its_noun():
    """Linear programs are made of a LinearModel, and what an attacker sees is a Sight."""
    nouns = {
        "LinearProgram": ("LinearModel", "model", "wide", "program"),
        "ranges": ("Sight", "sight"),
        "compute_ranges_for_views": ("Sight", "sight"),
    }
    others = {
        f"{where}: {ast.unparse(call)[:80]}"
        for where, tree in TREES.items()
        for name, allowed in nouns.items()
        for call in calls(tree, name)
        if isinstance(call.func, ast.Name)
        and call.args
        and not any(word in ast.unparse(call.args[0]) for word in allowed)
    }
    assert others == set()


def test_nobody_asks_which_kind_of_release_it_is():
    """What depends on the kind is a method of the kind."""
    from cellguard.release.release import KINDS

    names = {kind.__name__ for kind in KINDS.values()}
    found = [
        f"{where}:{call.lineno}"
        for where, tree in TREES.items()
        for call in calls(tree, "isinstance")
        if names & {n.id for n in ast.walk(call) if isinstance(n, ast.Name)}
    ]
    assert found == []

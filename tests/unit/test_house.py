"""Rules of the house that no linter has: functions on one screen, few parameters, shallow nesting."""

import ast
import subprocess
import sys
from pathlib import Path

import cellguard as cg

SOURCE = Path(cg.__file__).parent
MOST_LINES, MOST_PARAMETERS, MOST_NESTING = 60, 6, 4
INTERFACES = {*cg.__all__, "from_equations", "from_frame", "matching_attack", "weighing_attack", "command"}
"""What users call with an option per choice: the public verbs, and the verbs of the command line."""
GENERATORS = {"onehier", "geography", "census"}
"""Of ``cg.generate``: a parameter per property of the table."""
NARROWER = {
    "_engine": 17,
    "methods": 25,
}
"""Rooms that still have functions with more parameters: so many, and never more."""

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
    for room, most in NARROWER.items():
        inside = [name for name in wide if name.startswith(room)]
        assert len(inside) <= most, inside
        wide = [name for name in wide if name not in inside]
    assert wide == []


def test_import_is_light():
    """Heavy libraries are imported where they are used."""
    heavy = ("scipy", "highspy", "pyscipopt", "duckdb", "pyarrow", "pydantic", "matplotlib", "typer", "pandas")
    words = f"import sys, cellguard; print([m for m in {heavy!r} if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_the_version_is_in_the_changelog():
    changes = Path(__file__).resolve().parents[2] / "CHANGELOG.md"
    assert f"\n## {cg.__version__}\n" in changes.read_text()

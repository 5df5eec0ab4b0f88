"""Draw the packages and which imports which, from the code's own imports: docs/pictures/architecture.svg."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "cellguard"
PICTURE = ROOT / "docs" / "pictures" / "architecture.svg"
ROWS = (
    ("cli", "web", "argus"),
    ("jobs", "papers"),
    ("methods",),
    ("attacks", "auditing"),
    ("release", "datasets"),
    ("tabulation", "attackers", "rules"),
    ("model",),
    ("_engine", "_io", "_core"),
)
"""Packages from top to bottom: imports go downward."""
WORDS = {
    "cli": "one module per command",
    "web": "the local page",
    "argus": "tau-ARGUS batches",
    "jobs": "job files, runs, outputs, report",
    "papers": "the papers' experiments",
    "methods": "suppress, intervals, adjust, round, perturb",
    "attacks": "scenarios, matching, decimals",
    "auditing": "audit, witnesses, verify",
    "release": "kinds of release, formats, readers",
    "datasets": "examples and generated tables",
    "tabulation": "records to tables",
    "attackers": "who attacks, and what they know",
    "rules": "sensitivity rules",
    "model": "tables, hierarchies, levels",
    "_engine": "space, ranges, closest, solvers",
    "_io": "parsers that only parse",
    "_core": "compiled loops (C++)",
}
WIDTH, HEIGHT, GAP, WAY = 260, 46, 40, 170


def imports() -> set[tuple[str, str]]:
    """Return which package imports from which."""
    found: set[tuple[str, str]] = set()
    for path in sorted(SOURCE.rglob("*.py")):
        package = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cellguard"):
                parts = (node.module or "").split(".")
                for other in [parts[1]] if len(parts) > 1 else [alias.name for alias in node.names]:
                    if other != package and package in WORDS and other in WORDS:
                        found.add((package, other))
    return found


def draw() -> str:
    """Return the picture as SVG."""
    place = {}
    widest = max(len(row) for row in ROWS) * (WIDTH + 20)
    for r, row in enumerate(ROWS):
        left = (widest - len(row) * (WIDTH + 20) + 20) / 2
        for k, package in enumerate(row):
            place[package] = (left + k * (WIDTH + 20), 10 + r * (HEIGHT + GAP))
    height = 10 + len(ROWS) * (HEIGHT + GAP)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {widest + WAY} {height}" font-family="sans-serif">',
        "<style>text{fill:#1f2933}.w{font-size:11px;fill:#52606d}.n{font-size:15px;font-weight:bold}</style>",
        f'<rect width="{widest + WAY}" height="{height}" fill="#ffffff"/>',
    ]
    for package, other in sorted(imports()):
        (x, y), (u, v) = place[package], place[other]
        if v > y:
            out.append(
                f'<line x1="{x + WIDTH / 2:.0f}" y1="{y + HEIGHT}" x2="{u + WIDTH / 2:.0f}" y2="{v}" '
                f'stroke="#9fb3c8" stroke-width="1.5"><title>{package} imports {other}</title></line>'
            )
    for package, (x, y) in place.items():
        out.append(
            f'<rect x="{x:.0f}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="6" fill="#e6f0fa" stroke="#486581"/>'
        )
        out.append(f'<text class="n" x="{x + WIDTH / 2:.0f}" y="{y + 19}" text-anchor="middle">{package}</text>')
        out.append(f'<text class="w" x="{x + WIDTH / 2:.0f}" y="{y + 36}" text-anchor="middle">{WORDS[package]}</text>')
    steps = ("records", "table", "sensitive cells", "release", "audit", "files, report")
    for k, step in enumerate(steps):
        y = 30 + k * (height - 60) / (len(steps) - 1)
        out.append(f'<text x="{widest + 40}" y="{y:.0f}" font-size="13">{step}</text>')
        if k:
            out.append(
                f'<text x="{widest + 40}" y="{y - (height - 60) / (len(steps) - 1) / 2:.0f}" font-size="13">↓</text>'
            )
    return "\n".join([*out, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(draw(), encoding="utf-8")

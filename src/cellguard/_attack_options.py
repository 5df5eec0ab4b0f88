"""The options of every attack, defined once for Python, the command line, ``[attack]`` of jobs and the manual."""

from __future__ import annotations

from dataclasses import dataclass

from cellguard._options import Option
from cellguard.exceptions import InputError

__all__ = [
    "ATTACK_KINDS",
    "COUNT_KNOWLEDGE",
    "INTERVAL_KNOWLEDGE",
    "LEVELS_AROUND",
    "MAX_NODES",
    "METHOD_KNOWLEDGE",
    "NORMS",
    "SENSES",
    "AttackKind",
    "find_attack_kind",
    "list_attacked_methods",
    "list_scenarios",
]  # fmt: skip

COUNT_KNOWLEDGE = ("rule", "mechanism", "algorithm")
"""What an attacker may know about a suppression of counts."""
METHOD_KNOWLEDGE = ("nearest", "levels")
"""What an attacker may know about a rounded or perturbed table."""
INTERVAL_KNOWLEDGE = ("levels", "formulas", "sets")
"""What an attacker may know about intervals."""
LEVELS_AROUND = ("guess", "published")
"""What a drawn level is a share of."""
SENSES = ("known", "drawn", "free")
"""How an attacker of an adjusted table treats the senses."""
NORMS = ("l1", "l2")
"""Norms of the attacker's program."""
MAX_NODES = 50_000_000
"""Nodes of a matching attack: a few minutes."""


@dataclass(frozen=True, kw_only=True)
class AttackKind:
    """An attack: what it knows, which releases it is for, and its options."""

    name: str
    """Its name."""
    scenarios: tuple[str, ...]
    """What the attacker may know; one of them is chosen."""
    methods: tuple[str, ...]
    """Methods whose releases it attacks."""
    options: tuple[Option, ...]
    """Its options, besides the seed."""
    command: str = "attack"
    """Its command on the command line."""


def read_shares(given: str | list[float] | None) -> tuple[float, float] | None:
    """Return a lower and an upper share, typed with a comma or given as a list.

    >>> read_shares("0.1,0.2")
    (0.1, 0.2)
    """
    if given is None:
        return None
    try:
        lower, upper = (float(part) for part in (given.split(",") if isinstance(given, str) else given))
    except ValueError:
        raise InputError("shares: two numbers are needed, a lower and an upper share.", hint="as in 0.1,0.1.") from None
    return lower, upper


_REPLICATIONS = Option(
    name="replications", kind=int, default=10, least=1, metavar="N",
    help="Number of times the attacker draws what they do not know (adjusted tables).",
)  # fmt: skip
_CELLS = Option(
    name="cells", kind=int, default=200, least=1, metavar="N",
    help="Largest number of sensitive cells to attack (rounded and perturbed tables, intervals).",
)  # fmt: skip
_KNOWS = Option(
    name="knows", choices=COUNT_KNOWLEDGE, metavar="WHAT",
    help="What the attacker knows of a suppression of counts: rule, mechanism or algorithm; default: all that is "
    "public.",
)  # fmt: skip

ATTACK_KINDS = (
    AttackKind(
        name="scenarios",
        scenarios=("B1", "B2", "B3", "C"),
        methods=("adjust",),
        options=(
            _REPLICATIONS,
            Option(
                name="level_error", kind=float, default=0.2, least=0.0, metavar="SHARE",
                help="Largest error of the attacker's guess of a level (Delta).",
            ),
            Option(
                name="weights", default="release", metavar="KIND",
                help="Weights the attacker assumes: the release's own, or a kind.",
            ),
            Option(
                name="norm", choices=NORMS, flag="--believes", metavar="NORM",
                help="Norm the attacker assumes, if not the release's.",
            ),
            Option(
                name="bounds", kind=bool, default=True, flag="--knows-bounds/--no-knows-bounds",
                help="Whether the attacker knows the bounds of the cells.",
            ),
            Option(
                name="sensitive", kind=bool, default=True, flag="--knows-sensitive/--no-knows-sensitive",
                help="Whether the attacker knows which cells are sensitive.",
            ),
            Option(
                name="senses", choices=SENSES, flag="--takes-senses", metavar="HOW",
                help="How the attacker treats the senses: known, drawn or free; default: by scenario.",
            ),
            Option(
                name="may_stay", kind=bool, default=False, flag="--may-stay",
                help="The attacker's program always allows that a cell did not move, castro2012 (13).",
            ),
            Option(
                name="levels_around", default="guess", choices=LEVELS_AROUND, metavar="WHAT",
                help="What a drawn level is a share of: the guess, or the published value.",
            ),
            Option(
                name="beta", kind=float, least=0.0, metavar="SHARE",
                help="Largest distance of guesses from the published values; default: as much as is needed.",
            ),
            Option(
                name="soft", kind=bool, flag="--soft/--hard",
                help="Whether bounds may be violated at a price; default: soft in B1 and B2.",
            ),
        ),
    ),
    AttackKind(
        name="decimals",
        scenarios=("decimals",),
        methods=("adjust",),
        options=(
            _REPLICATIONS,
            Option(
                name="shares", metavar="LOWER,UPPER", job_kind=list[float], read=read_shares,
                job_read=read_shares,
                help="Scenario decimals: lower and upper level as shares of the value; default: those usual in the "
                "table.",
            ),
        ),
    ),
    AttackKind(
        name="method", scenarios=METHOD_KNOWLEDGE, methods=("round", "perturb"), options=(_CELLS,),
    ),
    AttackKind(
        name="intervals", scenarios=INTERVAL_KNOWLEDGE, methods=("intervals",), options=(_CELLS,),
    ),
    AttackKind(
        name="matching",
        scenarios=("matching",),
        methods=("suppress",),
        command="match",
        options=(
            _KNOWS,
            Option(
                name="cells", key="withheld", flag="--withheld", default="all", choices=("all", "primary"),
                metavar="WHICH", help="Scenario matching: all withheld cells are attacked, or only primary ones.",
            ),
            Option(
                name="limit", kind=int, default=MAX_NODES, least=1, metavar="NODES",
                help="Scenario matching: largest number of search nodes; the attack stops there.",
            ),
            Option(
                name="samples", kind=int, default=200, least=1, metavar="N",
                help="Scenario matching: largest number of candidates to try where not all can be listed.",
            ),
            Option(
                name="secret", kind=bool, default=False, flag="--secret",
                help="Scenario matching: the attacker knows neither minimum nor width, and tries all values.",
            ),
        ),
    ),
    AttackKind(
        name="weighing",
        scenarios=("weighing",),
        methods=("suppress",),
        command="match",
        options=(
            _KNOWS,
            Option(
                name="spread", kind=float, default=0.15, least=0.0, flag="--weigh-spread", metavar="NUMBER",
                help="Scenario weighing: spread of the random weights of the mechanism.",
            ),
            Option(
                name="share", kind=float, default=0.95, positive=True, below=1.0, flag="--weigh-share",
                metavar="SHARE", help="Scenario weighing: probability that an interval must hold.",
            ),
            Option(
                name="draws", kind=int, default=200, least=1, flag="--weigh-draws", metavar="N",
                help="Scenario weighing: draws of weights per candidate.",
            ),
            Option(
                name="sample", kind=int, default=1000, least=1, flag="--weigh-sample", metavar="N",
                help="Scenario weighing: number of candidates to weigh where there are more.",
            ),
        ),
    ),
)  # fmt: skip
"""Every attack. A function that is an argument (`algorithm`, `prior`) can be given in Python only."""


def list_scenarios() -> tuple[str, ...]:
    """Return every scenario once, in the order of the attacks."""
    return tuple(dict.fromkeys(name for kind in ATTACK_KINDS for name in kind.scenarios))


def list_attacked_methods(scenario: str) -> tuple[str, ...]:
    """Return the methods whose releases a scenario attacks.

    >>> list_attacked_methods("levels")
    ('round', 'perturb', 'intervals')
    """
    return tuple(method for kind in ATTACK_KINDS if scenario in kind.scenarios for method in kind.methods)


def find_attack_kind(scenario: str, method: str) -> AttackKind | None:
    """Return the attack of this scenario on releases of a method; None if there is none."""
    return next((kind for kind in ATTACK_KINDS if scenario in kind.scenarios and method in kind.methods), None)

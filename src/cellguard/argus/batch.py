"""``cellguard argus JOB.arb``: run the commands of a batch in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellguard._interrupt import BEST_KEPT, was_interrupted
from cellguard._io.files import write_text
from cellguard._io.hst import read_hst
from cellguard.argus.dimensions import find_file_any_case
from cellguard.argus.formats import arb
from cellguard.argus.formats.rda import read_rda
from cellguard.argus.microdata import Made, Microdata
from cellguard.argus.output import compute_status_letters, is_internal_batch_output, write_batch_output
from cellguard.argus.ready import ReadyTable
from cellguard.argus.safety import Safety, build_safety
from cellguard.attackers.respondents import with_insiders
from cellguard.exceptions import FormatError
from cellguard.model.table import Table
from cellguard.release.release import Release, Status, Suppression
from cellguard.rules import apply_apriori

if TYPE_CHECKING:
    from cellguard.auditing.audit import Audit

__all__ = ["BatchOutcome", "Result", "read_table_of_batch", "run_batch"]

_SECONDS = 60.0
_DEFAULT_MINUTES = 1.0
_REPLACED = {"GH": "the hypercube", "MOD": "the modular approach", "NET": "the network", "OPT": "the optimal method"}


@dataclass(slots=True, kw_only=True)
class Result:
    """A table of the batch, with its release and audit."""

    spec: arb.SpecifyTable
    safety: Safety = field(default_factory=Safety)
    recodes: list[arb.Recode] = field(default_factory=list)
    made: Made | None = None
    release: Release | None = None
    audit: Audit | None = None

    @property
    def safe(self) -> bool:
        """Whether there was nothing to protect, or the audit confirms the release."""
        if self.release is None:
            return True
        return self.audit is not None and (self.audit.safe or self.audit.checked == 0)

    def summarize(self) -> dict[str, Any]:
        """Return a summary of the table without any value."""
        out: dict[str, Any] = {"dimensions": list(self.spec.dimensions), "response": self.spec.response or "<freq>"}
        if self.made is None:
            return out
        table = self.made.table
        out["table"] = table.sizes
        if self.release is not None:
            out |= {k: v for k, v in self.release.summary().items() if k not in ("table", "loss")}
        out["audit"] = None if self.audit is None else self.audit.summary()
        out["status_of_cells"] = compute_status_letters(self.made, self.release)
        return out


@dataclass(slots=True, kw_only=True)
class BatchOutcome:
    """The outcome of a batch."""

    results: list[Result] = field(default_factory=list)
    written: list[Path] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def safe(self) -> bool:
        """Whether every protected table passed the audit."""
        return all(result.safe for result in self.results)


def run_batch(
    path: str | Path, *, out: str | Path | None = None, say: Callable[[str], None] | None = None
) -> BatchOutcome:
    """Run a tau-ARGUS batch.

    Parameters
    ----------
    path
        The ``.arb`` file; files that it names without a folder are in its folder.
    out
        Folder of the outputs, instead of the batch's own.
    say
        Called with a line for each note.

    Returns
    -------
    BatchOutcome
        The tables with their releases and audits. A table that was not protected safely is not written.
    """
    path = Path(path)
    return _Batch(path, path.parent if out is None else Path(out), say or (lambda _: None)).run()


def read_table_of_batch(path: str | Path) -> Table:
    """Read the first table of a batch with its rules, recodings and a priori decisions, without protecting it."""
    path = Path(path)
    batch = _Batch(path, path.parent, lambda _: None, only_read=True)
    batch.run()
    batch.line = 0
    return batch._record_result(batch._number(1)).table


class _Batch:
    def __init__(self, path: Path, out: Path, say: Callable[[str], None], *, only_read: bool = False) -> None:
        self.only_read = only_read
        self.path, self.folder, self.out, self.say = path, path.parent, out, say
        self.outcome = BatchOutcome()
        self.data: tuple[str, Path] | None = None
        self.source: Microdata | ReadyTable | None = None
        self.results: list[Result] = []
        self.logbook: Path | None = None
        self.line = 0

    def run(self) -> BatchOutcome:
        steps: dict[type, Callable[[Any], None]] = {
            arb.Open: self._open,
            arb.SpecifyTable: self._read_table_command,
            arb.SafetyRules: self._apply_safety_rules,
            arb.Read: self._read,
            arb.Recode: self._recode,
            arb.Apriori: self._apply_apriori,
            arb.Suppress: self._suppress,
            arb.WriteTable: self._write,
            arb.Note: self._choose_method,
        }
        for command in arb.read_arb(self.path):  # read the whole batch before running any command
            self.line = command.line
            if isinstance(command, arb.Note) and command.name == "GOINTERACTIVE":
                self._note("there is nothing to interact with: the batch ends here.")
                break
            if not (self.only_read and isinstance(command, (arb.Suppress, arb.WriteTable, arb.Note))):
                steps[type(command)](command)
        self._write_logbook()
        return self.outcome

    # ------------------------------------------------------------------ helpers

    def _build_error(self, message: str, hint: str | None = None) -> FormatError:
        return FormatError.at(self.path, self.line or None, message, hint=hint)

    def _note(self, text: str) -> None:
        line = f"line {self.line}: {text}"
        self.outcome.notes.append(line)
        self.say(line)

    def _find_file(self, name: str) -> Path:
        """Find a file of the batch, ignoring upper and lower case in its name."""
        path = find_file_any_case(self.folder / name.replace("\\", "/"))
        if not path.is_file():
            raise self._build_error(f"{name}: no such file.", "files lie beside the batch unless they name a folder.")
        return path

    def _resolve_target(self, name: str) -> Path:
        name = name.replace("\\", "/")
        return self.out / (Path(name).name if self.out != self.folder else name)

    def _number(self, number: int) -> Result:
        if not 1 <= number <= len(self.results):
            raise self._build_error(f"there is no table {number}; {len(self.results)} are specified.")
        return self.results[number - 1]

    def _record_result(self, result: Result) -> Made:
        if result.made is None:
            raise self._build_error("the tables have not been read yet.", "put <READMICRODATA> or <READTABLE> before.")
        return result.made

    # ------------------------------------------------------------------ commands

    def _open(self, command: arb.Open) -> None:
        path = self._find_file(command.path)
        if command.kind != "metadata":
            self.data = (command.kind, path)
            return
        if self.data is None:
            raise self._build_error("the data file must be opened before its metadata.")
        kind, data = self.data
        metadata = read_rda(path, table=kind == "table")
        self.source = Microdata(data, metadata) if kind == "microdata" else ReadyTable(data, metadata)

    def _read_table_command(self, command: arb.SpecifyTable) -> None:
        if self.source is None:
            raise self._build_error("a table is specified before data and metadata are open.")
        for name in command.dimensions:
            variable = self.source.metadata[name]
            if variable.numeric and not variable.recodable:
                raise self._build_error(f"variable {name!r} is numeric and cannot be a dimension.")
        result = Result(spec=command)
        self.results.append(result)
        self.outcome.results.append(result)

    def _apply_safety_rules(self, command: arb.SafetyRules) -> None:
        if not self.results:
            raise self._build_error("a rule stands before the table it is for.")
        self.results[-1].safety = build_safety(command.rules, f"{self.path}:{command.line}")

    def _read(self, command: arb.Read) -> None:
        wanted = Microdata if command.kind == "microdata" else ReadyTable
        if not isinstance(self.source, wanted):
            raise self._build_error(f"no {command.kind} is open.")
        if isinstance(self.source, ReadyTable):
            self.source.totals = command.totals
            if command.totals == 2:
                self._note("totals are computed from their parts, regardless of the totals in the file.")
        for result in self.results:
            self._make(result)

    def _make(self, result: Result) -> None:
        if self.source is None:
            raise self._build_error("no data are open.")
        result.made = self.source.make(result.spec, result.safety, result.recodes, self.folder)
        for note in result.made.notes:
            self._note(note)

    def _recode(self, command: arb.Recode) -> None:
        result = self._number(command.table)
        self._record_result(result)
        if command.variable.lower() not in [name.lower() for name in result.spec.dimensions]:
            raise self._build_error(f"variable {command.variable!r} is not a dimension of table {command.table}.")
        if command.path:
            self._find_file(command.path)
        result.recodes.append(command)
        result.release = result.audit = None
        self._make(result)

    def _apply_apriori(self, command: arb.Apriori) -> None:
        result = self._number(command.table)
        made = self._record_result(result)
        decisions = read_hst(self._find_file(command.path), len(made.dimensions), command.separator)
        table = apply_apriori(made.table, decisions, percent=result.safety.manual_percent)
        result.made = replace(made, table=table)

    def _suppress(self, command: arb.Suppress) -> None:
        chosen = self.results if command.table == 0 else [self._number(command.table)]
        made = [self._record_result(result) for result in chosen]
        if not made:
            raise self._build_error("no table is specified.")
        if command.method in ("RND", "CTA") and len(made) > 1:
            raise self._build_error(f"{command.method} takes one table at a time.")
        insiders = _read_singletons(command)
        for result, one in zip(chosen, made, strict=True):
            table = one.table.with_(insiders=False)  # the batch itself says whether singletons are protected
            if insiders and table.statistics is not None and table.statistics.contributors is not None:
                table = with_insiders(table, at_most=insiders)
                self._note(f"singletons: {len(table.attackers) - 1} respondents are treated as attackers.")
            elif not insiders:
                self._note("singletons: the batch does not ask to hold respondents off; they are not considered.")
            result.made = replace(one, table=table)
        releases = self._protect_tables(command, [self._record_result(result).table for result in chosen])
        if was_interrupted() and any(release.published for release in releases):
            self._note(f"{BEST_KEPT}.")
        for result, release in zip(chosen, releases, strict=True):
            result.release = release
            result.audit = release.audit() if release.published else None

    def _protect_tables(self, command: arb.Suppress, tables: Sequence[Table]) -> list[Release]:
        method, numbers = command.method, command.arguments
        if method == "RND":
            return [self._round_table(tables[0], numbers)]
        if method == "CTA":
            from cellguard.methods.adjust.adjust import adjust

            self._note("CTA: controlled tabular adjustment with the L1 norm.")
            return [adjust(tables[0], norm="l1")]
        from cellguard.methods.suppress.suppress import suppress

        minutes = numbers[0] if method in ("OPT", "MOD") and numbers and numbers[0] > 0 else _DEFAULT_MINUTES
        self._note(
            f"{method}: {_REPLACED[method]} is replaced by cellguard's search and branch-and-cut, confirmed "
            f"by the audit; at most {_describe_minutes(minutes)}."
        )
        linked = len(tables) > 1
        release = suppress(Table.from_linked(tables) if linked else tables[0], time_limit_s=minutes * _SECONDS)
        return [_extract_release(release, table) for table in tables] if linked else [release]

    def _round_table(self, table: Table, numbers: Sequence[float]) -> Release:
        from cellguard.methods.rounding.rounding import round as round_table

        if not numbers or numbers[0] <= 0:
            raise self._build_error("RND needs a base above 0.")
        base, steps, minutes = (*numbers, *(0.0, 10.0)[max(0, len(numbers) - 1) :])[:3]
        self._note(f"RND: controlled rounding to multiples of {base:g}; at most {_describe_minutes(minutes)}.")
        return round_table(table, base, max_step=int(steps) + 1, time_limit_s=minutes * _SECONDS)

    def _write(self, command: arb.WriteTable) -> None:
        result = self._number(command.table)
        made = self._record_result(result)
        options = dict(command.options)
        if not result.safe:
            self._note(f"table {command.table} is not written: no safe release was found.")
            return
        if (
            result.release is None
            and made.table.sensitive.any()
            and not is_internal_batch_output(command.format, options)
        ):
            raise self._build_error(
                f"table {command.table} has sensitive cells and is not protected.",
                "put <SUPPRESS> before <WRITETABLE>.",
            )
        path = self._resolve_target(command.path)
        self.outcome.written += write_batch_output(path, command.format, options, made, result.release)
        if is_internal_batch_output(command.format, options):
            self._note(f"{path.name} holds values of cells that are not published: keep it internal.")

    def _choose_method(self, command: arb.Note) -> None:
        if command.name == "LOGBOOK":
            self.logbook = self._resolve_target(command.argument) if command.argument else None
        elif command.name == "SOLVER":
            self._note(f"solver {command.argument or '?'} is not needed: cellguard brings its own.")
        elif command.name == "CLEAR":
            self.results, self.source, self.data = [], None, None
        elif command.name == "VERSIONINFO":
            from cellguard import __version__

            self._write_text(self._resolve_target(command.argument or "version.txt"), f"cellguard {__version__}\n")

    def _write_text(self, path: Path, text: str) -> None:
        write_text(path, text)
        self.outcome.written.append(path)

    def _write_logbook(self) -> None:
        if self.logbook is None:
            return
        lines = [f"batch {self.path.name}", *self.outcome.notes]
        for number, result in enumerate(self.outcome.results, 1):
            facts = result.summarize()
            facts.pop("status_of_cells", None)
            lines.append(f"table {number}: {facts}")
        lines += [f"written: {p.name}" for p in self.outcome.written]
        self._write_text(self.logbook, "\n".join(lines) + "\n")


def _read_singletons(command: arb.Suppress) -> int:
    """Return the largest number of respondents in a cell that the batch treats as attackers; 0 for none.

    ``MOD(table, minutes, singletons, singletons and others, minimum frequency)`` and
    ``GH(table, bounds, size, singletons)`` say so with a 1.
    """
    flags = command.arguments[1:4] if command.method == "MOD" else command.arguments[2:3] * (command.method == "GH")
    if not any(flag == 1 for flag in flags):
        return 0
    return 2 if len(flags) == 3 and flags[2] == 1 else 1


def _extract_release(release: Suppression, table: Table) -> Suppression:
    """Return the release of one of the linked tables."""
    joined = release.table
    place = {codes: i for i, codes in enumerate(zip(*joined.cell_codes().values(), strict=True))}
    own = table.cell_codes()
    rows = zip(
        *(own.get(d, [joined.codes[k][0]] * table.n_cells) for k, d in enumerate(joined.dimensions)), strict=True
    )
    suppressed = release.suppressed[[place[codes] for codes in rows]]
    status = release.status if release.status is Status.INFEASIBLE else Status.FEASIBLE
    cost = float(table.weights[suppressed & ~table.sensitive].sum())
    return Suppression(
        table=table,
        status=status,
        objective=cost if release.published else float("nan"),
        suppressed=suppressed,
        seconds=release.seconds,
        options=release.options,
        explanation=release.explanation or "protected together with the other tables of the batch.",
    )


def _describe_minutes(number: float) -> str:
    return f"{number:g} minute{'' if number == 1 else 's'}"

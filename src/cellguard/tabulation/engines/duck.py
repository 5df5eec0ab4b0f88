"""Records in this process: frames, CSV and Parquet files, DuckDB relations. DuckDB works out of core."""

from __future__ import annotations

import gzip
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from glob import glob
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from cellguard._io.facts import is_utf8
from cellguard._io.frames import MAX_HEADER, check_width_of_file, read_csv_header, read_frame, refuse_utf16
from cellguard._io.workbooks.sheet import is_workbook
from cellguard.exceptions import CellguardError, FormatError, InputError, InternalError
from cellguard.tabulation.engines import sql
from cellguard.tabulation.engines.gathered import Gathered, Where, normalize_where
from cellguard.tabulation.engines.lines import find_first_wrong_line, refuse_broken_lines
from cellguard.tabulation.people import People
from cellguard.tabulation.request import Facts, Finest, Roles, Scale, sort_first_look

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

__all__ = ["DuckRecords"]

T = TypeVar("T")

_VIEW = "_cellguard_records"
"""Name of the records in a query; unlikely to collide with a name in a user's own database."""
_KEPT = "_cellguard_kept"
"""Name of the table with the columns of files that were read once into our own database."""
_NUMBER = "_cellguard_number"
"""Column with the number of a record, in the order of the frame or the file."""


class DuckRecords:
    """Records that DuckDB reads; it spills to a private folder that is removed with this object."""

    def __init__(self, relation: duckdb.DuckDBPyRelation, connection: duckdb.DuckDBPyConnection | None = None) -> None:
        self._relation = relation
        self._connection = connection
        self._types = {name: str(kind) for name, kind in zip(relation.columns, relation.types, strict=True)}
        self._names: Sequence[str] = [name for name in relation.columns if name != _NUMBER]
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._text: str | None = None
        """The only text file that the records come from, if there is one."""
        self._who: str | None = None
        """SQL that identifies the contributor of a record in every query; None until identities are needed."""
        self.people = People()

    # ------------------------------------------------------------------ where from

    @classmethod
    def connect(cls, *, threads: int | None = None, memory_limit: str | None = None) -> duckdb.DuckDBPyConnection:
        """Return a database in memory that spills to a private folder."""
        first = "duckdb" not in sys.modules
        import duckdb

        if first:
            # DuckDB opens a connection of its own besides ours. A process that embeds Python without finalising it
            # (R does) closes it after its threads, and aborts. It is unused yet; DuckDB opens a new one when needed.
            duckdb.default_connection().close()
        connection = duckdb.connect()
        connection.execute("SET enable_progress_bar = false")
        connection.execute("SET preserve_insertion_order = false")
        if threads is not None:
            connection.execute(f"SET threads = {int(threads)}")
        if memory_limit is not None:
            try:
                connection.execute(f"SET memory_limit = {sql.quote_text(memory_limit)}")
            except duckdb.Error:
                raise InputError(f"memory_limit={memory_limit!r} is not a size.", hint="for example '4GB'.") from None
        return connection

    @classmethod
    def from_frame(cls, frame: Any, columns: Sequence[str], **options: Any) -> DuckRecords:
        """Read the records of a frame (pandas, polars, pyarrow, or a dict of columns)."""
        table, names = _convert_frame_to_arrow(frame, columns)
        if len(table.column_names):
            table = table.append_column(_NUMBER, [np.arange(len(table))])
        connection = cls.connect(**options)
        records = cls._allow_spilling(connection, connection.from_arrow(table))
        records._names = names
        return records

    @classmethod
    def from_files(cls, path: str | Path, *, encoding: str | None = None, **options: Any) -> DuckRecords:
        """Read the records of Parquet or CSV files; `path` may contain wildcards."""
        files = sorted(glob(str(path), recursive=True)) or [str(path)]  # noqa: PTH207  (absolute patterns too)
        for name in files:
            if not Path(name).is_file():
                raise InputError(f"{path}: no such file.", hint="check the name and the folder.")
        if is_workbook(files[0]):
            frame = read_frame(files[0])
            return cls.from_frame(frame, list(frame), **options)
        connection = cls.connect(**options)
        import duckdb

        kind = "parquet" if files[0].lower().endswith((".parquet", ".pq")) else "csv"
        try:
            if kind == "parquet":
                relation = connection.read_parquet(files)
                check_width_of_file(files[0], len(relation.columns))
                return cls._allow_spilling(connection, relation)
            records = cls._allow_spilling(connection, _read_csv(connection, files, encoding))
            records._text = files[0] if len(files) == 1 else None
            return records
        except duckdb.Error as error:  # its text may contain records, so do not pass it on
            connection.close()
            if kind == "csv" and len(files) == 1:
                refuse_broken_lines(files[0])
            raise FormatError.at(
                path, None, f"cannot be read as {kind} ({type(error).__name__}).", hint="is the file complete?"
            ) from None

    @classmethod
    def _allow_spilling(cls, connection: duckdb.DuckDBPyConnection, relation: duckdb.DuckDBPyRelation) -> DuckRecords:
        records = cls(relation, connection)
        records._folder = tempfile.TemporaryDirectory(prefix="cellguard-")  # mode 0700
        connection.execute(f"SET temp_directory = {sql.quote_text(records._folder.name)}")
        return records

    def keep_columns(self, columns: Sequence[str]) -> None:
        """Read some columns of the files into the database, once; it keeps on disk what does not fit in memory."""
        if self._connection is None:
            return
        wanted = ", ".join(sql.quote_column(column) for column in dict.fromkeys(columns) if column in self._types)
        if wanted:
            # rows stay in the order of the file, so that their numbers are the same in every run
            self._connection.execute("SET preserve_insertion_order = true")
            self._query(lambda: self._relation.project(wanted).create(_KEPT))
            self._connection.execute("SET preserve_insertion_order = false")
            self._relation = self._connection.table(_KEPT).project(f"*, rowid AS {_NUMBER}")
            self._types[_NUMBER] = "BIGINT"

    @property
    def numbered(self) -> bool:
        """Whether a record is identified as the same person in every query."""
        return self._who is not None

    def number(self, columns: Sequence[str]) -> None:
        """Identify every record as one person in all later queries.

        In our own database a record has a number. Another database has no known order, so its columns identify a
        record: all queries together see only these, and records that are equal in all of them are in the same cells.
        """
        if self._connection is None:
            texts = ", ".join(f"coalesce(CAST({sql.quote_column(c)} AS VARCHAR), '')" for c in dict.fromkeys(columns))
            self._who = f"concat_ws(chr(31), {texts})"
            return
        if _NUMBER not in self._types:
            self.keep_columns(columns)
        self._who = _NUMBER

    def view(self, gathered: Gathered | None = None) -> DuckRecords:
        """Return the same records for one query; a filter of that query does not affect the next one."""
        return _View(self, gathered)

    def close(self) -> None:
        """Close the database, if it is our own, and remove spilled files; leave a user's database unchanged."""
        if self._connection is not None:
            self._connection.close()
        else:
            self._relation.query(_VIEW, f"DROP VIEW IF EXISTS {_VIEW}")
        if self._folder is not None:
            self._folder.cleanup()

    # ------------------------------------------------------------------ what they say

    def list_columns(self) -> Sequence[str]:
        """Return the names of the columns."""
        return self._names

    def find_first_line(self, column: str, decimal: str, *, missing: bool) -> int | None:
        """Return the first line of the text file without an entry in a column, or with one that is not a number."""
        return None if self._text is None else find_first_wrong_line(self._text, column, decimal, missing=missing)

    def restrict_to(self, where: Mapping[str, str | Sequence[str]]) -> None:
        """Leave out records with other codes."""
        wanted = (
            f"CAST({sql.quote_column(column)} AS VARCHAR) IN ({sql.quote_texts(codes)})"
            for column, codes in where.items()
        )
        self._relation = self._relation.filter(" AND ".join(wanted))

    @property
    def who_sql(self) -> str:
        """SQL that identifies the contributor of a record; contributors must be numbered."""
        return cast("str", self._who)

    def run_sql(self, question: Callable[[str], str]) -> pa.Table:
        """Return the result of a SQL query; `question` makes it from the name of the records."""
        return self._run(question(_VIEW))

    def _run(self, query: str) -> pa.Table:
        return self._query(lambda: self._relation.query(_VIEW, query).to_arrow_table())

    def _query(self, question: Callable[[], T]) -> T:
        """Run a query, and convert the database's errors to ours.

        It runs in a thread of its own: on some platforms DuckDB ignores Ctrl-C, on others it raises an error for it.
        """
        import duckdb

        with ThreadPoolExecutor(1) as thread:
            answer = thread.submit(question)
            try:
                return answer.result()
            except KeyboardInterrupt:
                while self._connection is not None and not answer.done():  # an interrupt before the start is ignored
                    self._connection.interrupt()
                    wait([answer], timeout=0.1)
                raise
            except duckdb.InterruptException:
                raise KeyboardInterrupt from None
            except duckdb.Error as error:
                if self._text is not None and isinstance(error, duckdb.InvalidInputException):
                    refuse_broken_lines(self._text)
                raise _convert_duckdb_error(error) from None

    def _keep(self, table: str, query: str) -> str:
        """Return a source to select from; in our own database the rows are computed once."""
        if self._connection is None:
            return f"({query}) AS {table}"
        import duckdb

        with suppress(duckdb.Error):
            self._connection.execute(f"DROP TABLE IF EXISTS {table}")
        self._query(lambda: self._relation.query(_VIEW, query).create(table))
        return table

    def number_sql(self, column: str, decimal: str) -> str:
        """Return SQL for a column as numbers, NULL where it is not a number."""
        name = sql.quote_column(column)
        if self._types[column] != "VARCHAR":
            return f"TRY_CAST({name} AS DOUBLE)"
        text = f"trim({name})"
        if decimal != ".":
            text = f"replace({text}, {sql.quote_text(decimal)}, '.')"
        return f"TRY_CAST({text} AS DOUBLE)"

    def format_given_sql(self, column: str) -> str:
        """Return SQL for whether a record has an entry."""
        name, kind = sql.quote_column(column), self._types[column]
        if kind == "VARCHAR":
            return f"({name} IS NOT NULL AND trim({name}) <> '')"
        if kind in ("DOUBLE", "FLOAT"):
            return f"({name} IS NOT NULL AND NOT isnan({name}))"
        return f"({name} IS NOT NULL)"

    def list_distinct(self, columns: Sequence[str]) -> pa.Table:
        """Return the combinations of codes that occur in some columns."""
        wanted = ", ".join(f"CAST({sql.quote_column(column)} AS VARCHAR) AS c{i}" for i, column in enumerate(columns))
        return self._run(f"SELECT DISTINCT {wanted} FROM {_VIEW}")

    def collect_facts(self, roles: Roles) -> Facts:
        """Inspect the records in one pass."""
        wanted = ["count(*) AS records"]
        where = f"WHERE {self.format_given_sql(roles.value)}" if roles.skip_missing and roles.value else ""
        for part, column in roles.numeric.items():
            x, given = self.number_sql(column, roles.decimal), self.format_given_sql(column)
            weight = self.number_sql(roles.weight, roles.decimal) if roles.weight and part != "weight" else None
            wanted += sql.format_first_look_sql(part, x, given, sql.format_weighted_sql(weight, x))
            if part in ("value", "shadow"):
                wanted.append(f"coalesce(sum(abs({x})) FILTER (isfinite({x})), 0) AS plain_{part}")
        if roles.holding:
            wanted.append(f"count(*) FILTER (NOT {self.format_given_sql(roles.holding)}) AS missing_holding")
        return sort_first_look(self._run(f"SELECT {', '.join(wanted)} FROM {_VIEW} {where}").to_pylist()[0])

    # ------------------------------------------------------------------ added up

    def aggregate_finest(self, roles: Roles, scales: Mapping[str, Scale], units: int) -> Finest:
        """Add up the records, and keep enough of the largest contributions to fill `units` units."""
        items = self._format_records_sql(roles)
        if roles.holding:
            items = self._keep("items", sql.format_holdings_sql(roles, scales, items))
        codes = [f"d{i}" for i in range(len(roles.dimensions))]
        by = ", ".join(codes)
        sums = [*codes, *sql.format_measures_sql(roles, scales)]
        plain = not (roles.weight or roles.request or roles.holding)
        if units and plain:  # the same pass finds the largest numbers and their contributors
            sums.append(f"max({'{x: x, i: i}' if self.numbered else 'x'}, {units}) AS top")
        cells = self._run(f"SELECT {', '.join(sums)} FROM {items} GROUP BY {by}")
        top = shared = None
        alone = "WHERE cells = 1" if roles.holding else ""
        if units and not plain:
            person = ["i"] if self.numbered and not roles.holding else []
            ties = [*roles.select_present(weight="w", request="r DESC", holding="h"), *person]
            order = "ORDER BY " + ", ".join(["x DESC", *ties])
            window = f"OVER (PARTITION BY {by} {order} ROWS UNBOUNDED PRECEDING)"
            place = f"sum(w) {window} - w" if roles.weight else f"row_number() {window} - 1"
            kept = [*codes, "x", *roles.select_present(weight="w", request="r", holding="h"), *person]
            top = self._run(
                f"SELECT {', '.join(kept)} FROM (SELECT *, {place} AS place FROM {items} {alone}) WHERE place < {units}"
            )
        if roles.holding:
            kept = [*codes, "h", "sx", "n", *roles.select_present(weight="ax, wax, sw", waiver="q", request="r")]
            shared = self._run(f"SELECT {', '.join(kept)} FROM {items} WHERE cells > 1")
        return Finest(cells, top, shared)

    def _format_records_sql(self, roles: Roles) -> str:
        """Return SQL for the records with their columns named by their roles."""
        weight = self.number_sql(roles.weight, roles.decimal) if roles.weight else None
        value = self.number_sql(roles.value, roles.decimal) if roles.value else "1.0"
        if weight is None:  # without weights, sum the contributions; with weights, what they represent
            value = sql.format_rounded_sql(value, roles.decimals)
        looked_at = self.number_sql(roles.shadow, roles.decimal) if roles.shadow else value
        columns = [f"{sql.quote_column(column)} AS d{i}" for i, column in enumerate(roles.dimensions)]
        columns += [
            f"{sql.format_rounded_sql(sql.format_weighted_sql(weight, value), roles.decimals)} AS y",
            f"abs({looked_at}) AS x",
            f"{looked_at} AS sx",
        ]
        columns += [f"{sql.format_weighted_sql(weight, f'abs({looked_at})')} AS wx", f"{weight or '1.0'} AS w"]
        if roles.cost:
            columns.append(f"{sql.format_weighted_sql(weight, self.number_sql(roles.cost, roles.decimal))} AS c")
        if roles.holding:
            alone = roles.standalone
            holding = self._format_holding_sql(roles.holding) if alone else sql.quote_column(roles.holding)
            columns.append(f"{holding} AS h")
        elif self._who is not None:
            columns.append(f"{self._who} AS i")
        if roles.waiver:
            columns.append(f"{self._format_truth_sql(roles.waiver)} AS q")
        if roles.request:
            kinds = " ".join(
                f"WHEN trim(CAST({sql.quote_column(roles.request)} AS VARCHAR)) = {sql.quote_text(code)} THEN {kind}"
                for kind, code in enumerate(roles.request_codes[:2], 1)
            )
            columns.append(f"CASE {kinds} ELSE 0 END AS r")
        where = f"WHERE {self.format_given_sql(roles.value)}" if roles.skip_missing and roles.value else ""
        return f"(SELECT {', '.join(columns)} FROM {_VIEW} {where}) AS items"

    def _format_holding_sql(self, column: str) -> str:
        """Return SQL for the holding of a record; a record without one is its own holding, by its number."""
        name, number = sql.quote_column(column), _NUMBER if _NUMBER in self._types else "row_number() OVER ()"
        if self._who is not None and _NUMBER not in self._types:  # who are alike in everything are several all the same
            number = f"{self._who} || chr(31) || row_number() OVER (PARTITION BY {self._who})"
        return f"CASE WHEN {self.format_given_sql(column)} THEN CAST({name} AS VARCHAR) ELSE chr(31) || {number} END"

    def _format_truth_sql(self, column: str) -> str:
        name = sql.quote_column(column)
        if self._types[column] == "VARCHAR":
            return f"coalesce(lower(trim({name})) IN ('1', 'true', 't', 'yes', 'y'), false)"
        return f"coalesce(CAST({name} AS BOOLEAN), false)"


class _View(DuckRecords):
    """Records of a database that several tables share; results for all of them may have been gathered."""

    def __init__(self, records: DuckRecords, gathered: Gathered | None = None) -> None:
        super().__init__(records._relation, records._connection)
        self._names, self._text, self._who, self.people = records._names, records._text, records._who, records.people
        self._gathered = gathered
        self._where: Where = ()

    def restrict_to(self, where: Mapping[str, str | Sequence[str]]) -> None:
        """Leave out records with other codes."""
        super().restrict_to(where)
        self._where = normalize_where(where)

    def collect_facts(self, roles: Roles) -> Facts:
        """Inspect the records in one pass, for all tables together if possible."""
        found = None if self._gathered is None else self._gathered.get_facts(roles, self._where)
        return super().collect_facts(roles) if found is None else found

    def aggregate_finest(self, roles: Roles, scales: Mapping[str, Scale], units: int) -> Finest:
        """Add up the records, for all tables together if possible."""
        found = None if self._gathered is None else self._gathered.get_finest(roles, scales, units, self._where)
        return super().aggregate_finest(roles, scales, units) if found is None else found

    def close(self) -> None:
        """Do nothing: other tables still use the database."""


def _convert_duckdb_error(error: duckdb.Error) -> CellguardError:
    """Return our own error; the text of the database's error may contain records and is not passed on."""
    import duckdb

    kind = type(error).__name__
    if isinstance(error, (duckdb.BinderException, duckdb.ParserException, duckdb.CatalogException)):
        return InternalError(f"the database does not understand the question ({kind})")
    return InputError(
        f"the records cannot be added up ({kind}).",
        hint="are the files complete, with numbers where numbers are expected, and is there enough disk?",
    )


def _convert_frame_to_arrow(frame: Any, columns: Sequence[str]) -> tuple[pa.Table, Sequence[str]]:
    """Return the required columns of a frame, without copying if its library allows, and all names."""
    import pyarrow as pa

    from cellguard._io.frames import read_frame_columns

    if not isinstance(frame, (pa.Table, Mapping)):
        import narwhals as nw

        with suppress(TypeError):
            native = nw.from_native(frame, eager_only=True)
            try:
                return native.select([c for c in native.columns if c in columns]).to_arrow(), native.columns
            except (pa.ArrowInvalid, pa.ArrowTypeError):
                raise InputError(
                    "a column of the frame mixes kinds of values.", hint="make it text or numbers."
                ) from None
    given = read_frame_columns(frame)
    return pa.table({name: column for name, column in given.items() if name in columns}), list(given)


def _read_csv(
    connection: duckdb.DuckDBPyConnection, files: Sequence[str], encoding: str | None
) -> duckdb.DuckDBPyRelation:
    """Read CSV files as text: the role of a column decides whether 01 is a code or a number."""
    with _stream_of_records(files[0]) as stream:
        head = stream.read(MAX_HEADER + 1)
    if not head.strip():
        raise FormatError.at(files[0], None, "the file is empty.", hint="the first line names the columns.")
    refuse_utf16(files[0], head)
    _, delimiter = read_csv_header(files[0], head)
    encoding = encoding or ("utf-8" if all(map(_is_utf8, files)) else "latin-1")
    names_of_files = ", ".join(sql.quote_text(name) for name in files)
    options = f"header = true, all_varchar = true, delim = {sql.quote_text(delimiter)}, quote = '\"', escape = '\"'"
    return connection.sql(f"FROM read_csv([{names_of_files}], {options}, encoding = {sql.quote_text(encoding)})")


def _stream_of_records(path: str) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(path, "rb") if path.lower().endswith(".gz") else open(path, "rb"))  # noqa: PTH123


def _is_utf8(path: str) -> bool:
    with _stream_of_records(path) as stream:
        return is_utf8(stream)

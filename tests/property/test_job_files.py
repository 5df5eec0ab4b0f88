"""Whatever a job file says, it is read or refused in words: never a crash, never a traceback."""

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cellguard.exceptions import CellguardError
from cellguard.jobs import read_job

LINES = """\
name = "small"
seed = 1
[data]
file = "firms.csv"
value = "turnover"
[dimensions.region]
hierarchy = ["N", "S"]
[dimensions.sector]
[[tables]]
dimensions = ["region", "sector"]
[[rules]]
rule = "p_percent"
p = 10
[[rules]]
rule = "manual"
cells = [{region = "N"}]
[levels]
lower_ratio = 0.5
[method]
name = "suppress"
rounds = 2
[[attackers]]
name = "a"
knows = [{cell = {region = "N"}, contribution = 1.0}]
[compare]
methods = ["round"]
[limits]
time_limit_s = 5
[output]
folder = "out"
formats = ["csv"]
""".splitlines()
ATTACKED = [
    *(line for line in LINES[: LINES.index("[[attackers]]")] if line != "seed = 1"), "[attack]", 'scenario = "B1"', *LINES[LINES.index("[compare]") :]
]  # fmt: skip
ATTACKED[ATTACKED.index('name = "suppress"')] = 'name = "adjust"'
ATTACKED.remove("rounds = 2")
VALUES = [
    "true",
    "-1",
    "1e400",
    "nan",
    '""',
    '"x"',
    "[]",
    "[[]]",
    "{}",
    "{a = 1}",
    "2020-01-01",
    '["region", 3]',
    "[{}]",
    "0",
]


@pytest.fixture(scope="module")
def office(tmp_path_factory):
    folder = tmp_path_factory.mktemp("office")
    (folder / "firms.csv").write_text("region,sector,turnover\nN,A,1\nS,B,2\n")
    return folder


@pytest.mark.parametrize("lines", [LINES, ATTACKED])
def test_the_job_is_right_as_it_stands(office, lines):
    (office / "job.toml").write_text("\n".join(lines))
    assert read_job(office / "job.toml").job.name == "small"


@settings(max_examples=60)
@given(data=st.data())
def test_changed_lines_are_read_or_refused(office, data):
    lines = list(data.draw(st.sampled_from([LINES, ATTACKED])))
    for _ in range(data.draw(st.integers(1, 4))):
        k = data.draw(st.integers(0, len(lines) - 1))
        kind = data.draw(st.sampled_from(["value", "drop", "twice", "key"]))
        if kind == "drop" and len(lines) > 1:
            del lines[k]
        elif kind == "twice":
            lines.insert(k, lines[k])
        elif "=" in lines[k]:
            key, _, value = lines[k].partition(" = ")
            lines[k] = f"{key} = {data.draw(st.sampled_from(VALUES))}" if kind == "value" else f"{key}x = {value}"
    (office / "job.toml").write_text("\n".join(lines))
    with suppress(CellguardError):
        read_job(office / "job.toml")

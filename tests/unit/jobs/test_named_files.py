"""Every key of a job that names a file is known as such: the page confines them to its folder."""

from typing import Annotated, get_args, get_origin

import pytest

from cellguard.jobs.definition.model import Job
from cellguard.jobs.definition.sections import NAMES_A_FILE, Section, list_named_files
from cellguard.web.places import Root, list_outside_files

TEXTS = {
    "AdjustSection.keep", "AdjustSection.square_weights", "PerturbSection.given", "AttackerSection.name", "DataSection.cost", "DataSection.encoding", "DataSection.holding", "DataSection.request", "DataSection.request_codes",
    "DataSection.shadow", "DataSection.value", "DataSection.waiver", "DataSection.weight", "DimensionSection.levels",
    "DimensionSection.missing", "DimensionSection.total", "IndicatorSection.name", "IndicatorSection.shadow_of",
    "IndicatorSection.value", "Job.different", "Job.equations", "Job.name", "Job.title", "Job.unconfirmed", "LimitsSection.memory", "LimitsSection.scheduler", "PerturbSection.areas", "DerivedSection.by", "DerivedSection.name", "DerivedSection.of", "DerivedSection.period",
    "LedgerSection.correspondence", "LedgerSection.office", "LedgerSection.period", "LedgerSection.population", "LedgerSection.sums", "SuppressSection.must_publish", "SuppressSection.prefer", "SuppressSection.already_suppressed",
    "ManualSection.cells", "MethodSection.name", "OutputSection.dataflow", "PrioritySection.indicators",
    "PrioritySection.only", "PrioritySection.tables", "PrioritySection.value", "RuleSection.excluding",
    "RoundSection.keep", "RuleSection.indicators", "RuleSection.only", "RuleSection.rule", "RuleSection.tables", "TableSection.columns",
    "AttackSection.weights", "TableSection.count", "TableSection.dimensions", "TableSection.indicators", "TableSection.name",
    "TableSection.sheet", "TableSection.top", "TableSection.total", "TableSection.value", "TableSection.where",
}  # fmt: skip
"""Keys whose texts are read as words, names of columns or codes. A new key belongs here only if no file is opened."""
FILES = {
    "data.file": "x", "data.template": "x", "data.table": "x", "dimensions.d.hierarchy": "x", "tables.0.file": "x",
    "tables.0.hierarchies.d": "x", "priorities.0.published": "x", "rules.0.file": "x", "method.key": "x", "output.folder": "x", "ledger.folder": "x",
    "output.layout": "x",
}  # fmt: skip


def sections(kind=Job):
    """Return the section and every section below it."""
    if isinstance(kind, type) and issubclass(kind, Section):
        return {kind}.union(*(sections(field.annotation) for field in kind.model_fields.values()))
    return set().union(*map(sections, get_args(kind)))


def has_plain_text(kind):
    if get_origin(kind) is Annotated:
        return NAMES_A_FILE not in get_args(kind)[1:] and has_plain_text(get_args(kind)[0])
    inner = get_args(kind)[1:] if get_origin(kind) is dict else get_args(kind)
    return kind is str or any(has_plain_text(one) for one in inner)


def owner(section, name):
    """Return the section that a key comes from."""
    return next(kind for kind in reversed(section.__mro__) if name in getattr(kind, "model_fields", {})).__name__


def test_every_text_of_a_job_is_a_word_or_the_name_of_a_file():
    found = {
        f"{owner(section, name)}.{name}"
        for section in sections()
        for name, field in section.model_fields.items()
        if NAMES_A_FILE not in field.metadata and has_plain_text(field.annotation)
    }
    assert len(sections()) > 20
    assert found - TEXTS == set()


def nested(path, value):
    head, *rest = path
    inner = nested(rest, value) if rest else value
    return [inner] if head == "0" else {head: inner}


@pytest.mark.parametrize("key", FILES)
@pytest.mark.parametrize(
    "name", ["../secret.csv", "/etc/passwd", "link.csv", "a/../../secret.csv", "o*/../../secret.csv"]
)
def test_no_key_leads_out_of_the_folder(tmp_path, key, name):
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "secret.csv").write_text("x\n1\n")
    (inside / "link.csv").symlink_to(tmp_path / "secret.csv")
    raw = nested(key.split("."), name)
    found = list_outside_files(raw, Root(inside), inside)
    assert [".".join(map(str, mistake.path)) for mistake in found] == [key]
    assert list_outside_files(nested(key.split("."), "own.csv"), Root(inside), inside) == []


def test_the_keys_above_are_all_that_name_files():
    raw: dict = {}
    for key in FILES:
        head, *rest = key.split(".")
        entry = nested(rest, "x")
        if isinstance(entry, list):
            raw[head] = [raw.get(head, [{}])[0] | entry[0]]
        else:
            raw[head] = raw.get(head, {}) | entry
    assert {".".join(map(str, place)) for place, _ in list_named_files(Job, raw)} == set(FILES)
    marked = {
        f"{owner(section, name)}.{name}"
        for section in sections()
        for name, field in section.model_fields.items()
        if NAMES_A_FILE in field.metadata or NAMES_A_FILE in str(field.annotation)
    }
    assert len(marked) == len(FILES)

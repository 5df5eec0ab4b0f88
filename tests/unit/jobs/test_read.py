import tomllib

import pytest

from cellguard.cli import main
from cellguard.exceptions import FormatError, InputError
from cellguard.jobs import JobError, build_job_schema, read_job


def mistakes_of(office, text):
    (office / "job.toml").write_text(text)
    with pytest.raises(JobError) as caught:
        read_job(office / "job.toml")
    return caught.value.mistakes


def changed(office, old, new):
    text = (office / "job.toml").read_text()
    assert old in text
    return text.replace(old, new)


def test_a_right_job_is_read(office):
    job = read_job(office / "job.toml").job
    assert job.name == "small"
    assert list(job.dimensions) == ["region", "sector"]
    assert job.method.rounds == 2


@pytest.mark.parametrize(
    ("old", "new", "place", "words"),
    [
        ("insiders = true", "sed = 1", "sed", "did you mean 'seed'"),
        ("insiders = true", 'seed = "one"', "seed", "whole number"),
        ("insiders = true", "seed = -1", "seed", "at least 0"),
        ('name = "small"', 'name = "../etc/passwd"', "name", "letters, digits"),
        ('value = "turnover"', 'valeu = "turnover"', "data.valeu", "did you mean 'value'"),
        ('value = "turnover"', 'value = "turnovr"', "data.value", "did you mean 'turnover'"),
        ('file = "firms.csv"', 'file = "frims.csv"', "data.file", "no such file"),
        ('file = "firms.csv"', "file = 3", "data.file", "a text in quotes"),
        ('file = "firms.csv"', 'file = "firms.csv"\ntable = "x.jj"', "data", "not both"),
        ("[dimensions.sector]", "[dimensions.sectr]", "dimensions.sectr", "did you mean 'sector'"),
        ('hierarchy = "region.txt"', 'hierarchy = "regoin.txt"', "dimensions.region.hierarchy", "no such file"),
        ('hierarchy = "region.txt"', 'hierachy = "region.txt"', "dimensions.region.hierachy", "did you mean 'hierarchy'"),
        ("[dimensions.sector]", "[dimensions.turnover]", "dimensions.turnover", "cannot be both"),
        ('rule = "p_percent"', 'rule = "p_percnt"', "rules.1.rule", "did you mean 'p_percent'"),
        ("p = 10", "q = 10", "rules.1", "needs p"),
        ("p = 10", "p = 10\nn = 3", "rules.1.n", "has no n"),
        ("p = 10", "p = -10", "rules.1.p", "above 0"),
        ("p = 10", 'p = 10\nonly = {regoin = "N1"}', "rules.1.only", "no dimension 'regoin'"),
        ('[[rules]]\nrule = "p_percent"\np = 10', "", "rules", "at least one rule"),
        ("rounds = 2", "base = 5", "method.base", "belongs to round and perturb"),
        ('name = "suppress"', 'name = "supress"', "method.name", "did you mean 'suppress'"),
        ("[output]", '[attack]\nscenario = "B2"\n[output]', "attack.scenario", "attacks the results of adjust"),
        ("[output]", "[levels]\nlower = 0.1\n[output]", "levels", "given together"),
        ("[output]", "[levels]\nupper = 20\nlower = 0.1\n[output]", "levels.upper", "write 0.2 for 20%"),
        ("[output]", "[levels]\nlower_ratio = 25\n[output]", "levels.lower_ratio", "write 0.25 for 25%"),

        ("[output]", '[[tables]]\ndimensions = ["region", "sektor"]\n[output]', "tables.1.dimensions", "no dimension 'sektor'"),
        ("[output]", '[[tables]]\ndimensions = ["region"]\n[output]', "dimensions.sector", "in none of the tables"),
        ("[output]", '[[attackers]]\nname = "f"\nknows = [{cell = "N1"}]\n[output]', "attackers.1.knows", "contribution"),
        ("[output]", "[limits]\ntime_limit_s = true\n[output]", "limits.time_limit_s", "a number is needed"),
        ("[output]", '[compare]\nmethods = ["magic"]\n[output]', "compare.methods.1", "must be one of"),
        ("rounds = 2", 'resist = "matching"', "method.resist", "about tables of counts"),
        ("rounds = 2", 'rounds = 2\nresist = "matching"', "method.resist", "nothing is searched"),
        ("[output]", '[attack]\nscenario = "matching"\n[output]', "attack.scenario", "how wide the range"),
        ("[output]", '[attack]\nscenario = "nearest"\n[output]', "attack.scenario", "round and perturb"),
        ("[output]", '[attack]\nscenario = "A"\n[output]', "attack.scenario", "must be one of"),
        ("[output]", "[levels]\nwidth = 8\nupper = 1\nlower = 1\n[output]", "levels.width", "stands alone"),
        ("[dimensions.sector]", "[dimensions.sector]\ndigits = [1, 0]", "dimensions.sector.digits.2", "at least 1"),
        ('hierarchy = "region.txt"', 'hierarchy = "region.txt"\ndigits = [1]', "dimensions.region.digits", "hierarchy is given too"),
        ('value = "turnover"', 'value = "turnover"\nstandalone = true', "data.standalone", "without a holding"),
        ('folder = "out"', 'folder = "."', "output.folder", "the job itself"),
        ('formats = ["csv", "parquet", "xlsx", "jj"]', 'formats = ["pdf"]', "output.formats.1", "must be one of"),
        ('formats = ["csv", "parquet", "xlsx", "jj"]', "formats = []", "output.formats", "at least one"),
    ],
)  # fmt: skip
def test_each_mistake_is_told_with_its_place(office, old, new, place, words):
    found = mistakes_of(office, changed(office, old, new))
    hit = [m for m in found if f"{place}: " in m]
    assert hit, found
    assert any(words in m for m in hit), hit


def test_all_mistakes_at_once_in_the_order_of_the_file(office):
    text = changed(office, "insiders = true", "sed = 1").replace('value = "turnover"', 'value = "nothing"')
    text = text.replace("p = 10", "p = 0").replace('folder = "out"', 'folder = "."').replace("rounds = 2", "round = 2")
    found = mistakes_of(office, text)
    assert [m.partition(",")[0] for m in found] == ["line 2", "line 6", "line 15", "line 19", "line 22"]


def test_exit_code_1_and_no_traceback(office, capsys):
    (office / "job.toml").write_text("name = 3\n[output]\nfoldr = 1\n")
    assert main(["protect", str(office / "job.toml")]) == 1
    shown = capsys.readouterr().err
    assert "5 mistakes" in shown  # name, output.foldr; data, dimensions and rules are missing
    assert "Traceback" not in shown


@pytest.mark.parametrize("text", ["name = ", "\0", "[a]\n[a]", "a = [" * 300])
def test_not_toml(office, text):
    (office / "job.toml").write_text(text)
    with pytest.raises(FormatError):
        read_job(office / "job.toml")


def test_a_job_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_job(tmp_path / "none.toml")


def test_schema_explains_every_key(capsys):
    assert main(["init", "--schema"]) == 0
    needed = {"data", "dimensions", "rules", "method", "output", "attackers", "limits"}
    assert build_job_schema()["properties"].keys() >= needed
    for section in build_job_schema()["$defs"].values():
        for name, key in section["properties"].items():
            assert "description" in key, name


def test_places_survive_texts_over_several_lines(office):
    text = 'name = "x"\ntitle = """\n[data]\nseed = 3\n"""\nsed = 1\n[data]\nfile = "none.csv"\n'
    assert tomllib.loads(text)
    found = mistakes_of(office, text)
    assert any(m.startswith("line 6, sed") for m in found)
    assert any(m.startswith("line 8, data.file") for m in found)

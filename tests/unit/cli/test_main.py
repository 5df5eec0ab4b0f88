import subprocess
import sys
from importlib import import_module

import pytest

from cellguard import __version__, cli
from cellguard.cli import VERBS, main
from cellguard.exceptions import InputError, InternalError
from cellguard.methods.registry import METHODS


@pytest.fixture
def verb(monkeypatch):
    """Register a verb that runs the function given to it."""

    def register(function):
        monkeypatch.setitem(VERBS, "trial", cli.Verb("Start", "Try."))
        monkeypatch.setattr(cli, "_load_command", lambda _name: function)

    return register


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"cellguard {__version__}\n"


def test_help_lists_every_verb_with_its_summary(capsys):
    assert main(["--help"]) == 0
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
    for name, (_, summary) in VERBS.items():
        assert f"{name} {summary}" in shown


def test_no_words_is_help(capsys):
    assert main([]) == 0
    assert "Make statistical tables safe" in capsys.readouterr().out


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_has_a_command_and_explains_itself(name, capsys):
    if name not in METHODS:
        assert "command" in import_module(f"cellguard.cli.commands.{VERBS[name].panel.lower()}.{name}").__all__
    assert main([name, "--help"]) == 0
    assert f"cellguard {name}" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words", [["infos"], ["--nonsense"], ["info"], ["info", "--nonsense", "x.jj"], ["info", "a.jj", "b.jj"]]
)
def test_wrong_use_is_exit_code_1(words, capsys):
    assert main(words) == 1
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    assert "Usage: cellguard" in captured.err
    assert captured.out == ""


def test_a_near_miss_gets_a_hint(capsys):
    main(["inof"])
    assert "Did you mean 'info'?" in capsys.readouterr().err


def test_wrong_input_is_exit_code_1_with_its_hint(verb, capsys):
    def fail():
        raise InputError("this is wrong.", hint="do that.")

    verb(fail)
    assert main(["trial"]) == 1
    captured = capsys.readouterr()
    assert captured.err == "cellguard: this is wrong.\nHint: do that.\n"
    assert captured.out == ""


def test_an_unexpected_error_is_exit_code_3_and_shows_no_value(verb, capsys, monkeypatch):
    def fail():
        raise ZeroDivisionError("secret 4711")

    monkeypatch.delenv("CELLGUARD_DEBUG", raising=False)
    verb(fail)
    assert main(["trial"]) == 3
    err = capsys.readouterr().err
    assert "internal error: ZeroDivisionError in " in err
    assert "please report it" in err
    assert "4711" not in err
    assert "Traceback" not in err


def test_the_traceback_is_there_when_asked_for(verb, capsys, monkeypatch):
    def fail():
        raise ZeroDivisionError

    monkeypatch.setenv("CELLGUARD_DEBUG", "1")
    verb(fail)
    assert main(["trial"]) == 3
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (InternalError("residual too large"), 3, "internal error: residual too large"),
        (MemoryError(), 1, "memory"),
        (PermissionError(13, "Permission denied", "out.csv"), 1, "out.csv: Permission denied."),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_other_ends(verb, capfd, error, code, text):
    def fail():
        raise error

    verb(fail)
    assert main(["trial"]) == code
    assert text in capfd.readouterr().err


def test_no_safe_release_is_exit_code_2(verb, capsys):
    def fail():
        raise cli.NoSafeReleaseError("no release: infeasible.")

    verb(fail)
    assert main(["trial"]) == 2
    assert "no release: infeasible." in capsys.readouterr().err


def test_python_m_cellguard():
    done = subprocess.run([sys.executable, "-m", "cellguard", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"cellguard {__version__}\n"


def test_help_loads_no_array_library():
    code = "import sys; from cellguard.cli import main; main(['--help']); print(*(m for m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "scipy", "cellguard._core"} & set(done.stdout.split())

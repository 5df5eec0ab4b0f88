import io

from cellguard.jobs.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def work(progress):
    with progress:
        progress.begin_phase("protect", limit_s=60)
        progress.tell(123456.0, 100000.0)
        progress.note("a remark")
        progress.begin_phase("audit")


def test_plain_lines_tell_phases_and_gaps_but_no_sum():
    stream = io.StringIO()
    work(Progress(stream=stream))
    lines = stream.getvalue().splitlines()
    assert lines == ["protect", "  gap 19.0% after 0 s, at most 60 s left", "a remark", "audit"]


def test_a_bar_on_a_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "110")
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    work(Progress(stream=stream))
    shown = stream.getvalue()
    for word in ("protect", "gap 19.0%", "a remark"):
        assert word in shown


def test_quiet():
    stream = Terminal()
    work(Progress(stream=stream, quiet=True))
    assert stream.getvalue() == ""

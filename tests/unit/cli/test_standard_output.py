"""Standard output is ours: what a library prints there is lost."""

import os
import subprocess
import sys


def test_what_a_library_prints_is_not_among_the_output():
    code = """
import ctypes, sys
from cellguard import __main__, cli
def work():
    libc = ctypes.CDLL(None)
    libc.printf(b"an upper bound of 349.729\\n")
    libc.fflush(None)
    print("ours")
cli._load_command = lambda name: work
sys.argv = ["cellguard", "info"]
__main__.console()
"""
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert ran.stdout == "ours\n"
    assert "349" not in ran.stderr


def test_pairs_have_a_title_in_one_line_and_seconds_of_a_clock(capsys):
    from cellguard.cli.support.printing import print_pairs

    print_pairs(
        "manifest.json: the files it lists", {"accepted": True, "seconds": {"total": 3.681443, "read": 0.00002}}
    )
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == [
        "manifest.json: the files it lists",
        "accepted  yes",
        "seconds   total 3.68, read 0.00",
    ]

"""The start of the command line: what no verb uses is not loaded."""

from __future__ import annotations

import gc
import subprocess
import sys

from cellguard.cli.support.start import pause_garbage_collection

CODE = """
import sys
from cellguard.cli import main
assert main(["info", "missing.jj"]) == 1
import numpy, scipy.sparse
assert "numpy.f2py.crackfortran" not in sys.modules
assert "unittest" not in sys.modules
numpy.testing.assert_equal(1, 1)
assert numpy.f2py.__version__ and "numpy.f2py.f2py2e" in sys.modules  # whoever asks for it gets it
"""


def test_numpys_compiler_of_fortran_is_not_loaded():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


HELP = """
import sys
from cellguard.cli import main
assert main(["--help"]) == 0
assert "markdown_it" not in sys.modules and "pygments" not in sys.modules
from rich.markdown import Markdown
assert Markdown("# head").parsed and "markdown_it" in sys.modules  # whoever makes one gets it
"""


def test_help_loads_no_parsers():
    done = subprocess.run([sys.executable, "-c", HELP], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_module_that_is_not_there_or_loaded_already_is_left_alone():
    from cellguard.cli.support.start import put_off_at_command_start

    put_off_at_command_start("json")
    import json

    assert json.loads("1") == 1
    put_off_at_command_start("cellguard.no_such_module")
    assert "cellguard.no_such_module" not in sys.modules


def test_garbage_is_collected_again_after_loading():
    with pause_garbage_collection():
        assert not gc.isenabled()
    assert gc.isenabled()
    assert gc.get_freeze_count() > 0
    gc.unfreeze()

"""``python -m cellguard``."""

import sys

from cellguard.cli import main

if __name__ == "__main__":
    sys.exit(main())

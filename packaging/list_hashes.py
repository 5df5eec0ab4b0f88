"""Print the requirements of a folder of wheels, each with its hash, for ``pip install --require-hashes``."""

import hashlib
import sys
from pathlib import Path

for wheel in sorted(Path(sys.argv[1]).glob("*.whl")):
    name, version = wheel.name.split("-")[:2]
    extras = "[web,excel]" if name == "cellguard" else ""
    print(f"{name}{extras}=={version} --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}")

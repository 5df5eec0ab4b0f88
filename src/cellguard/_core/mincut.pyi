# Flows around an arc, and narrowest cuts.

from cellguard._core import Bools, Bytes, Floats, Ints, Network

def narrow(
    network: Network, arc: Ints, upward: Bools, level: Floats, upper: Floats, lower: Floats
) -> tuple[Floats, Bytes]: ...

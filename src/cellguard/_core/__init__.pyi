# Compiled loops over arrays (src/core): a module for each subject.
#
# Arrays must have exactly the declared type and number of dimensions, and be stored row by row in memory.

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
ShortInts: TypeAlias = NDArray[np.int32]
Bools: TypeAlias = NDArray[np.bool_]
Bytes: TypeAlias = NDArray[np.int8]
# Tail and head of each arc; where each node's arcs begin, and the arcs, ``~j`` where arc j enters.
Network: TypeAlias = tuple[Ints, Ints, Ints, Ints]

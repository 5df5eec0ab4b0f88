# Loops over arrays, built ahead of time (src/core): a module for each subject.
#
# Arrays must have exactly the type and the number of dimensions that is asked for, and lie row by row in memory.

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
ShortInts: TypeAlias = NDArray[np.int32]
Bools: TypeAlias = NDArray[np.bool_]
Bytes: TypeAlias = NDArray[np.int8]
# Tail and head of each arc; where each node's arcs begin, and these, ``~j`` where arc j enters.
Network: TypeAlias = tuple[Ints, Ints, Ints, Ints]

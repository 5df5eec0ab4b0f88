# Cheapest flows and negative cycles.

from cellguard._core import Floats, Ints, Network

FAR: float

def cheapest_flow(network: Network, need: Ints, low: Ints, start: Ints, price: Floats, flow: Ints) -> int: ...
def negative_cycle(network: Network, up: Floats, down: Floats) -> Ints: ...

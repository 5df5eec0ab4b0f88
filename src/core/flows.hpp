// Flows with convex prices, and negative cycles: the network is that of one area of a table that is rounded, column j
// is an arc. A price is given for every step of an arc, never falling from one step to the next.
#pragma once

#include <tuple>
#include <vector>

#include "arrays.hpp"

namespace cellguard {

/// Stands for an infinite price.
constexpr double FAR = 1e30;

/// Arcs between nodes, the last of which is the outside. A node lists its arcs: j where arc j leaves, ~j where it
/// enters.
struct Network {
    std::span<const Index> tail;
    std::span<const Index> head;
    Lists arcs_of;

    Index arcs() const { return length(tail); }
    Index nodes() const { return arcs_of.count(); }
};

/// A network as Python keeps it: tail and head of each arc, where each node's arcs begin, and these.
using NetworkArrays =
    std::tuple<std::span<const Index>, std::span<const Index>, std::span<const Index>, std::span<const Index>>;

Network checked_network(const NetworkArrays& arrays);

/// Arc j carries low[j] + 0 .. steps_of(j) units; its k-th step costs price[start[j] + k].
struct Steps {
    std::span<const Index> low;
    std::span<const Index> start;
    std::span<const double> price;

    Index steps_of(Index arc) const { return start[arc + 1] - start[arc]; }
};

/// Prices of one step of each arc, up and down; FAR where there is none.
struct StepPrices {
    std::vector<double> up;
    std::vector<double> down;
};

/// The cheapest flow, as units above `low`, by successive shortest paths. Node i must receive need[i] more than it
/// sends. Returns how much balance is left over (0: done).
Index cheapest_flow(const Network& network, std::span<const Index> need, const Steps& steps, std::span<Index> flow);

/// Arcs of a cycle of negative price (~j: one step down); empty if there is none.
std::vector<Index> negative_cycle(const Network& network, const StepPrices& prices);

}  // namespace cellguard

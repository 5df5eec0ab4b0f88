#include "flows.hpp"

#include <cmath>

#include "border.hpp"
#include "checks.hpp"

namespace cellguard {

namespace {

constexpr Index NONE = Index{1} << 60;  // no arc: ~j is an arc too
constexpr Index MOST_UNITS = Index{1} << 31;  // more are not sent one by one

/// Successive shortest paths: surplus flows to the nearest deficit, unit by unit, at prices reduced by node levels.
class ShortestPaths {
  public:
    ShortestPaths(const Network& network, std::span<const Index> need, const Steps& steps, std::span<Index> flow)
        : net_(network),
          steps_(steps),
          flow_(flow),
          outside_(network.nodes() - 1) {
        const auto n = need.size();
        excess_.resize(n);
        level_.assign(n, 0.0);
        distance_.resize(n);
        before_.resize(n);
        done_.resize(n);
        for (std::size_t i = 0; i < n; ++i) excess_[i] = -need[i];
        for (Index j = 0; j < net_.arcs(); ++j) {
            Index k = 0;  // each arc where it is cheapest: no price is negative then
            while (k < steps_.steps_of(j) && steps_.price[steps_.start[j] + k] < 0) ++k;
            flow_[j] = k;
            excess_[net_.head[j]] += steps_.low[j] + k;
            excess_[net_.tail[j]] -= steps_.low[j] + k;
        }
        excess_[outside_] = 0;  // the outside takes and gives whatever is left
    }

    Index run() {
        Index left = 0;
        for (const Index e : excess_) left += std::abs(e);
        while (left > 0) {
            const Index target = nearest_deficit();
            if (target < 0) break;
            const double reach = distance_[target];
            for (std::size_t i = 0; i < level_.size(); ++i) level_[i] += std::min(distance_[i], reach);
            const Index source = send_one_to(target);
            if (source != outside_) {
                --excess_[source];
                --left;
            }
            if (target != outside_) {
                ++excess_[target];
                --left;
            }
        }
        return left;
    }

  private:
    /// Dijkstra from all nodes with too much to the nearest with too little; -1 if none is reached.
    Index nearest_deficit() {
        bool surplus = false;
        for (Index i = 0; i < outside_; ++i) surplus |= excess_[i] > 0;
        for (Index i = 0; i <= outside_; ++i) {
            done_[i] = 0;
            before_[i] = NONE;
            const bool source = surplus ? excess_[i] > 0 : i == outside_;  // nothing too much: the outside gives
            distance_[i] = source ? 0.0 : FAR;
        }
        while (true) {
            Index node = -1;
            double near = FAR;
            for (Index i = 0; i <= outside_; ++i) {
                if (!done_[i] && distance_[i] < near) {
                    node = i;
                    near = distance_[i];
                }
            }
            if (node < 0) return -1;
            done_[node] = 1;
            if (excess_[node] < 0 || (node == outside_ && surplus)) return node;
            for (const Index j : net_.arcs_of[node]) relax(node, near, j);
        }
    }

    void relax(Index node, double near, Index j) {
        const bool forward = j >= 0;
        const Index arc = forward ? j : ~j;
        if (forward ? flow_[arc] >= steps_.steps_of(arc) : flow_[arc] <= 0) return;
        const Index other = forward ? net_.head[arc] : net_.tail[arc];
        if (done_[other]) return;
        const Index step = steps_.start[arc] + flow_[arc];
        const double price = forward ? steps_.price[step] : -steps_.price[step - 1];
        const double d = near + std::max(0.0, price + level_[node] - level_[other]);
        if (d < distance_[other]) {
            distance_[other] = d;
            before_[other] = j;
        }
    }

    /// Send one unit along the path that was found; returns where it comes from.
    Index send_one_to(Index node) {
        while (before_[node] != NONE) {
            const Index j = before_[node];
            if (j >= 0) {
                ++flow_[j];
                node = net_.tail[j];
            } else {
                --flow_[~j];
                node = net_.head[~j];
            }
        }
        return node;
    }

    const Network& net_;
    const Steps& steps_;
    std::span<Index> flow_;
    Index outside_;
    std::vector<Index> excess_, before_;
    std::vector<double> level_, distance_;
    Flags done_;
};

/// Where a node was reached from.
Index origin(const Network& network, Index j) { return j >= 0 ? network.tail[j] : network.head[~j]; }

/// Follow the arcs by which nodes were reached; a closed walk among them is a negative cycle.
std::vector<Index> closed_walk(const Network& network, std::span<const Index> before) {
    const Index n = length(before);
    std::vector<Index> seen(before.size(), -1), cycle;
    for (Index start = 0; start < n; ++start) {
        if (seen[start] >= 0) continue;
        Index node = start;
        while (seen[node] < 0 && before[node] != NONE) {
            seen[node] = start;
            node = origin(network, before[node]);
        }
        if (seen[node] == start && before[node] != NONE) {
            const Index end = node;
            do {
                cycle.push_back(before[node]);
                node = origin(network, before[node]);
            } while (node != end);
            return cycle;
        }
        if (seen[node] < 0) seen[node] = start;
    }
    return cycle;
}

}  // namespace

Index cheapest_flow(const Network& network, std::span<const Index> need, const Steps& steps, std::span<Index> flow) {
    return ShortestPaths(network, need, steps, flow).run();
}

std::vector<Index> negative_cycle(const Network& network, const StepPrices& prices) {
    const Index n = network.nodes();
    std::vector<double> distance(static_cast<std::size_t>(n), 0.0);
    std::vector<Index> before(static_cast<std::size_t>(n), NONE);
    for (Index sweep = 0; sweep <= n; ++sweep) {
        bool changed = false;
        for (Index j = 0; j < network.arcs(); ++j) {
            const Index tail = network.tail[j], head = network.head[j];
            if (prices.up[j] < FAR / 2 && distance[tail] + prices.up[j] < distance[head] - 1e-9) {
                if (tail == head) return {j};
                distance[head] = distance[tail] + prices.up[j];
                before[head] = j;
                changed = true;
            }
            if (prices.down[j] < FAR / 2 && distance[head] + prices.down[j] < distance[tail] - 1e-9) {
                if (tail == head) return {~j};
                distance[tail] = distance[head] + prices.down[j];
                before[tail] = ~j;
                changed = true;
            }
        }
        if (!changed) return {};
        if (sweep % 2 == 1) {
            std::vector<Index> cycle = closed_walk(network, before);
            if (!cycle.empty()) return cycle;
        }
    }
    return closed_walk(network, before);
}

// ---------------------------------------------------------------- Python

Network checked_network(const NetworkArrays& arrays) {
    const auto& [tail, head, start, arcs] = arrays;
    const Network network{tail, head, {start, arcs}};
    require_pointers(start, length(arcs), "arcs of the nodes");
    require(network.nodes() > 0, "a network needs a node, the outside");
    require_length(head, network.arcs(), "head");
    require_indices(tail, network.nodes(), "tail");
    require_indices(head, network.nodes(), "head");
    for (const Index j : arcs) require_index(j >= 0 ? j : ~j, network.arcs(), "arcs of the nodes");
    return network;
}

void bind_flows(nb::module_ m) {
    m.attr("FAR") = FAR;
    m.def(
        "cheapest_flow",
        [](const NetworkArrays& arrays, std::span<const Index> need, std::span<const Index> low,
           std::span<const Index> start, std::span<const double> price, std::span<Index> flow) {
            const Network network = checked_network(arrays);
            require_length(need, network.nodes(), "need");
            require_length(low, network.arcs(), "low");
            require_length(start, network.arcs() + 1, "start");
            require_pointers(start, length(price), "start");
            require_length(flow, network.arcs(), "flow");
            for (const auto& each : {need, low}) {
                for (const Index units : each) require(std::abs(units) < MOST_UNITS, "too many units to send");
            }
            return cheapest_flow(network, need, {low, start, price}, flow);
        },
        Unlocked(), "network"_a, "need"_a, "low"_a, "start"_a, "price"_a, "flow"_a);
    m.def(
        "negative_cycle",
        [](const NetworkArrays& arrays, std::span<const double> up, std::span<const double> down) {
            const Network network = checked_network(arrays);
            require_length(up, network.arcs(), "up");
            require_length(down, network.arcs(), "down");
            return negative_cycle(network, {{up.begin(), up.end()}, {down.begin(), down.end()}});
        },
        Unlocked(), "network"_a, "up"_a, "down"_a);
}

}  // namespace cellguard

// Networks: how much flows around an arc, and the cuts that let no more through (Dinic's method of layers).
#include "border.hpp"
#include "checks.hpp"
#include "flows.hpp"
#include "watch.hpp"

namespace cellguard {

namespace {

constexpr double NOISE = 1e-9;  // room below this is none
constexpr double SHORT = 1e-7;  // share of a level that may be missing
constexpr std::int8_t NEAR_SIDE = 1, FAR_SIDE = 2;

/// How much an arc can carry forward and backward.
struct Capacity {
    std::span<const double> upper;
    std::span<const double> lower;
};

class AroundArc {
  public:
    AroundArc(const Network& network, const Capacity& capacity)
        : net_(network),
          capacity_(capacity),
          flow_(network.tail.size(), 0.0),
          depth_(static_cast<std::size_t>(network.nodes())),
          place_(depth_.size()),
          link_(depth_.size()),
          amount_(depth_.size()) {
        queue_.reserve(depth_.size());
    }

    /// Push what an arc carries back to its tail by other ways, up to a level; returns how much that is.
    double push(Index arc, bool upward, double level) {
        closed_ = arc;
        source_ = upward ? net_.head[arc] : net_.tail[arc];
        target_ = upward ? net_.tail[arc] : net_.head[arc];
        if (source_ == target_) return level;  // the arc is a circuit by itself
        double total = 0.0;
        while (total < level * (1.0 - NOISE)) {
            if (!number_layers(source_, target_, true)) break;
            std::copy(net_.arcs_of.start.begin(), net_.arcs_of.start.end() - 1, place_.begin());
            while (total < level * (1.0 - NOISE)) {
                const double more = find_way(level - total);
                if (more == 0.0) break;
                total += more;
                carry(more);
            }
        }
        return total;
    }

    /// The sides of the narrowest cuts, once a push has ended early: the last search for a way has seen all that can
    /// be reached.
    std::vector<std::int8_t> sides() {
        std::vector<std::int8_t> out(depth_.size(), 0);
        for (std::size_t i = 0; i < out.size(); ++i) {
            if (depth_[i] >= 0) out[i] = NEAR_SIDE;
        }
        number_layers(target_, -1, false);
        for (std::size_t i = 0; i < out.size(); ++i) {
            if (depth_[i] >= 0) out[i] = FAR_SIDE;
        }
        return out;
    }

    void clear() {
        for (const Index a : touched_) flow_[a] = 0.0;
        touched_.clear();
    }

  private:
    /// Room of an arc, in its own direction or against it.
    double room(Index a, bool along) const {
        return along ? capacity_.upper[a] - flow_[a] : capacity_.lower[a] + flow_[a];
    }

    /// Number the nodes by their distance from where flow starts, or, backward, to where it ends; -1 beyond. Only arcs
    /// with room left count. Returns whether `stop` was reached, and ends there.
    bool number_layers(Index start, Index stop, bool forward) {
        std::fill(depth_.begin(), depth_.end(), -1);
        depth_[start] = 0;
        queue_.assign(1, start);
        for (std::size_t first = 0; first < queue_.size(); ++first) {
            const Index i = queue_[first];
            for (const Index signed_arc : net_.arcs_of[i]) {
                const bool leaves = signed_arc >= 0;
                const Index a = leaves ? signed_arc : ~signed_arc, to = leaves ? net_.head[a] : net_.tail[a];
                if (a == closed_ || depth_[to] >= 0 || !(room(a, leaves == forward) > NOISE)) continue;
                depth_[to] = depth_[i] + 1;
                if (to == stop) return true;
                queue_.push_back(to);
            }
        }
        return false;
    }

    /// Find a way through the layers; returns how much it carries, 0 if there is none. Its arcs are in `link_`.
    double find_way(double most) {
        Index i = source_;
        amount_[source_] = most;
        while (i != target_) {
            const Index next = advance(i);
            if (next >= 0) {
                i = next;
                continue;
            }
            if (i == source_) return 0.0;
            i = origin(link_[i]);
            ++place_[i];
        }
        return amount_[target_];
    }

    /// The next node from i, or -1.
    Index advance(Index i) {
        for (; place_[i] < net_.arcs_of.start[i + 1]; ++place_[i]) {
            const Index signed_arc = net_.arcs_of.entry[place_[i]];
            const bool leaves = signed_arc >= 0;
            const Index a = leaves ? signed_arc : ~signed_arc, to = leaves ? net_.head[a] : net_.tail[a];
            const double free = room(a, leaves);
            if (!(free > NOISE) || depth_[to] != depth_[i] + 1 || a == closed_) continue;
            link_[to] = signed_arc;
            amount_[to] = std::min(amount_[i], free);
            return to;
        }
        return -1;
    }

    Index origin(Index signed_arc) const { return signed_arc >= 0 ? net_.tail[signed_arc] : net_.head[~signed_arc]; }

    void carry(double more) {
        for (Index i = target_; i != source_; i = origin(link_[i])) {
            const bool leaves = link_[i] >= 0;
            const Index a = leaves ? link_[i] : ~link_[i];
            flow_[a] += leaves ? more : -more;
            touched_.push_back(a);
        }
    }

    const Network& net_;
    Capacity capacity_;
    std::vector<double> flow_;
    std::vector<Index> depth_, place_, link_;
    std::vector<double> amount_;
    std::vector<Index> queue_, touched_;
    Index closed_ = -1, source_ = -1, target_ = -1;
};

struct Narrow {
    std::vector<double> reached;
    Rows<std::int8_t> sides;  // of the requests that fall short
};

Narrow narrow(const Network& network, std::span<const Index> arc, std::span<const bool> upward,
              std::span<const double> level, const Capacity& capacity, Watch& watch) {
    Narrow out{std::vector<double>(arc.size(), 0.0), Rows<std::int8_t>(0, network.nodes())};
    AroundArc flow(network, capacity);
    for (Index k = 0; k < length(arc) && !watch.over(); ++k) {
        const double total = flow.push(arc[k], upward[k], level[k]);
        out.reached[k] = std::min(total, level[k]);
        if (total < level[k] * (1.0 - SHORT)) out.sides.append(flow.sides());
        flow.clear();
    }
    return out;
}

}  // namespace

void bind_mincut(nb::module_ m) {
    m.def(
        "narrow",
        [](const NetworkArrays& net, std::span<const Index> arc, std::span<const bool> upward,
           std::span<const double> level, std::span<const double> upper, std::span<const double> lower) {
            const Network network = checked_network(net);
            require_indices(arc, network.arcs(), "arc");
            require_length(upward, length(arc), "upward");
            require_length(level, length(arc), "level");
            require_length(upper, network.arcs(), "upper");
            require_length(lower, network.arcs(), "lower");
            Watch watch(std::numeric_limits<double>::infinity());
            Narrow found = narrow(network, arc, upward, level, {upper, lower}, watch);
            return std::pair(std::move(found.reached), std::move(found.sides));
        },
        Unlocked(), "network"_a, "arc"_a, "upward"_a, "level"_a, "upper"_a, "lower"_a);
}

}  // namespace cellguard

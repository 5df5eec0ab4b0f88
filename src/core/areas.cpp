// Rounding by areas: deciding sums by halves, and moving units between areas.
//
// Arrays are areas by columns. A cell costs -outer per step below its kink, `slope` for the step from the kink, outer
// per step above; steps outside `low` .. `high` cost a penalty. Inner columns never leave their bounds; soft ones
// (totals) may for the time being.
#include "border.hpp"
#include "checks.hpp"
#include "flows.hpp"
#include "watch.hpp"

namespace cellguard {

namespace {

constexpr double PENALTY = 1e4;  // price of a step outside the bounds; prices inside are at most 1
constexpr Index SLACK = 6;       // how far outside its bounds a total may be sent for the time being
constexpr Index MOST_STEPS = Index{1} << 24;  // between the bounds of a cell: each has its price
constexpr Index MOST_UNITS = Index{1} << 31;

/// Bounds and prices of one cell.
struct Cell {
    Index low, high, kink;
    double slope, outer;

    /// Price of going from k to k + 1.
    double step(Index k) const {
        if (k < low) return -PENALTY;
        if (k >= high) return PENALTY;
        if (k < kink) return -outer;
        return k == kink ? slope : outer;
    }
};

/// Bounds and prices of all cells, areas by columns.
struct Areas {
    Matrix<const Index> low, high, kink;
    Matrix<const double> slope, outer;
    std::span<const bool> soft;  // columns that are totals

    Index count() const { return low.rows(); }
    Index columns() const { return low.columns(); }
    Cell cell(Index i, Index j) const { return {low(i, j), high(i, j), kink(i, j), slope(i, j), outer(i, j)}; }
    Index slack(Index j) const { return soft[j] ? SLACK : 0; }
};

/// What one column adds up to over some areas: the k-th unit costs what the k-th cheapest step in them costs.
class Sum {
  public:
    Sum(const Areas& areas, std::span<const Index> items, Index j) {
        for (const Index i : items) {
            const Cell cell = areas.cell(i, j);
            low_ += cell.low;
            high_ += cell.high;
            for (Index k = cell.low; k < cell.high; ++k) steps_.push_back(cell.step(k));
        }
        std::sort(steps_.begin(), steps_.end());
    }

    Index low() const { return low_; }
    Index high() const { return high_; }
    double step(Index k) const {
        if (k < low_) return -PENALTY;
        return k >= low_ + length(steps_) ? PENALTY : steps_[k - low_];
    }

  private:
    Index low_ = 0, high_ = 0;
    std::vector<double> steps_;
};

/// The steps of all columns, put together column by column.
class StepList {
  public:
    explicit StepList(Index columns) { start_.reserve(static_cast<std::size_t>(columns + 1)); }

    template <class Price>
    void add_column(Index low, Index high, Price price) {
        require(high - low <= MOST_STEPS, "sums too far apart");
        low_.push_back(low);
        for (Index k = low; k < high; ++k) price_.push_back(price(k));
        start_.push_back(length(price_));
    }

    /// The cheapest decision of every column; returns unmet balance.
    Index decide(const Network& network, std::span<const Index> need, std::span<Index> answer) const {
        const Index left = cheapest_flow(network, need, {low_, start_, price_}, answer);
        for (Index j = 0; j < length(answer); ++j) answer[j] += low_[j];
        return left;
    }

  private:
    std::vector<Index> low_, start_{0};
    std::vector<double> price_;
};

/// Decide what the first of two sets of areas adds up to, the second getting the rest of the target. Returns unmet
/// balance.
Index halve(const Network& network, std::span<const Index> first, std::span<const Index> second,
            std::span<const Index> target, const Areas& areas, std::span<const Index> need, std::span<Index> answer) {
    StepList steps(areas.columns());
    for (Index j = 0; j < areas.columns(); ++j) {
        const Sum a(areas, first, j), b(areas, second, j);
        const Index one = std::max(a.low(), target[j] - b.high()), other = std::min(a.high(), target[j] - b.low());
        steps.add_column(std::min(one, other) - areas.slack(j), std::max(one, other) + areas.slack(j),
                         [&](Index k) { return a.step(k) - b.step(target[j] - k - 1); });
    }
    return steps.decide(network, need, answer);
}

/// Decide a single area at the least price. Returns unmet balance.
Index decide_one(const Network& network, Index area, const Areas& areas, std::span<const Index> need,
                 std::span<Index> answer) {
    StepList steps(areas.columns());
    for (Index j = 0; j < areas.columns(); ++j) {
        const Cell cell = areas.cell(area, j);
        steps.add_column(cell.low - areas.slack(j), cell.high + areas.slack(j), [&](Index k) { return cell.step(k); });
    }
    return steps.decide(network, need, answer);
}

/// Decide areas that must add up to the target: halve them, decide what the halves add up to, go on. Returns unmet
/// balance.
Index decide_parts(const Network& network, std::span<const Index> items, std::span<const Index> target,
                   const Areas& areas, Matrix<const Index> need, Matrix<Index> x) {
    if (items.size() == 1) {
        std::copy(target.begin(), target.end(), x[items[0]].begin());
        return 0;
    }
    const auto first = items.first(items.size() / 2), second = items.subspan(items.size() / 2);
    std::vector<Index> balance(static_cast<std::size_t>(need.columns()), 0), answer(target.size());
    for (const Index i : first) {
        for (Index n = 0; n < need.columns(); ++n) balance[n] += need(i, n);
    }
    Index left = halve(network, first, second, target, areas, balance, answer);
    left += decide_parts(network, first, answer, areas, need, x);
    for (std::size_t j = 0; j < target.size(); ++j) answer[j] = target[j] - answer[j];
    return left + decide_parts(network, second, answer, areas, need, x);
}

// ---------------------------------------------------------------- units that move between areas

/// An area is a part of its parent, that of its own, and so on: -1 above the largest.
class Family {
  public:
    explicit Family(std::span<const Index> parent) : parent_(parent) {}

    /// The areas that hold `area` but not `other`, which may be -1.
    std::vector<Index> line(Index area, Index other) const {
        std::vector<Index> out;
        for (Index g = area; g >= 0 && !(other >= 0 && holds(g, other)); g = parent_[g]) out.push_back(g);
        return out;
    }

  private:
    bool holds(Index outer, Index area) const {
        while (area >= 0 && area != outer) area = parent_[area];
        return area == outer;
    }

    std::span<const Index> parent_;
};

/// Add what one step of each column of area g costs, upward and downward (or the reverse).
void add_prices(const Areas& areas, Matrix<const Index> x, Index g, bool forward, StepPrices& prices) {
    for (Index j = 0; j < areas.columns(); ++j) {
        const Cell cell = areas.cell(g, j);
        const Index k = x(g, j), room = areas.slack(j);
        const double rise = k >= cell.high + room ? FAR : cell.step(k);
        const double fall = k <= cell.low - room ? FAR : -cell.step(k - 1);
        prices.up[j] += forward ? rise : fall;
        prices.down[j] += forward ? fall : rise;
    }
}

/// Move units around cycles from one area of a pair to the other while that lowers the price.
///
/// Sums of which only one of both is a part move along. A second area of -1 stands for none: then all sums of the
/// first one move. Returns the gain.
double cancel_pairs(const Network& network, Matrix<const Index> pairs, const Family& family, const Areas& areas,
                    Matrix<Index> x, Watch& watch) {
    double gain = 0.0;
    StepPrices prices;
    for (Index r = 0; r < pairs.rows(); ++r) {
        const auto ahead = family.line(pairs(r, 0), pairs(r, 1)), back = family.line(pairs(r, 1), pairs(r, 0));
        while (!watch.over()) {
            prices.up.assign(static_cast<std::size_t>(areas.columns()), 0.0);
            prices.down = prices.up;
            for (const Index g : ahead) add_prices(areas, x, g, true, prices);
            for (const Index g : back) add_prices(areas, x, g, false, prices);
            const std::vector<Index> cycle = negative_cycle(network, prices);
            if (cycle.empty()) break;
            for (const Index arc : cycle) {
                const Index j = arc >= 0 ? arc : ~arc, step = arc >= 0 ? 1 : -1;
                gain -= step > 0 ? prices.up[j] : prices.down[j];
                for (const Index g : ahead) x(g, j) += step;
                for (const Index g : back) x(g, j) -= step;
            }
        }
    }
    return gain;
}

// ---------------------------------------------------------------- Python

/// Bounds and prices as Python keeps them: low, high, kink, slope, outer.
using CellArrays = std::tuple<Matrix<const Index>, Matrix<const Index>, Matrix<const Index>, Matrix<const double>,
                              Matrix<const double>>;

Areas checked_areas(const Network& network, const CellArrays& cells, std::span<const bool> soft) {
    const auto& [low, high, kink, slope, outer] = cells;
    const auto same = [&low = low](const auto& other) {
        return other.rows() == low.rows() && other.columns() == low.columns();
    };
    require(same(high) && same(kink) && same(slope) && same(outer), "bounds and prices differ in shape");
    require(low.columns() == network.arcs(), "a column is needed for every arc of the network");
    require_length(soft, low.columns(), "soft");
    for (Index i = 0; i < low.rows(); ++i) {
        require_numbers(slope[i], "slope");
        require_numbers(outer[i], "outer");
        for (Index j = 0; j < low.columns(); ++j) {
            require(std::abs(low(i, j)) < MOST_UNITS && std::abs(high(i, j)) < MOST_UNITS, "bounds beyond 2^31");
            require(high(i, j) - low(i, j) <= MOST_STEPS, "bounds too far apart");
        }
    }
    return {low, high, kink, slope, outer, soft};
}

void require_units(std::span<const Index> values, const char* name) {
    for (const Index v : values) {
        if (v <= -MOST_UNITS || v >= MOST_UNITS) throw std::invalid_argument(std::string(name) + " is beyond 2^31");
    }
}

void require_family(std::span<const Index> parent) {
    for (Index g : numbers_up_to(length(parent))) {
        for (Index up = 0; g >= 0; ++up, g = parent[g]) {
            require_index(g, length(parent), "parent");
            require(up < length(parent), "parent goes around in circles");
        }
    }
}

}  // namespace

void bind_areas(nb::module_ m) {
    m.def(
        "halve",
        [](const NetworkArrays& net, std::span<const Index> first, std::span<const Index> second,
           std::span<const Index> target, const CellArrays& cells, std::span<const Index> need,
           std::span<const bool> soft, std::span<Index> answer) {
            const Network network = checked_network(net);
            const Areas areas = checked_areas(network, cells, soft);
            require_indices(first, areas.count(), "first");
            require_indices(second, areas.count(), "second");
            require_length(target, areas.columns(), "target");
            require_length(answer, areas.columns(), "answer");
            require_length(need, network.nodes(), "need");
            require_units(need, "need");
            require_units(target, "target");
            return halve(network, first, second, target, areas, need, answer);
        },
        Unlocked(), "network"_a, "first"_a, "second"_a, "target"_a, "cells"_a, "need"_a, "soft"_a, "answer"_a);
    m.def(
        "decide_one",
        [](const NetworkArrays& net, Index area, const CellArrays& cells, std::span<const Index> need,
           std::span<const bool> soft, std::span<Index> answer) {
            const Network network = checked_network(net);
            const Areas areas = checked_areas(network, cells, soft);
            require_index(area, areas.count(), "area");
            require_length(answer, areas.columns(), "answer");
            require_length(need, network.nodes(), "need");
            require_units(need, "need");
            return decide_one(network, area, areas, need, answer);
        },
        Unlocked(), "network"_a, "area"_a, "cells"_a, "need"_a, "soft"_a, "answer"_a);
    m.def(
        "decide_parts",
        [](const NetworkArrays& net, std::span<const Index> items, std::span<const Index> target,
           const CellArrays& cells, Matrix<const Index> need, std::span<const bool> soft, Matrix<Index> x) {
            const Network network = checked_network(net);
            const Areas areas = checked_areas(network, cells, soft);
            require(!items.empty(), "there is no area to decide");
            require_indices(items, areas.count(), "items");
            require_length(target, areas.columns(), "target");
            require(need.rows() == areas.count() && need.columns() == network.nodes(), "need has the wrong shape");
            require(x.rows() == areas.count() && x.columns() == areas.columns(), "x has the wrong shape");
            require_units(target, "target");
            for (const Index i : items) require_units(need[i], "need");
            return decide_parts(network, items, target, areas, need, x);
        },
        Unlocked(), "network"_a, "items"_a, "target"_a, "cells"_a, "need"_a, "soft"_a, "x"_a);
    m.def(
        "cancel_pairs",
        [](const NetworkArrays& net, Matrix<const Index> pairs, std::span<const Index> parent, const CellArrays& cells,
           std::span<const bool> soft, Matrix<Index> x, double time_left_s) {
            const Network network = checked_network(net);
            const Areas areas = checked_areas(network, cells, soft);
            require(pairs.columns() == 2, "pairs must have two columns");
            require(x.rows() == areas.count() && x.columns() == areas.columns(), "x has the wrong shape");
            require_length(parent, areas.count(), "parent");
            require_family(parent);
            for (Index r = 0; r < pairs.rows(); ++r) {
                require_index(pairs(r, 0), areas.count(), "pairs");
                require(pairs(r, 1) < areas.count(), "pairs holds an area that is not there");
            }
            for (Index i = 0; i < x.rows(); ++i) require_units(x[i], "x");
            Watch watch(time_left_s);
            return cancel_pairs(network, pairs, Family(parent), areas, x, watch);
        },
        Unlocked(), "network"_a, "pairs"_a, "parent"_a, "cells"_a, "soft"_a, "x"_a,
        "time_left_s"_a = std::numeric_limits<double>::infinity());
}

}  // namespace cellguard

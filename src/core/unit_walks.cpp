// Movements in whole numbers, found by walking: a cell is pushed unit by unit, and whatever leaves its room on the way
// is brought back by other columns of the basis.
#include <array>
#include <cstdint>

#include "border.hpp"
#include "checks.hpp"
#include "watch.hpp"

namespace cellguard {

namespace {

/// At most so many steps bring everything back into its room.
constexpr Index MAX_STEPS = 60;
/// Columns that are looked at in one step.
constexpr Index MAX_CANDIDATES = 40;
/// A column that was just moved is not moved back for so many steps.
constexpr Index TABU_STEPS = 6;
/// Attempts per unit.
constexpr Index ATTEMPTS = 3;

using Movements = std::tuple<std::vector<Index>, std::vector<Index>, std::vector<double>>;

class Walk {
  public:
    Walk(const Sparse& columns, const Sparse& rows, std::span<const double> down, std::span<const double> up,
         std::uint64_t seed)
        : columns_(columns),
          rows_(rows),
          low_(down.size()),
          high_(up.begin(), up.end()),
          moved_(up.size(), 0.0),
          place_(up.size(), -1),
          seen_(up.size(), 0),
          tabu_(static_cast<size_t>(columns.count()), 0),
          state_(seed * 0x9E3779B97F4A7C15ull + 0x1234567ull) {
        for (Index v = 0; v < length(down); ++v) low_[v] = -down[v];
    }

    /// Push a variable by whole units, at most as far as wanted (negative: downward).
    void push(Index variable, double wanted) {
        clear();
        const double side = wanted > 0 ? 1.0 : -1.0;
        const double low = low_[variable], high = high_[variable];
        double& end = side > 0 ? low_[variable] : high_[variable];
        (side > 0 ? high_[variable] : low_[variable]) = wanted;  // its own room is what is wanted, whatever others know
        double reached = 0.0;
        kept_.clear();
        while (reached < std::abs(wanted)) {
            bool found = false;
            for (Index attempt = 0; attempt < ATTEMPTS && !found; ++attempt) {
                end = side * (reached + 1);
                check(variable);
                found = bring_back();
                if (!found) restore();
            }
            if (!found) break;
            reached = side * moved_[variable];
            keep();
        }
        low_[variable] = low;
        high_[variable] = high;
        restore();
    }

    /// Write the last movement behind others.
    void write(Movements& out) const {
        auto& [start, index, value] = out;
        for (const auto& [v, z] : kept_) {
            index.push_back(v);
            value.push_back(z);
        }
        start.push_back(length(index));
    }

  private:
    Index random(Index n) {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 7;
        state_ ^= state_ << 17;
        return static_cast<Index>(state_ % static_cast<std::uint64_t>(n));
    }

    double outside(Index v, double z) const { return z > high_[v] ? z - high_[v] : z < low_[v] ? low_[v] - z : 0.0; }

    /// Put a variable on the list of those outside of their room, or take it off.
    void check(Index v) {
        const bool bad = outside(v, moved_[v]) > 0;
        if (bad && place_[v] < 0) {
            place_[v] = length(bad_);
            bad_.push_back(v);
        } else if (!bad && place_[v] >= 0) {
            const Index last = bad_.back();
            bad_[place_[v]] = last;
            place_[last] = place_[v];
            bad_.pop_back();
            place_[v] = -1;
        }
    }

    void move(Index column, double times) {
        for (Index k = columns_.start[column]; k < columns_.start[column + 1]; ++k) {
            const Index v = columns_.index[k];
            if (!seen_[v]) {
                seen_[v] = 1;
                touched_.push_back(v);
            }
            moved_[v] += times * columns_.value[k];
            check(v);
        }
    }

    /// What moving a column changes of the sum of all that is outside.
    double change(Index column, double times) const {
        double sum = 0.0;
        for (Index k = columns_.start[column]; k < columns_.start[column + 1]; ++k) {
            const Index v = columns_.index[k];
            sum += outside(v, moved_[v] + times * columns_.value[k]) - outside(v, moved_[v]);
        }
        return sum;
    }

    /// Move columns until everything is in its room; false if that takes too many steps.
    bool bring_back() {
        for (const Index column : used_) tabu_[column] = 0;
        used_.clear();
        for (Index step = 1; step <= MAX_STEPS; ++step) {
            if (bad_.empty()) return true;
            const Index v = bad_[random(length(bad_))];
            const double direction = moved_[v] > high_[v] ? -1.0 : 1.0;
            const Index first = rows_.start[v], n = rows_.start[v + 1] - first;
            const Index looked_at = std::min(n, MAX_CANDIDATES), offset = n > 0 ? random(n) : 0;
            double best = 0.0, best_times = 0.0;
            Index chosen = -1, equals = 0;
            for (Index i = 0; i < looked_at; ++i) {
                const Index k = first + (n <= MAX_CANDIDATES ? (offset + i) % n : random(n));
                const Index column = rows_.index[k];
                const double times = direction * (rows_.value[k] > 0 ? 1.0 : -1.0);
                if (tabu_[column] > step) continue;
                const double sum = change(column, times);
                if (chosen < 0 || sum < best) {
                    best = sum, best_times = times, chosen = column, equals = 1;
                } else if (sum == best && random(++equals) == 0) {
                    best_times = times, chosen = column;
                }
            }
            if (chosen < 0) continue;
            move(chosen, best_times);
            if (tabu_[chosen] == 0) used_.push_back(chosen);
            tabu_[chosen] = step + TABU_STEPS;
        }
        return bad_.empty();
    }

    /// Remember where everything is.
    void keep() {
        kept_.clear();
        for (const Index v : touched_) {
            if (moved_[v] != 0) kept_.emplace_back(v, moved_[v]);
        }
    }

    /// Go back to what was remembered last.
    void restore() {
        for (const Index v : touched_) moved_[v] = 0.0;
        for (const auto& [v, z] : kept_) moved_[v] = z;
        while (!bad_.empty()) {
            place_[bad_.back()] = -1;
            bad_.pop_back();
        }
    }

    void clear() {
        for (const Index v : touched_) {
            moved_[v] = 0.0;
            seen_[v] = 0;
        }
        touched_.clear();
    }

    const Sparse &columns_, &rows_;
    std::vector<double> low_, high_, moved_;
    std::vector<Index> place_;  // of each variable in the list of those outside; -1: inside
    std::vector<char> seen_;
    std::vector<Index> tabu_;
    std::vector<Index> bad_, touched_, used_;
    std::vector<std::pair<Index, double>> kept_;
    std::uint64_t state_;
};

/// A movement for each variable that is to be pushed, as far as walking took it; empty ones after the time is over.
Movements walk(const Sparse& columns, const Sparse& rows, std::span<const double> down, std::span<const double> up,
               std::span<const Index> variables, std::span<const double> wanted, Index seed, double time_left_s) {
    Movements out{{0}, {}, {}};
    Walk walk(columns, rows, down, up, static_cast<std::uint64_t>(seed));
    Watch watch(time_left_s);
    for (Index i = 0; i < length(variables); ++i) {
        if (watch.over()) {
            std::get<0>(out).push_back(length(std::get<1>(out)));
            continue;
        }
        walk.push(variables[i], wanted[i]);
        walk.write(out);
    }
    return out;
}

}  // namespace

void bind_unit_walks(nb::module_ m) {
    m.def(
        "walk",
        [](std::span<const Index> start, std::span<const Index> index, std::span<const double> value,
           std::span<const Index> row_start, std::span<const Index> row_index, std::span<const double> row_value,
           std::span<const double> down, std::span<const double> up, std::span<const Index> variables,
           std::span<const double> wanted, Index seed, double time_left_s) {
            const Sparse columns = checked(Sparse{start, index, value}, length(up), "columns");
            const Sparse rows = checked(Sparse{row_start, row_index, row_value}, columns.count(), "rows");
            require_length(down, length(up), "down");
            require(rows.count() == length(up), "rows: one per variable is needed");
            require_indices(variables, length(up), "variables");
            require_length(wanted, length(variables), "wanted");
            return walk(columns, rows, down, up, variables, wanted, seed, time_left_s);
        },
        Unlocked(), "start"_a, "index"_a, "value"_a, "row_start"_a, "row_index"_a, "row_value"_a, "down"_a, "up"_a,
        "variables"_a, "wanted"_a, "seed"_a, "time_left_s"_a);
}

}  // namespace cellguard

// Which way shall each cell go, so that the totals above them move least? Annealing over the senses.
//
// Each variable is down or up; a row is a weighted absolute value of a sum, to which variable k adds value[k] when it
// is up. One variable is flipped at a time, or two that stand in the same row: where one goes up and its neighbour
// comes down the row hardly changes, and the search does not get stuck between single flips.
#include <cmath>
#include <cstdint>
#include <random>

#include "border.hpp"
#include "checks.hpp"
#include "watch.hpp"

namespace cellguard {

namespace {

constexpr int PAIRS = 200;  // of 256 steps flip two variables
constexpr Index BETWEEN_LOOKS = 4096;

struct Rate {
    Index runs, steps;
    double hot, cold;
};

struct Found {
    Flags up;
    double value;
};

class Annealing {
  public:
    Annealing(const Sparse& columns, std::span<const double> weight, std::span<const double> offset,
              std::span<const double> own)
        : columns_(columns),
          weight_(weight),
          offset_(offset),
          own_(own),
          members_(weight.size()) {
        for (Index k = 0; k < columns.count(); ++k) {
            for (Index e = columns.start[k]; e < columns.start[k + 1]; ++e) members_[columns.index[e]].push_back(k);
        }
    }

    Found run(const Rate& rate, std::uint64_t seed, double time_left_s) {
        Watch watch(time_left_s);
        best_.value = INFINITY;
        for (Index run = 0; run < rate.runs && !(run > 0 && watch.over()); ++run) {
            std::mt19937_64 random(seed + static_cast<std::uint64_t>(run));
            begin(random);
            cool(rate, random, watch);
        }
        return best_;
    }

  private:
    void begin(std::mt19937_64& random) {
        up_.assign(static_cast<std::size_t>(columns_.count()), 0);
        sum_.assign(offset_.begin(), offset_.end());
        value_ = 0.0;
        for (Index i = 0; i < length(weight_); ++i) value_ += weight_[i] * std::abs(sum_[i]);
        for (Index k = 0; k < columns_.count(); ++k) {
            if (random() & 1) value_ += flip(k);
        }
        keep();
    }

    void cool(const Rate& rate, std::mt19937_64& random, Watch& watch) {
        const auto n = static_cast<std::uint64_t>(columns_.count());
        const double slower = std::pow(rate.cold / rate.hot, 1.0 / static_cast<double>(rate.steps));
        double heat = rate.hot;
        for (Index step = 0; step < rate.steps; ++step, heat *= slower) {
            if (step % BETWEEN_LOOKS == 0 && watch.over()) return;
            const std::uint64_t draw = random();
            const auto k = static_cast<Index>((draw >> 8) % n);
            const Index other = static_cast<int>(draw & 255) < PAIRS ? neighbour(k, draw >> 40, random()) : k;
            double change = flip(k);
            if (other != k) change += flip(other);
            const double chance = static_cast<double>(random() >> 11) * 0x1p-53;
            if (change <= 0.0 || chance < std::exp(-change / heat)) {
                value_ += change;
                keep();
            } else {
                flip(k);
                if (other != k) flip(other);
            }
        }
    }

    /// A variable that stands in a row with k; k itself where there is none.
    Index neighbour(Index k, std::uint64_t first, std::uint64_t second) const {
        const Index begin = columns_.start[k];
        const auto rows = static_cast<std::uint64_t>(columns_.start[k + 1] - begin);
        if (rows == 0) return k;
        const std::vector<Index>& row = members_[columns_.index[begin + static_cast<Index>(first % rows)]];
        return row[second % row.size()];
    }

    /// Let k go the other way; returns by how much the value changes.
    double flip(Index k) {
        const double sign = up_[k] ? -1.0 : 1.0;
        double change = sign * own_[k];
        for (Index e = columns_.start[k]; e < columns_.start[k + 1]; ++e) {
            double& sum = sum_[columns_.index[e]];
            const double before = std::abs(sum);
            sum += sign * columns_.value[e];
            change += weight_[columns_.index[e]] * (std::abs(sum) - before);
        }
        up_[k] = !up_[k];
        return change;
    }

    void keep() {
        if (value_ < best_.value - 1e-12 * std::abs(best_.value) || std::isinf(best_.value)) best_ = {up_, value_};
    }

    Sparse columns_;
    std::span<const double> weight_, offset_, own_;
    std::vector<std::vector<Index>> members_;
    Flags up_;
    std::vector<double> sum_;
    double value_ = 0.0;
    Found best_;
};

}  // namespace

void bind_senses(nb::module_ m) {
    m.def(
        "anneal",
        [](std::span<const Index> start, std::span<const Index> index, std::span<const double> value,
           std::span<const double> weight, std::span<const double> offset, std::span<const double> own,
           std::pair<Index, Index> runs_and_steps, std::pair<double, double> heat, Index seed, double time_left_s) {
            const Sparse columns = checked(Sparse{start, index, value}, length(weight), "columns");
            require_length(offset, length(weight), "offset");
            require_length(own, columns.count(), "own");
            const Rate rate{runs_and_steps.first, runs_and_steps.second, heat.first, heat.second};
            require(columns.count() > 0 && rate.runs > 0 && rate.steps > 0, "nothing to anneal");
            require(rate.hot >= rate.cold && rate.cold > 0.0, "heat must fall, and stay above 0");
            Found found =
                Annealing(columns, weight, offset, own).run(rate, static_cast<std::uint64_t>(seed), time_left_s);
            return std::pair(std::move(found.up), found.value);
        },
        Unlocked(), "start"_a, "index"_a, "value"_a, "weight"_a, "offset"_a, "own"_a, "runs_and_steps"_a, "heat"_a,
        "seed"_a, "time_left_s"_a = INFINITY);
}

}  // namespace cellguard

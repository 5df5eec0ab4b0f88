#include "echelon.hpp"

#include <cmath>
#include <limits>

#include "border.hpp"
#include "hot.hpp"

namespace cellguard {

namespace {

constexpr double PIVOT = 1e-6;  // smaller coefficients are rounding: entries are small whole numbers or near them
constexpr double ZERO = 1e-10;
constexpr double HAIR = 1e-8;
constexpr Index SPARSE = 6;  // rows with fewer than one entry in so many are walked entry by entry

double cleaned(double v) { return std::abs(v) > ZERO ? v : 0.0; }

/// `target - factor * source`, without what rounding leaves of a zero.
CELLGUARD_HOT void subtract_all(std::span<double> target, std::span<const double> source, double factor) {
    for (std::size_t i = 0; i < target.size(); ++i) target[i] = cleaned(target[i] - factor * source[i]);
}

void subtract_some(std::span<double> target, std::span<const double> source, double factor,
                   std::span<const Index> entries) {
    for (const Index i : entries) target[i] = cleaned(target[i] - factor * source[i]);
}

/// A row that is subtracted from others. Rows of an echelon form are sparse for long: then only what is there counts.
class Subtrahend {
  public:
    explicit Subtrahend(std::span<const double> row) : row_(row) {
        const Index most = length(row) / SPARSE;
        entries_.reserve(static_cast<std::size_t>(most));
        for (Index i = 0; i < length(row); ++i) {
            if (row[i] == 0.0) continue;
            if (length(entries_) == most) return;
            entries_.push_back(i);
        }
        sparse_ = true;
    }

    void take_from(std::span<double> target, double factor) const {
        if (sparse_)
            subtract_some(target, row_, factor, entries_);
        else
            subtract_all(target, row_, factor);
    }

  private:
    std::span<const double> row_;
    std::vector<Index> entries_;
    bool sparse_ = false;
};

CELLGUARD_HOT void scale(std::span<double> row, double factor) {
    for (double& v : row) v *= factor;
}

CELLGUARD_HOT void add(std::span<double> target, std::span<const double> source, double factor) {
    for (std::size_t i = 0; i < target.size(); ++i) target[i] += factor * source[i];
}

void copy(std::span<const double> from, std::span<double> to) { std::copy(from.begin(), from.end(), to.begin()); }

struct Step {
    double size = std::numeric_limits<double>::infinity();
    Index stop = -1;
};

/// How far z can go along a movement, and which variable stops it: among equals the one that moves most.
Step longest_step(std::span<const double> move, std::span<const double> z, const Bounds& bounds, double sign) {
    Step step;
    double size = 0.0;
    for (Index i = 0; i < length(z); ++i) {
        const double c = sign * move[i];
        if (std::abs(c) <= PIVOT) continue;
        const double t = std::max(((c > 0.0 ? bounds.high[i] : bounds.low[i]) - z[i]) / c, 0.0);
        if (t < step.size || (t == step.size && std::abs(c) > size)) {
            step = {t, i};
            size = std::abs(c);
        }
    }
    return step;
}

/// Make z an exact combination of the movements, inside the bounds; returns `sign * z[row]`.
double settle(const Echelon& form, std::span<double> z, const Bounds& bounds, Index row, double sign) {
    std::vector<double> x(form.parameter.size());
    for (Index j = 0; j < form.count(); ++j) x[j] = z[form.parameter[j]];
    std::fill(z.begin(), z.end(), 0.0);
    for (Index j = 0; j < form.count(); ++j) {
        if (x[j] != 0.0) add(z, form.movement[j], x[j]);
    }
    double size = 0.0;
    for (const double v : z) size = std::max(size, std::abs(v));
    double shrink = 1.0;
    for (Index i = 0; i < length(z); ++i) {
        const double v = z[i];
        if (std::abs(v) < 1e-13 * size)
            z[i] = 0.0;
        else if (v > bounds.high[i])
            shrink = std::min(shrink, bounds.high[i] / v);
        else if (v < bounds.low[i])
            shrink = std::min(shrink, bounds.low[i] / v);
    }
    scale(z, shrink);
    return sign * z[row];
}

/// The simplex method on a form; what its pivots change is put back at the end.
class Simplex {
  public:
    Simplex(const Echelon& form, std::span<double> z, const Bounds& bounds, Index row, double sign)
        : basis_(form.parameter.begin(), form.parameter.end()),
          form_{form.movement, basis_},
          z_(z),
          low_(z.size()),
          high_(z.size()),
          bounds_{low_, high_},
          row_(row),
          sign_(sign),
          rate_(basis_.size()),
          saved_(basis_.size(), 0) {
        before_.value = Rows<double>(0, form.variables());
        for (Index i = 0; i < length(z); ++i) {
            const double hair = HAIR * (0.5 + fraction(static_cast<double>(i + 1) * GOLDEN));
            low_[i] = bounds.low[i] * (1.0 + hair);
            high_[i] = bounds.high[i] * (1.0 + hair);
        }
    }
    Simplex(const Simplex&) = delete;
    Simplex& operator=(const Simplex&) = delete;
    ~Simplex() { restore(form_.movement, before_); }

    void run(double target, Watch& watch) {
        Index idle = 0;
        for (Index round = 0; round < 20 * form_.count() + 100; ++round) {
            const double now = sign_ * z_[row_];
            if (now >= target || watch.over()) return;
            rate_movements();
            const Entering best = choose();
            if (best.movement < 0) return;
            if (best.gain <= 1e-12 * target && ++idle > form_.count() + 10) return;
            if (advance(best, target - now)) return;
        }
    }

  private:
    struct Entering {
        Index movement = -1;
        double gain = 0.0;
        Step step;
    };

    double direction(Index j) const { return sign_ * form_.movement(j, row_) > 0 ? 1.0 : -1.0; }

    void rate_movements() {
        for (Index j = 0; j < form_.count(); ++j) {
            const double g = sign_ * form_.movement(j, row_);
            const Index own = basis_[j];
            const bool blocked = g > 0 ? z_[own] >= high_[own] : z_[own] <= low_[own];
            rate_[j] = std::abs(g) < PIVOT || blocked ? 0.0 : std::abs(g);
        }
    }

    /// Of the five movements with the highest rates the one that gains most.
    Entering choose() {
        Entering best;
        for (int tried = 0; tried < 5 || best.movement < 0; ++tried) {
            const auto fastest = std::max_element(rate_.begin(), rate_.end());
            if (fastest == rate_.end() || !(*fastest > 0.0)) break;
            const Index j = fastest - rate_.begin();
            const Step step = longest_step(form_.movement[j], z_, bounds_, direction(j));
            if (step.size * rate_[j] > best.gain || best.movement < 0) best = {j, step.size * rate_[j], step};
            rate_[j] = 0.0;
        }
        return best;
    }

    /// Move along the entering movement; returns whether the target is reached.
    bool advance(const Entering& best, double missing) {
        const Index j = best.movement, stop = best.step.stop;
        const double way = direction(j), reach = missing / std::abs(form_.movement(j, row_));
        if (!(best.step.size < reach)) {  // nothing stops it before
            add(z_, form_.movement[j], reach * way);
            return true;
        }
        add(z_, form_.movement[j], best.step.size * way);
        z_[stop] = way * form_.movement(j, stop) > 0 ? high_[stop] : low_[stop];
        if (stop != basis_[j]) {
            save_what_changes(stop);
            pivot(form_, stop, j);
        }
        return false;
    }

    void save_what_changes(Index i) {
        for (Index j = 0; j < form_.count(); ++j) {
            if (saved_[j] || form_.movement(j, i) == 0.0) continue;
            saved_[j] = 1;
            before_.row.push_back(j);
            before_.value.append(form_.movement[j]);
        }
    }

    std::vector<Index> basis_;
    Echelon form_;
    std::span<double> z_;
    std::vector<double> low_, high_;
    Bounds bounds_;
    Index row_;
    double sign_;
    std::vector<double> rate_;
    Flags saved_;
    Before before_;
};

}  // namespace

void pivot(const Echelon& form, Index i, Index j) {
    const Matrix<double> Z = form.movement;
    scale(Z[j], 1.0 / Z(j, i));
    Z(j, i) = 1.0;
    const Subtrahend own(Z[j]);
    for (Index k = 0; k < Z.rows(); ++k) {
        if (k == j || Z(k, i) == 0.0) continue;
        own.take_from(Z[k], Z(k, i));
        Z(k, i) = 0.0;
    }
    form.parameter[j] = i;
}

Index strongest(Matrix<const double> movement, Index i) {
    Index best = 0;
    for (Index k = 1; k < movement.rows(); ++k) {
        if (std::abs(movement(k, i)) > std::abs(movement(best, i)) + 1e-9) best = k;
    }
    return best;
}

double largest(Matrix<const double> movement, Index i) {
    double size = 0.0;
    for (Index k = 0; k < movement.rows(); ++k) size = std::max(size, std::abs(movement(k, i)));
    return size;
}

Before eliminate(const Echelon& form, Index i, Index j) {
    const Matrix<double> Z = form.movement;
    const Index last = Z.rows() - 1;
    if (j != last) {
        std::swap_ranges(Z[j].begin(), Z[j].end(), Z[last].begin());
        std::swap(form.parameter[j], form.parameter[last]);
    }
    Before before{{}, Rows<double>(0, Z.columns())};
    const Subtrahend used(Z[last]);
    for (Index k = 0; k < last; ++k) {
        if (Z(k, i) == 0.0) continue;
        before.row.push_back(k);
        before.value.append(Z[k]);
        used.take_from(Z[k], Z(k, i) / Z(last, i));
        Z(k, i) = 0.0;
    }
    return before;
}

void restore(Matrix<double> rows, const Before& before) {
    for (Index at = 0; at < length(before.row); ++at) copy(before.value[at], rows[before.row[at]]);
}

OwnEchelon echelon(Matrix<const double> vectors) {
    const Index d = vectors.rows(), m = vectors.columns();
    OwnEchelon out(Rows<double>(vectors), std::vector<Index>(static_cast<std::size_t>(d), -1));
    const Matrix<double> Z = out.movement.view();
    Index rank = 0;
    for (Index k = 0; k < d; ++k) {
        Index best = -1;
        double size = 0.0;
        for (Index i = 0; i < m; ++i) {
            if (std::abs(Z(k, i)) > size * (1.0 + 1e-9)) {
                best = i;
                size = std::abs(Z(k, i));
            }
        }
        if (size < 1e-7) continue;
        if (k != rank) copy(Z[k], Z[rank]);
        scale(Z[rank], 1.0 / Z(rank, best));
        Z(rank, best) = 1.0;
        const Subtrahend own(Z[rank]);
        for (Index other = 0; other < d; ++other) {
            if ((rank <= other && other <= k) || Z(other, best) == 0.0) continue;
            own.take_from(Z[other], Z(other, best));
            Z(other, best) = 0.0;
        }
        out.parameter[rank++] = best;
    }
    out.shorten(rank);
    return out;
}

double push(const Echelon& form, std::span<double> z, const Bounds& bounds, Index row, double sign, double target,
            Watch& watch) {
    Simplex(form, z, bounds, row, sign).run(target, watch);
    return settle(form, z, bounds, row, sign);
}

// ---------------------------------------------------------------- Python

namespace {

Echelon checked_pivot(Matrix<double> movement, std::span<Index> parameter, Index i, Index j) {
    require_index(i, movement.columns(), "variable");
    require_index(j, movement.rows(), "movement");
    require(movement(j, i) != 0.0, "the movement does not move the variable");
    return checked(Echelon{movement, parameter});
}

}  // namespace

void bind_echelon(nb::module_ m) {
    m.def(
        "pivot",
        [](Matrix<double> movement, std::span<Index> parameter, Index i, Index j) {
            pivot(checked_pivot(movement, parameter, i, j), i, j);
        },
        Unlocked(), "movement"_a, "parameter"_a, "i"_a, "j"_a);
    m.def(
        "strongest",
        [](Matrix<const double> movement, Index i) {
            require_index(i, movement.columns(), "variable");
            require(movement.rows() > 0, "there is no movement");
            return strongest(movement, i);
        },
        "movement"_a, "i"_a);
    m.def(
        "eliminate",
        [](Matrix<double> movement, std::span<Index> parameter, Index i, Index j) {
            Before before = eliminate(checked_pivot(movement, parameter, i, j), i, j);
            return std::pair(std::move(before.row), std::move(before.value));
        },
        Unlocked(), "movement"_a, "parameter"_a, "i"_a, "j"_a);
    m.def(
        "echelon",
        [](Matrix<const double> vectors) {
            OwnEchelon form = echelon(vectors);
            return std::pair(std::move(form.movement), std::move(form.parameter));
        },
        Unlocked(), "vectors"_a);
    m.def(
        "push",
        [](Matrix<double> movement, std::span<Index> parameter, std::span<double> z, std::span<const double> low,
           std::span<const double> high, Index row, double sign, double target, double time_left_s) {
            const Index n = movement.columns();
            require_length(z, n, "z");
            require_length(low, n, "low");
            require_length(high, n, "high");
            require_index(row, n, "row");
            Watch watch(time_left_s);
            return push(checked(Echelon{movement, parameter}), z, {low, high}, row, sign, target, watch);
        },
        Unlocked(), "movement"_a, "parameter"_a, "z"_a, "low"_a, "high"_a, "row"_a, "sign"_a, "target"_a,
        "time_left_s"_a = std::numeric_limits<double>::infinity());
}

}  // namespace cellguard

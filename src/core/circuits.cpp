// Which variables determine another one, the fewest and lightest first.
//
// In an echelon form every variable is a combination of the parameters. When the parameters are the lightest
// independent variables, these combinations are the light cut sets of the space: a variable can only move if one of
// its combination does.
#include <cmath>

#include "border.hpp"
#include "echelon.hpp"

namespace cellguard {

namespace {

constexpr double PIVOT = 1e-6;

/// Make the first independent variables of the order the parameters.
void lightest(const Echelon& form, std::span<const Index> order) {
    const Matrix<double> Z = form.movement;
    Flags locked(form.parameter.size(), 0);
    std::vector<Index> owner(static_cast<std::size_t>(form.variables()), -1);
    for (Index j = 0; j < form.count(); ++j) owner[form.parameter[j]] = j;
    Index left = form.count();
    for (const Index i : order) {
        if (left == 0) break;
        Index j = owner[i];
        if (j < 0) {
            for (Index k = 0; k < form.count(); ++k) {
                const double size = std::abs(Z(k, i));
                if (!locked[k] && size > PIVOT && (j < 0 || size > std::abs(Z(j, i)) + 1e-9)) j = k;
            }
            if (j < 0) continue;
            owner[form.parameter[j]] = -1;
            pivot(form, i, j);
            owner[i] = j;
        }
        locked[j] = 1;
        --left;
    }
}

/// By how much each variable exceeds the sum of its combination.
std::vector<double> excess(Matrix<const double> Z, std::span<const Index> parameter, std::span<const double> y) {
    std::vector<double> out(y.begin(), y.end());
    for (Index j = 0; j < Z.rows(); ++j) {
        const double v = y[parameter[j]];
        if (!(v > 0.0)) continue;
        for (Index i = 0; i < Z.columns(); ++i) {
            if (std::abs(Z(j, i)) > PIVOT) out[i] -= v;
        }
    }
    for (const Index i : parameter) out[i] = 0.0;
    return out;
}

/// Reduced vectors in echelon form by their pivots, each known as a combination of the candidates.
struct Combinations {
    Rows<double> vector, record;
    std::vector<Index> pivot;
};

/// Write variable p by the first candidates that suffice; columns of N are the variables. Returns the coefficients, one
/// per candidate; all zero when they do not suffice.
std::vector<double> express(Matrix<const double> N, Index p, std::span<const Index> candidates) {
    const Index d = N.rows(), k = length(candidates);
    Combinations basis{Rows<double>(0, d), Rows<double>(0, k), {}};
    std::vector<double> goal(static_cast<std::size_t>(d)), result(static_cast<std::size_t>(k), 0.0);
    std::vector<double> v(goal.size()), c(result.size());
    for (Index a = 0; a < d; ++a) goal[a] = N(a, p);
    for (Index q = 0; q < k && basis.vector.rows() < d; ++q) {
        for (Index a = 0; a < d; ++a) v[a] = N(a, candidates[q]);
        std::fill(c.begin(), c.end(), 0.0);
        c[q] = 1.0;
        for (Index r = 0; r < basis.vector.rows(); ++r) {
            const double f = v[basis.pivot[r]];
            if (f == 0.0) continue;
            for (Index a = 0; a < d; ++a) v[a] -= f * basis.vector(r, a);
            for (Index a = 0; a < q; ++a) c[a] -= f * basis.record(r, a);
        }
        Index best = 0;
        for (Index a = 1; a < d; ++a) {
            if (std::abs(v[a]) > std::abs(v[best])) best = a;
        }
        if (std::abs(v[best]) < PIVOT) continue;
        const double inverse = 1.0 / v[best];
        for (double& x : v) x *= inverse;
        for (double& x : c) x *= inverse;
        const double f = goal[best];
        double largest = 0.0;
        for (Index a = 0; a < d; ++a) {
            if (f != 0.0) goal[a] -= f * v[a];
            largest = std::max(largest, std::abs(goal[a]));
        }
        for (Index a = 0; f != 0.0 && a <= q; ++a) result[a] += f * c[a];
        basis.vector.append(v);
        basis.record.append(c);
        basis.pivot.push_back(best);
        if (largest < PIVOT) return result;
    }
    std::fill(result.begin(), result.end(), 0.0);
    return result;
}

}  // namespace

void bind_circuits(nb::module_ m) {
    m.def(
        "lightest",
        [](Matrix<double> movement, std::span<Index> parameter, std::span<const Index> order) {
            require_indices(order, movement.columns(), "order");
            lightest(checked(Echelon{movement, parameter}), order);
        },
        Unlocked(), "movement"_a, "parameter"_a, "order"_a);
    m.def(
        "excess",
        [](Matrix<const double> movement, std::span<const Index> parameter, std::span<const double> y) {
            require_length(parameter, movement.rows(), "parameter");
            require_indices(parameter, movement.columns(), "parameter");
            require_length(y, movement.columns(), "y");
            return excess(movement, parameter, y);
        },
        Unlocked(), "movement"_a, "parameter"_a, "y"_a);
    m.def(
        "express",
        [](Matrix<const double> movement, Index p, std::span<const Index> candidates) {
            require_index(p, movement.columns(), "variable");
            require_indices(candidates, movement.columns(), "candidates");
            return express(movement, p, candidates);
        },
        Unlocked(), "movement"_a, "p"_a, "candidates"_a);
}

}  // namespace cellguard

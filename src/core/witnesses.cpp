// Which movement shows what a view must hold possible.
//
// A view asks how far a variable can go up, or down. Each movement takes it some way, and what the view knows allows a
// share of that. Millions of questions choose among thousands of movements.
#include <algorithm>
#include <cmath>

#include "border.hpp"
#include "checks.hpp"

namespace cellguard {

namespace {

/// What is asked: the variable, who asks, and how far is enough.
struct Questions {
    std::span<const Index> variable;
    std::span<const Index> view;
    std::span<const double> enough;
};

/// For each question the first movement that goes far enough (sign 1: up, -1: down), or the one that goes furthest,
/// and how far it goes as a whole; 0 where none goes. `moved` lists the movements of each variable.
std::pair<std::vector<Index>, std::vector<double>> choose(const Sparse& moved, Matrix<const double> share,
                                                          const Questions& asked, double sign) {
    std::vector<Index> chosen(asked.variable.size(), 0);
    std::vector<double> size(asked.variable.size(), 0.0);
    for (Index q = 0; q < length(asked.variable); ++q) {
        double furthest = 0.0;
        for (Index k = moved.start[asked.variable[q]]; k < moved.start[asked.variable[q] + 1]; ++k) {
            const double whole = sign * moved.value[k];
            const double reached = whole > 0.0 ? whole * share(moved.index[k], asked.view[q]) : 0.0;
            if (reached <= furthest) continue;
            furthest = reached;
            chosen[q] = moved.index[k];
            size[q] = whole;
            if (reached >= asked.enough[q]) break;
        }
    }
    return {std::move(chosen), std::move(size)};
}

/// What views know: a variable, the view, and how far the variable can then move down and up.
struct Known {
    std::span<const Index> variable;
    std::span<const Index> view;
    std::span<const double> down;
    std::span<const double> up;
};

/// Lower each movement's share (row) for each view (column) to what the view's knowledge allows.
void lower_shares(const Sparse& moved, const Known& known, Matrix<double> share) {
    for (Index e = 0; e < length(known.variable); ++e) {
        for (Index k = moved.start[known.variable[e]]; k < moved.start[known.variable[e] + 1]; ++k) {
            const double size = std::abs(moved.value[k]);
            const double slack = moved.value[k] > 0.0 ? known.up[e] : known.down[e];
            if (size <= slack) continue;
            double& own = share(moved.index[k], known.view[e]);
            own = std::min(own, slack / size);
        }
    }
}

}  // namespace

void bind_witnesses(nb::module_ m) {
    m.def(
        "lower_shares",
        [](std::span<const Index> start, std::span<const Index> index, std::span<const double> value,
           std::span<const Index> variable, std::span<const Index> view, std::span<const double> down,
           std::span<const double> up, Matrix<double> share) {
            const Sparse moved = checked(Sparse{start, index, value}, share.rows(), "moved");
            require_indices(variable, moved.count(), "variable");
            require_length(view, length(variable), "view");
            require_indices(view, share.columns(), "view");
            require_length(down, length(variable), "down");
            require_length(up, length(variable), "up");
            lower_shares(moved, {variable, view, down, up}, share);
        },
        Unlocked(), "start"_a, "index"_a, "value"_a, "variable"_a, "view"_a, "down"_a, "up"_a, "share"_a);
    m.def(
        "choose",
        [](std::span<const Index> start, std::span<const Index> index, std::span<const double> value,
           Matrix<const double> share, std::span<const Index> variable, std::span<const Index> view,
           std::span<const double> enough, double sign) {
            const Sparse moved = checked(Sparse{start, index, value}, share.rows(), "moved");
            require_indices(variable, moved.count(), "variable");
            require_length(view, length(variable), "view");
            require_indices(view, share.columns(), "view");
            require_length(enough, length(variable), "enough");
            return choose(moved, share, {variable, view, enough}, sign);
        },
        Unlocked(), "start"_a, "index"_a, "value"_a, "share"_a, "variable"_a, "view"_a, "enough"_a, "sign"_a);
}

}  // namespace cellguard

// Steps of the primal-dual method for linear programs whose columns have few entries (Chambolle and Pock 2011).
//
// After a few columns of a solved program were fixed, some hundred steps lead near the new optimum, at a thousandth of
// the price of solving it again. Nothing is proven by them.
#include "border.hpp"
#include "checks.hpp"
#include "watch.hpp"

namespace cellguard {

namespace {

/// min cost x, A x = sides, 0 <= x <= upper; A is given by columns.
struct Program {
    Sparse A;
    std::span<const double> sides, cost, upper;
};

/// Take steps over some columns. The mean of all points on the way, which is much closer to the optimum than the last
/// one, is written to `mean`. `size` times the norm of A must be below 1.
void saddle_steps(const Program& program, std::span<const Index> columns, std::span<double> x, std::span<double> dual,
                  double size, Index steps, std::span<double> mean, Watch& watch) {
    const Sparse& A = program.A;
    std::vector<double> activity(program.sides.size());
    for (const Index j : columns) mean[j] = 0.0;
    Index taken = 0;
    for (; taken < steps && !watch.over(); ++taken) {
        std::fill(activity.begin(), activity.end(), 0.0);
        for (const Index j : columns) {
            double price = program.cost[j];
            for (Index k = A.start[j]; k < A.start[j + 1]; ++k) price -= A.value[k] * dual[A.index[k]];
            const double moved = std::min(std::max(x[j] - size * price, 0.0), program.upper[j]);
            const double ahead = 2.0 * moved - x[j];
            x[j] = moved;
            mean[j] += moved;
            for (Index k = A.start[j]; k < A.start[j + 1]; ++k) activity[A.index[k]] += A.value[k] * ahead;
        }
        for (std::size_t i = 0; i < activity.size(); ++i) dual[i] += size * (program.sides[i] - activity[i]);
    }
    for (const Index j : columns) mean[j] = taken > 0 ? mean[j] / static_cast<double>(taken) : x[j];
}

}  // namespace

void bind_saddle(nb::module_ m) {
    m.def(
        "saddle_steps",
        [](std::span<const Index> start, std::span<const Index> index, std::span<const double> value,
           std::span<const double> sides, std::span<const double> cost, std::span<const double> upper,
           std::span<const Index> columns, std::span<double> x, std::span<double> dual, double size, Index steps,
           std::span<double> mean) {
            const Sparse A = checked(Sparse{start, index, value}, length(sides), "A");
            for (const auto& each : {cost, upper}) require_length(each, A.count(), "cost and upper");
            for (const auto& each : {x, mean}) require_length(each, A.count(), "x and mean");
            require_length(dual, length(sides), "dual");
            require_indices(columns, A.count(), "columns");
            Watch watch(std::numeric_limits<double>::infinity());
            saddle_steps({A, sides, cost, upper}, columns, x, dual, size, steps, mean, watch);
        },
        Unlocked(), "start"_a, "index"_a, "value"_a, "sides"_a, "cost"_a, "upper"_a, "columns"_a, "x"_a, "dual"_a,
        "size"_a, "steps"_a, "mean"_a);
}

}  // namespace cellguard

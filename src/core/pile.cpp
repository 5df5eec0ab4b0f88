// Many small movements piled up into one, as long as there is room.
#include "border.hpp"
#include "checks.hpp"

namespace cellguard {

namespace {

/// A movement that holds as many of the given multiples of basis columns as fit, in their order: amount[i] of
/// columns[i] is added unless a variable leaves its room.
std::vector<double> pile_up(const Sparse& basis, std::span<const Index> columns, std::span<const double> amount,
                            std::span<const double> down, std::span<const double> up) {
    std::vector<double> moved(up.size(), 0.0);
    for (Index i = 0; i < length(columns); ++i) {
        const Index first = basis.start[columns[i]], last = basis.start[columns[i] + 1];
        const auto fits = [&](Index k) {
            const Index v = basis.index[k];
            const double there = moved[v] + amount[i] * basis.value[k];
            return !(there > up[v] || -there > down[v]);
        };
        Index k = first;
        while (k < last && fits(k)) ++k;
        if (k < last) continue;
        for (k = first; k < last; ++k) moved[basis.index[k]] += amount[i] * basis.value[k];
    }
    return moved;
}

}  // namespace

void bind_pile(nb::module_ m) {
    m.def(
        "pile_up",
        [](std::span<const Index> start, std::span<const Index> index, std::span<const double> value,
           std::span<const Index> columns, std::span<const double> amount, std::span<const double> down,
           std::span<const double> up) {
            const Sparse basis = checked(Sparse{start, index, value}, length(up), "basis");
            require_indices(columns, basis.count(), "columns");
            require_length(amount, length(columns), "amount");
            require_length(down, length(up), "down");
            return pile_up(basis, columns, amount, down, up);
        },
        Unlocked(), "start"_a, "index"_a, "value"_a, "columns"_a, "amount"_a, "down"_a, "up"_a);
}

}  // namespace cellguard

// The matrices that the interior point factors: N' diag(theta) N for a sparse N given by rows.
#include "border.hpp"
#include "checks.hpp"

namespace cellguard {

namespace {

void require_sorted(const Sparse& N) {
    for (Index i = 0; i < N.count(); ++i) {
        for (Index k = N.start[i] + 1; k < N.start[i + 1]; ++k)
            require(N.index[k - 1] < N.index[k], "the columns of a row must rise");
    }
}

/// The upper triangle; the lower one stays 0.
void dense_gram(const Sparse& N, std::span<const double> theta, Matrix<double> out) {
    std::fill(out.data(), out.data() + out.rows() * out.columns(), 0.0);
    for (Index i = 0; i < N.count(); ++i) {
        for (Index p = N.start[i]; p < N.start[i + 1]; ++p) {
            const double f = theta[i] * N.value[p];
            const std::span<double> row = out[N.index[p]];
            for (Index k = p; k < N.start[i + 1]; ++k) row[N.index[k]] += f * N.value[k];
        }
    }
}

/// Where the products of each row of N, pair by pair, go in the lower triangle of N' N.
std::vector<std::int32_t> places(const Lists& N, const Lists& lower) {
    std::vector<std::int32_t> out;
    for (Index i = 0; i < N.count(); ++i) {
        const std::span<const Index> row = N[i];
        for (std::size_t p = 0; p < row.size(); ++p) {
            for (std::size_t k = p; k < row.size(); ++k) {
                const std::span<const Index> entries = lower[row[k]];
                const auto at = std::lower_bound(entries.begin(), entries.end(), row[p]);
                require(at != entries.end() && *at == row[p], "a product has no place in the pattern");
                out.push_back(static_cast<std::int32_t>(lower.start[row[k]] + (at - entries.begin())));
            }
        }
    }
    return out;
}

/// Entries of the lower triangle, by the places of its products.
void sparse_gram(std::span<const Index> start, std::span<const double> value, std::span<const double> theta,
                 std::span<const std::int32_t> place, std::span<double> out) {
    std::fill(out.begin(), out.end(), 0.0);
    std::size_t at = 0;
    for (Index i = 0; i < length(theta); ++i) {
        for (Index p = start[i]; p < start[i + 1]; ++p) {
            const double f = theta[i] * value[p];
            for (Index k = p; k < start[i + 1]; ++k) out[place[at++]] += f * value[k];
        }
    }
}

}  // namespace

void bind_gram(nb::module_ m) {
    m.def(
        "gram",
        [](std::span<const Index> start, std::span<const Index> index, std::span<const double> value,
           std::span<const double> theta, Matrix<double> out) {
            const Sparse N = checked(Sparse{start, index, value}, out.columns(), "N");
            require_sorted(N);
            require_length(theta, N.count(), "theta");
            require(out.rows() == out.columns(), "out must be square");
            dense_gram(N, theta, out);
        },
        Unlocked(), "start"_a, "index"_a, "value"_a, "theta"_a, "out"_a);
    m.def(
        "places",
        [](std::span<const Index> start, std::span<const Index> index, std::span<const Index> lower_start,
           std::span<const Index> lower_index) {
            const Index n = length(lower_start) - 1;
            require(length(lower_index) < std::numeric_limits<std::int32_t>::max(), "the pattern has too many entries");
            return places(checked(Lists{start, index}, n, "N"), checked(Lists{lower_start, lower_index}, n, "lower"));
        },
        Unlocked(), "start"_a, "index"_a, "lower_start"_a, "lower_index"_a);
    m.def(
        "sparse_gram",
        [](std::span<const Index> start, std::span<const double> value, std::span<const double> theta,
           std::span<const std::int32_t> place, std::span<double> out) {
            require_pointers(start, length(value), "start");
            require_length(theta, length(start) - 1, "theta");
            Index products = 0;
            for (Index i = 0; i < length(theta); ++i) {
                const Index k = start[i + 1] - start[i];
                products += k * (k + 1) / 2;
            }
            require_length(place, products, "place");
            for (const std::int32_t p : place) require_index(p, length(out), "place");
            sparse_gram(start, value, theta, place, out);
        },
        Unlocked(), "start"_a, "value"_a, "theta"_a, "place"_a, "out"_a);
}

}  // namespace cellguard

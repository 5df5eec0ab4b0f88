// The systems that the interior point solves: N' diag(theta) N for a sparse N given by rows.
#include "blas.hpp"
#include "border.hpp"
#include "checks.hpp"
#include "hot.hpp"

namespace cellguard {

namespace {

using Numbers = std::vector<double>;

void require_sorted(const Sparse& M) {
    for (Index i = 0; i < M.count(); ++i) {
        for (Index k = M.start[i] + 1; k < M.start[i + 1]; ++k)
            require(M.index[k - 1] < M.index[k], "the columns of a row must rise");
    }
}

constexpr Index FULL = 4;  // a row with more than this share of all columns is added as if it had all of them

CELLGUARD_HOT void add_row(double* target, const double* source, double factor, Index n) {
    for (Index i = 0; i < n; ++i) target[i] += factor * source[i];
}

/// What a dense factor of M' diag(weight) M is made of and used for. M has a row for each mover: the basis of its
/// movements, or the relations it stands in.
class DenseSystem {
  public:
    DenseSystem(const Sparse& M, Index columns)
        : start_(M.start.begin(), M.start.end()),
          index_(M.index.begin(), M.index.end()),
          value_(M.value.begin(), M.value.end()),
          columns_(columns) {}

    /// The upper triangle of M' diag(weight) M; the lower one stays 0.
    void fill(std::span<const double> weight, Matrix<double> out) const {
        require_length(weight, rows(), "weight");
        require(out.rows() == columns_ && out.columns() == columns_, "out must have a row for each column");
        std::fill(out.data(), out.data() + columns_ * columns_, 0.0);
        Numbers dense(static_cast<std::size_t>(columns_), 0.0);
        for (Index i = 0; i < rows(); ++i) {
            const Index begin = start_[i], stop = start_[i + 1];
            const bool full = FULL * (stop - begin) > columns_;
            if (full) {
                for (Index p = begin; p < stop; ++p) dense[index_[p]] = value_[p];
            }
            for (Index p = begin; p < stop; ++p) {
                const double f = weight[i] * value_[p];
                double* row = out.data() + index_[p] * columns_;
                if (full) {
                    add_row(row + index_[p], dense.data() + index_[p], f, columns_ - index_[p]);
                } else {
                    for (Index k = p; k < stop; ++k) row[index_[k]] += f * value_[k];
                }
            }
            if (full) std::fill(dense.begin(), dense.end(), 0.0);
        }
    }

    /// The x = M u that minimises 1/2 x' diag(theta) x - g x.
    Numbers along(Matrix<const double> factor, std::span<const double> g, std::span<const double> theta,
                  Index refinements) const {
        require_factor(factor);
        for (const auto& each : {g, theta}) require_length(each, rows(), "g and theta");
        Numbers x(g.size()), left(g.begin(), g.end()), u(static_cast<std::size_t>(columns_));
        for (Index round = 0;; ++round) {
            collect(left, u);
            blas::solve_factored(factor, u);
            for (Index i = 0; i < rows(); ++i) x[i] += row_times(i, u);
            if (round == refinements) return x;
            for (Index i = 0; i < rows(); ++i) left[i] = g[i] - theta[i] * x[i];
        }
    }

    /// The x that minimises 1/2 x' diag(1 / D) x - g x and brings v back to M' (v + x) = 0.
    Numbers across(Matrix<const double> factor, std::span<const double> g, std::span<const double> v,
                   std::span<const double> D, Index refinements) const {
        require_factor(factor);
        for (const auto& each : {g, v, D}) require_length(each, rows(), "g, v and D");
        Numbers x(g.size()), off(g.size()), u(static_cast<std::size_t>(columns_));
        for (Index i = 0; i < rows(); ++i) {
            x[i] = D[i] * g[i];
            off[i] = x[i] + v[i];
        }
        for (Index round = 0;; ++round) {
            collect(off, u);
            blas::solve_factored(factor, u);
            for (Index i = 0; i < rows(); ++i) x[i] -= D[i] * row_times(i, u);
            if (round == refinements) return x;
            for (Index i = 0; i < rows(); ++i) off[i] = v[i] + x[i];
        }
    }

  private:
    Index rows() const { return length(start_) - 1; }

    void require_factor(Matrix<const double> factor) const {
        require(factor.rows() == columns_ && factor.columns() == columns_,
                "the factor must have a row for each column");
    }

    double row_times(Index i, const Numbers& u) const {
        double total = 0.0;
        for (Index k = start_[i]; k < start_[i + 1]; ++k) total += value_[k] * u[index_[k]];
        return total;
    }

    /// u = M' x.
    void collect(const Numbers& x, Numbers& u) const {
        std::fill(u.begin(), u.end(), 0.0);
        for (Index i = 0; i < rows(); ++i) {
            for (Index k = start_[i]; k < start_[i + 1]; ++k) u[index_[k]] += value_[k] * x[i];
        }
    }

    std::vector<Index> start_;
    std::vector<std::int32_t> index_;
    Numbers value_;
    Index columns_;
};

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
    nb::class_<DenseSystem>(m, "DenseSystem")
        .def(
            "__init__",
            [](DenseSystem* self, std::span<const Index> start, std::span<const Index> index,
               std::span<const double> value, Index columns) {
                require(0 <= columns && columns < std::numeric_limits<std::int32_t>::max(), "too many columns");
                const Sparse M = checked(Sparse{start, index, value}, columns, "M");
                require_sorted(M);
                blas::load();
                new (self) DenseSystem(M, columns);
            },
            "start"_a, "index"_a, "value"_a, "columns"_a)
        .def("fill", &DenseSystem::fill, Unlocked(), "weight"_a, "out"_a)
        .def("along", &DenseSystem::along, Unlocked(), "factor"_a, "g"_a, "theta"_a, "refinements"_a)
        .def("across", &DenseSystem::across, Unlocked(), "factor"_a, "g"_a, "v"_a, "D"_a, "refinements"_a);
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

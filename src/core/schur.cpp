// The copies of the table in the range form (see cellguard._engine.copies).
//
// G = M' H^-1 M for sparse M (a column per cell) is never formed: row i of G is a combination of the few rows of
// B = H^-1 M that cell i touches, scaled and added to the system at once.
#include "border.hpp"
#include "checks.hpp"
#include "hot.hpp"

namespace cellguard {

namespace {

constexpr Index BLOCK = 16;  // cells whose rows are added, then turned

/// Fill the lower triangle of H = M diag M'. Indices ascend within a cell.
void normal(const Sparse& M, std::span<const double> diagonal, Matrix<double> H) {
    std::fill(H.data(), H.data() + H.rows() * H.columns(), 0.0);
    for (Index j = 0; j < M.count(); ++j) {
        for (Index k = M.start[j]; k < M.start[j + 1]; ++k) {
            const double scaled = M.value[k] * diagonal[j];
            const std::span<double> row = H[M.index[k]];
            for (Index m = M.start[j]; m <= k; ++m) row[M.index[m]] += scaled * M.value[m];
        }
    }
}

/// Copy the lower triangle to the upper one.
void mirror(Matrix<double> H) {
    for (Index i = 0; i < H.rows(); ++i) {
        for (Index j = 0; j < i; ++j) H(j, i) = H(i, j);
    }
}

CELLGUARD_HOT void add_row(double* target, const double* source, double factor, Index n) {
    for (Index i = 0; i < n; ++i) target[i] += factor * source[i];
}

/// target += scale * factor * row, entry by entry.
CELLGUARD_HOT void add_product(double* target, const double* factor, const double* row, double scale, Index n) {
    for (Index i = 0; i < n; ++i) target[i] += scale * factor[i] * row[i];
}

/// B = H^-1 M for the chosen columns of M: B[:, j] combines the rows of the inverse that cell j touches.
Rows<double> spread(const Sparse& M, Matrix<const double> inverse, std::span<const Index> chosen) {
    const Index cells = length(chosen), rank = inverse.rows();
    Rows<double> B(rank, cells);
    Rows<double> block(BLOCK, rank);
    for (Index start = 0; start < cells; start += BLOCK) {
        const Index stop = std::min(cells, start + BLOCK);
        for (Index j = start; j < stop; ++j) {
            const std::span<double> row = block[j - start];
            std::fill(row.begin(), row.end(), 0.0);
            for (Index k = M.start[chosen[j]]; k < M.start[chosen[j] + 1]; ++k)
                add_row(row.data(), inverse[M.index[k]].data(), M.value[k], rank);
        }
        for (Index p = 0; p < rank; ++p) {
            for (Index j = start; j < stop; ++j) B(p, j) = block(j - start, p);
        }
    }
    return B;
}

/// Adds P' M' H^-1 M P to the lower triangle of a system, row by row; P holds a part for each cell, or two side by
/// side.
class Accumulation {
  public:
    Accumulation(Matrix<double> S, const Sparse& M, Matrix<const double> inverse, std::span<const Index> chosen)
        : S_(S),
          M_(M),
          chosen_(chosen),
          B_(spread(M, inverse, chosen)),
          row_(chosen.size()) {}

    void tied(std::span<const double> part) {
        const std::vector<double> own = of_chosen(part);
        for (Index a = 0; a < length(chosen_); ++a) {
            combine(a, a + 1);
            add(S_[chosen_[a]], 0, own, own[a], a + 1);
        }
    }

    void split(std::span<const double> up, std::span<const double> down) {
        const Index cells = length(up);
        const std::vector<double> above = of_chosen(up), below = of_chosen(down);
        for (Index a = 0; a < length(chosen_); ++a) {
            combine(a, length(chosen_));
            const std::span<double> top = S_[chosen_[a]], bottom = S_[cells + chosen_[a]];
            if (above[a] != 0.0) add(top, 0, above, above[a], a + 1);
            if (below[a] == 0.0) continue;
            add(bottom, cells, below, below[a], a + 1);
            add(bottom, 0, above, below[a], length(chosen_));
        }
    }

  private:
    std::vector<double> of_chosen(std::span<const double> part) const {
        std::vector<double> out;
        for (const Index i : chosen_) out.push_back(part[i]);
        return out;
    }

    /// The first n entries of the row of G of the a-th chosen cell.
    void combine(Index a, Index n) {
        std::fill(row_.begin(), row_.begin() + n, 0.0);
        for (Index k = M_.start[chosen_[a]]; k < M_.start[chosen_[a] + 1]; ++k)
            add_row(row_.data(), B_[M_.index[k]].data(), M_.value[k], n);
    }

    /// Add scale * factor * row to the places of the first n chosen cells, which begin at `offset`.
    void add(std::span<double> out, Index offset, std::span<const double> factor, double scale, Index n) {
        if (length(chosen_) == M_.count()) {  // no gaps: neighbours are added at once
            add_product(out.data() + offset, factor.data(), row_.data(), scale, n);
            return;
        }
        for (Index j = 0; j < n; ++j) out[offset + chosen_[j]] += scale * factor[j] * row_[j];
    }

    Matrix<double> S_;
    const Sparse& M_;
    std::span<const Index> chosen_;
    Rows<double> B_;
    std::vector<double> row_;
};

CELLGUARD_HOT double dot(const double* a, const double* b, Index n) {
    double total = 0.0;
#pragma omp simd reduction(+ : total)
    for (Index i = 0; i < n; ++i) total += a[i] * b[i];
    return total;
}

/// D^-1 b - D^-1 M' H^-1 M D^-1 b for every request, H^-1 and D^-1 its own.
Rows<double> project(const Sparse& M, Stack<const double> inverse, Matrix<const double> reciprocal,
                     Matrix<const double> b) {
    Rows<double> out(b.rows(), b.columns());
    std::vector<double> right(static_cast<std::size_t>(inverse.rows)), y(right.size());
    for (Index k = 0; k < inverse.count; ++k) {
        std::fill(right.begin(), right.end(), 0.0);
        for (Index j = 0; j < M.count(); ++j) {
            const double scaled = b(k, j) * reciprocal(k, j);
            for (Index m = M.start[j]; m < M.start[j + 1]; ++m) right[M.index[m]] += M.value[m] * scaled;
        }
        const Matrix<const double> own = inverse[k];
        for (Index p = 0; p < own.rows(); ++p) y[p] = dot(own[p].data(), right.data(), own.columns());
        for (Index j = 0; j < M.count(); ++j) {
            double total = b(k, j);
            for (Index m = M.start[j]; m < M.start[j + 1]; ++m) total -= M.value[m] * y[M.index[m]];
            out(k, j) = total * reciprocal(k, j);
        }
    }
    return out;
}

std::vector<Index> cells_with_a_part(std::span<const double> first, std::span<const double> second) {
    std::vector<Index> out;
    for (Index i = 0; i < length(first); ++i) {
        if (first[i] != 0.0 || (!second.empty() && second[i] != 0.0)) out.push_back(i);
    }
    return out;
}

}  // namespace

void bind_schur(nb::module_ m) {
    m.def(
        "normal",
        [](std::span<const Index> start, std::span<const Index> index, std::span<const double> value,
           std::span<const double> diagonal, Matrix<double> H) {
            require(H.rows() == H.columns(), "H must be square");
            const Sparse M = checked(Sparse{start, index, value}, H.rows(), "M");
            require_length(diagonal, M.count(), "diagonal");
            normal(M, diagonal, H);
        },
        Unlocked(), "start"_a, "index"_a, "value"_a, "diagonal"_a, "H"_a);
    m.def(
        "mirror",
        [](Matrix<double> H) {
            require(H.rows() == H.columns(), "H must be square");
            mirror(H);
        },
        Unlocked(), "H"_a);
    m.def(
        "accumulate",
        [](Matrix<double> S, std::span<const Index> start, std::span<const Index> index, std::span<const double> value,
           Matrix<const double> inverse, std::span<const double> part) {
            require(inverse.rows() == inverse.columns(), "the inverse must be square");
            const Sparse M = checked(Sparse{start, index, value}, inverse.rows(), "M");
            require(S.rows() == M.count() && S.columns() == M.count(), "S has the wrong shape");
            require_length(part, M.count(), "part");
            Accumulation(S, M, inverse, cells_with_a_part(part, {})).tied(part);
        },
        Unlocked(), "S"_a, "start"_a, "index"_a, "value"_a, "inverse"_a, "part"_a);
    m.def(
        "accumulate",
        [](Matrix<double> S, std::span<const Index> start, std::span<const Index> index, std::span<const double> value,
           Matrix<const double> inverse, std::span<const double> up, std::span<const double> down) {
            require(inverse.rows() == inverse.columns(), "the inverse must be square");
            const Sparse M = checked(Sparse{start, index, value}, inverse.rows(), "M");
            require(S.rows() == 2 * M.count() && S.columns() == 2 * M.count(), "S has the wrong shape");
            require_length(up, M.count(), "up");
            require_length(down, M.count(), "down");
            Accumulation(S, M, inverse, cells_with_a_part(up, down)).split(up, down);
        },
        Unlocked(), "S"_a, "start"_a, "index"_a, "value"_a, "inverse"_a, "up"_a, "down"_a);
    m.def(
        "project",
        [](std::span<const Index> start, std::span<const Index> index, std::span<const double> value,
           Stack<const double> inverse, Matrix<const double> reciprocal, Matrix<const double> b) {
            require(inverse.rows == inverse.columns, "the inverses must be square");
            const Sparse M = checked(Sparse{start, index, value}, inverse.rows, "M");
            for (const auto& each : {reciprocal, b})
                require(each.rows() == inverse.count && each.columns() == M.count(),
                        "a row per request, an entry per cell");
            return project(M, inverse, reciprocal, b);
        },
        Unlocked(), "start"_a, "index"_a, "value"_a, "inverse"_a, "reciprocal"_a, "b"_a);
}

}  // namespace cellguard

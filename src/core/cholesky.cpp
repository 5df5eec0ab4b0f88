// Sparse Cholesky factors: symbolic analysis, supernodal factorisation, solves.
//
// Columns with (nearly) the same pattern form a supernode, a dense block of rows by columns, so that nearly all work is
// matrix products. Left-looking: a supernode collects what all earlier ones subtract from it, then it is factored
// (T. A. Davis, Direct Methods for Sparse Linear Systems, SIAM 2006, chapter 4; Y. Chen et al., Algorithm 887: CHOLMOD,
// 2008).
#include <cmath>

#include "blas.hpp"
#include "border.hpp"
#include "checks.hpp"
#include "hot.hpp"
#include "watch.hpp"

namespace cellguard {

namespace {

using Numbers = std::vector<Index>;

// ---------------------------------------------------------------- analysis of the strictly lower triangle by rows

/// Parent of each column of the factor.
Numbers elimination_tree(const Lists& lower) {
    Numbers parent(static_cast<std::size_t>(lower.count()), -1), ancestor(parent);
    for (Index i = 0; i < lower.count(); ++i) {
        for (Index j : lower[i]) {
            while (j != -1 && j < i) {
                const Index above = std::exchange(ancestor[j], i);
                if (above == -1) parent[j] = i;
                j = above;
            }
        }
    }
    return parent;
}

/// Order in which every subtree is contiguous, children before parents.
Numbers postorder(std::span<const Index> parent) {
    const Index n = length(parent);
    Numbers first(parent.size(), -1), following(parent.size(), -1), order, stack;
    for (Index j = n - 1; j >= 0; --j) {
        if (parent[j] >= 0) following[j] = std::exchange(first[parent[j]], j);
    }
    for (Index root = 0; root < n; ++root) {
        if (parent[root] >= 0) continue;
        stack.push_back(root);
        while (!stack.empty()) {
            const Index j = stack.back(), child = first[j];
            if (child >= 0) {
                first[j] = following[child];
                stack.push_back(child);
            } else {
                order.push_back(j);
                stack.pop_back();
            }
        }
    }
    return order;
}

/// Entries below the diagonal in each column of the factor, by walking every row's subtree.
Numbers column_counts(const Lists& lower, std::span<const Index> parent) {
    Numbers counts(parent.size(), 0), seen(parent.size(), -1);
    for (Index i = 0; i < lower.count(); ++i) {
        seen[i] = i;
        for (Index j : lower[i]) {
            for (; j != -1 && seen[j] != i; j = parent[j]) {
                seen[j] = i;
                ++counts[j];
            }
        }
    }
    return counts;
}

/// First column of each supernode, after merging chains of children into their parents.
///
/// A child is merged with the parent that follows it when this stores few zeros: always when the patterns agree, and
/// when the merged block stays small or mostly full.
Numbers supernodes(std::span<const Index> parent, std::span<const Index> counts, Index widest) {
    const Index n = length(parent);
    Numbers starts{0};
    Index zeros = 0;  // stored by the supernode on top
    for (Index j = 1; j < n; ++j) {
        const Index begin = starts.back(), width = j - begin;
        bool joins = false;
        if (parent[j - 1] == j && width < widest) {
            const Index height = counts[j] + 1 + width;  // rows of column j, and all columns of the block
            Index stored = 0;
            for (Index c = begin; c < j; ++c) stored += height - (c - begin) - (counts[c] + 1);
            const double share = static_cast<double>(stored) / std::max(1.0, static_cast<double>(height * (width + 1)));
            joins = (counts[j - 1] == counts[j] + 1 && zeros == 0) || (width < 8 && share < 0.5) ||
                    (width < 32 && share < 0.2) || share < 0.05;
            if (joins) zeros = stored;
        }
        if (joins) continue;
        starts.push_back(j);
        zeros = 0;
    }
    if (n > 0) starts.push_back(n);
    return starts;
}

/// The columns of a strictly lower (or lower) triangle that is given by rows: which rows, and which entry each is.
struct ByColumn {
    Numbers start, row, entry;

    explicit ByColumn(const Lists& lower)
        : start(static_cast<std::size_t>(lower.count() + 1), 0),
          row(lower.entry.size()),
          entry(lower.entry.size()) {
        for (const Index j : lower.entry) ++start[j + 1];
        for (Index j = 0; j < lower.count(); ++j) start[j + 1] += start[j];
        Numbers fill(start.begin(), start.end() - 1);
        for (Index i = 0; i < lower.count(); ++i) {
            for (Index k = lower.start[i]; k < lower.start[i + 1]; ++k) {
                const Index at = fill[lower.entry[k]]++;
                row[at] = i;
                entry[at] = k;
            }
        }
    }
};

// ---------------------------------------------------------------- dense blocks

CELLGUARD_HOT double dot(const double* a, const double* b, Index n) {
    double total = 0.0;
#pragma omp simd reduction(+ : total)
    for (Index i = 0; i < n; ++i) total += a[i] * b[i];
    return total;
}

CELLGUARD_HOT void subtract(double* target, const double* source, double factor, Index n) {
    for (Index i = 0; i < n; ++i) target[i] -= factor * source[i];
}

/// Factor the square top of a block; returns how many pivots had to be raised.
Index factor_top(Matrix<double> block, std::span<const double> floor) {
    Index raised = 0;
    for (Index j = 0; j < block.columns(); ++j) {
        double d = block(j, j) - dot(block[j].data(), block[j].data(), j);
        if (!(d > floor[j])) {
            d = 1e128;  // a relation that nothing moves: its multiplier stays 0
            ++raised;
        }
        const double root = std::sqrt(d);
        block(j, j) = root;
        for (Index i = j + 1; i < block.columns(); ++i)
            block(i, j) = (block(i, j) - dot(block[i].data(), block[j].data(), j)) / root;
    }
    return raised;
}

/// Divide the rows below the square top by it.
void divide_rows(Matrix<double> block) {
    for (Index i = block.columns(); i < block.rows(); ++i) {
        for (Index j = 0; j < block.columns(); ++j)
            block(i, j) = (block(i, j) - dot(block[i].data(), block[j].data(), j)) / block(j, j);
    }
}

/// Inverse of the square top, transposed, so that rows are divided by a matrix product.
Rows<double> inverse_top(Matrix<const double> block) {
    const Index width = block.columns();
    Rows<double> out(width, width);
    for (Index j = 0; j < width; ++j) {
        out(j, j) = 1.0 / block(j, j);
        for (Index i = j + 1; i < width; ++i)
            out(j, i) = -dot(block[i].data() + j, out[j].data() + j, i - j) / block(i, i);
    }
    return out;
}

// ---------------------------------------------------------------- factors

/// Factors of symmetric matrices of one pattern, given by the rows of the lower triangle, diagonal last.
class Factor {
  public:
    Factor(const Lists& lower, std::span<const Index> tree, std::span<const Index> counts, Index widest)
        : n_(lower.count()),
          entries_(lower),
          starts_(supernodes(tree, counts, widest)),
          owner_(tree.size()) {
        for (Index s = 0; s < supernode_count(); ++s)
            std::fill(owner_.begin() + starts_[s], owner_.begin() + starts_[s + 1], s);
        find_rows();
    }

    /// Multiplications and additions of a factorisation, about.
    double flops() const {
        double total = 0.0;
        for (Index s = 0; s < supernode_count(); ++s) {
            const auto h = static_cast<double>(height(s));
            total += static_cast<double>(width(s)) * h * h;
        }
        return total;
    }
    Index n_values() const { return at_.back(); }

    /// Factor the matrix with these entries; returns how many pivots were below `tiny` times their diagonal entry and
    /// have been raised, which leaves those unknowns at 0.
    Index factorize(std::span<const double> data, double tiny) {
        require_length(data, length(entries_.row), "data");
        Watch watch(std::numeric_limits<double>::infinity());
        values_.assign(static_cast<std::size_t>(n_values()), 0.0);
        Progress progress(*this);
        Index raised = 0;
        for (Index s = 0; s < supernode_count(); ++s) {
            watch.over();
            const std::vector<double> floor = place_entries(s, data, tiny, progress);
            for (Index d = progress.waiting[s]; d >= 0;) {
                const Index following = progress.chain[d];
                subtract_update(d, s, progress);
                d = following;
            }
            raised += finish(s, floor, progress);
        }
        return raised;
    }

    /// Solve with the factor and its transpose, in place.
    void solve(std::span<double> x) const {
        require_length(x, n_, "x");
        require(length(values_) == n_values(), "nothing has been factored yet");
        for (Index s = 0; s < supernode_count(); ++s) forward(s, x);
        for (Index s = supernode_count() - 1; s >= 0; --s) backward(s, x);
    }

  private:
    /// Which supernodes update another one next, and how far each has been used.
    struct Progress {
        Numbers waiting, chain;
        Numbers reached;  // first row of a supernode that has not been used yet
        Numbers place;  // position of a row in the current block
        std::vector<double> update;

        explicit Progress(const Factor& factor)
            : waiting(static_cast<std::size_t>(factor.supernode_count()), -1),
              chain(waiting),
              reached(waiting.size(), 0),
              place(static_cast<std::size_t>(factor.n_), 0) {
            Index tallest = 0, widest = 0;
            for (Index s = 0; s < factor.supernode_count(); ++s) {
                tallest = std::max(tallest, factor.height(s));
                widest = std::max(widest, factor.width(s));
            }
            update.resize(static_cast<std::size_t>(tallest * widest));
        }

        /// From its row `next` on, supernode s waits to update the one that owns it.
        void wait(const Factor& factor, Index s, Index next) {
            reached[s] = next;
            if (next == factor.height(s)) return;
            const Index up = factor.owner_[factor.row(s, next)];
            chain[s] = std::exchange(waiting[up], s);
        }
    };

    Index supernode_count() const { return std::max<Index>(length(starts_) - 1, 0); }
    Index width(Index s) const { return starts_[s + 1] - starts_[s]; }
    Index height(Index s) const { return ptr_[s + 1] - ptr_[s]; }
    Index row(Index s, Index k) const { return rows_[ptr_[s] + k]; }
    Matrix<double> block(Index s) { return {values_.data() + at_[s], height(s), width(s)}; }
    Matrix<const double> block(Index s) const { return {values_.data() + at_[s], height(s), width(s)}; }

    /// Rows of each supernode, its own columns first.
    void find_rows() {
        Numbers child(static_cast<std::size_t>(supernode_count()), -1), sibling(child), seen(owner_.size(), -1);
        ptr_.assign(1, 0);
        at_.assign(1, 0);
        for (Index s = 0; s < supernode_count(); ++s) {
            const Index a = starts_[s], b = starts_[s + 1];
            Numbers below;
            const auto take = [&](Index i) {
                if (i < b || seen[i] == s) return;
                seen[i] = s;
                below.push_back(i);
            };
            for (Index k = entries_.start[a]; k < entries_.start[b]; ++k) take(entries_.row[k]);
            for (Index c = child[s]; c >= 0; c = sibling[c]) {
                for (Index k = ptr_[c]; k < ptr_[c + 1]; ++k) take(rows_[k]);
            }
            std::sort(below.begin(), below.end());
            for (Index j = a; j < b; ++j) rows_.push_back(j);
            rows_.insert(rows_.end(), below.begin(), below.end());
            ptr_.push_back(length(rows_));
            at_.push_back(at_.back() + height(s) * width(s));
            if (below.empty()) continue;
            const Index up = owner_[below.front()];  // the supernode of the first row below is the parent
            sibling[s] = std::exchange(child[up], s);
        }
    }

    /// Put the entries of the matrix into a block; returns below which size each pivot is none.
    std::vector<double> place_entries(Index s, std::span<const double> data, double tiny, Progress& progress) {
        const Matrix<double> own = block(s);
        for (Index k = 0; k < own.rows(); ++k) progress.place[row(s, k)] = k;
        std::vector<double> floor;
        for (Index c = 0; c < own.columns(); ++c) {
            const Index j = starts_[s] + c;
            for (Index k = entries_.start[j]; k < entries_.start[j + 1]; ++k)
                own(progress.place[entries_.row[k]], c) = data[entries_.entry[k]];
            floor.push_back(tiny * own(c, c));
        }
        return floor;
    }

    /// Subtract from block s what an earlier supernode d has there.
    void subtract_update(Index d, Index s, Progress& progress) {
        const Matrix<const double> source = std::as_const(*this).block(d);
        const Matrix<double> own = block(s);
        const Index low = progress.reached[d], a = starts_[s], b = starts_[s + 1];
        Index high = low;
        while (high < source.rows() && row(d, high) < b) ++high;
        const Index rows = source.rows() - low, columns = high - low;
        if (source.columns() < 4 || columns == 1) {
            for (Index i = low; i < source.rows(); ++i) {
                const std::span<double> target = own[progress.place[row(d, i)]];
                for (Index j = low; j < std::min(high, i + 1); ++j)
                    target[row(d, j) - a] -= dot(source[i].data(), source[j].data(), source.columns());
            }
        } else {
            const Matrix<const double> lower{source[low].data(), rows, source.columns()};
            const Matrix<double> part{progress.update.data(), rows, columns};
            blas::multiply_by_rows(lower, lower.first(columns), part);
            for (Index i = 0; i < rows; ++i) {
                const std::span<double> target = own[progress.place[row(d, low + i)]];
                for (Index j = 0; j < columns; ++j) target[row(d, low + j) - a] -= part(i, j);
            }
        }
        progress.wait(*this, d, high);
    }

    Index finish(Index s, std::span<const double> floor, Progress& progress) {
        const Matrix<double> own = block(s);
        const Index width = own.columns(), below = own.rows() - width;
        const Index raised = factor_top(own, floor);
        if (width < 16 || own.rows() < 3 * width || raised > 0) {
            divide_rows(own);
        } else {
            const Matrix<double> divided{progress.update.data(), below, width};
            const Matrix<double> rest{own[width].data(), below, width};
            blas::multiply(rest, inverse_top(own).view(), divided);
            std::copy(divided.data(), divided.data() + below * width, rest.data());
        }
        progress.wait(*this, s, width);
        return raised;
    }

    void forward(Index s, std::span<double> x) const {
        const Matrix<const double> own = block(s);
        double* top = x.data() + starts_[s];
        for (Index j = 0; j < own.columns(); ++j) top[j] = (top[j] - dot(own[j].data(), top, j)) / own(j, j);
        for (Index i = own.columns(); i < own.rows(); ++i) x[row(s, i)] -= dot(own[i].data(), top, own.columns());
    }

    void backward(Index s, std::span<double> x) const {
        const Matrix<const double> own = block(s);
        double* top = x.data() + starts_[s];
        for (Index i = own.columns(); i < own.rows(); ++i) subtract(top, own[i].data(), x[row(s, i)], own.columns());
        for (Index j = own.columns() - 1; j >= 0; --j) {
            top[j] /= own(j, j);
            subtract(top, own[j].data(), top[j], j);
        }
    }

    Index n_;
    ByColumn entries_;
    Numbers starts_;  // first column of each supernode
    Numbers owner_;  // supernode of each column
    Numbers ptr_, rows_;  // rows of each supernode
    Numbers at_;  // where the block of each supernode begins
    std::vector<double> values_;
};

// ---------------------------------------------------------------- Python

Lists checked_lower(std::span<const Index> start, std::span<const Index> index, bool with_diagonal) {
    const Lists lower = checked(Lists{start, index}, length(start) - 1, "the pattern");
    for (Index i = 0; i < lower.count(); ++i) {
        const std::span<const Index> row = lower[i];
        require(!with_diagonal || (!row.empty() && row.back() == i), "the diagonal must end every row");
        const std::size_t n = with_diagonal ? row.size() - 1 : row.size();
        for (std::size_t k = 0; k < n; ++k) require(row[k] < i, "the pattern must be a lower triangle");
    }
    return lower;
}

std::span<const Index> checked_tree(std::span<const Index> parent) {
    for (Index j = 0; j < length(parent); ++j)
        require(parent[j] == -1 || (parent[j] > j && parent[j] < length(parent)), "parents must follow their children");
    return parent;
}

}  // namespace

void bind_cholesky(nb::module_ m) {
    m.def(
        "elimination_tree",
        [](std::span<const Index> start, std::span<const Index> index) {
            return elimination_tree(checked_lower(start, index, false));
        },
        Unlocked(), "start"_a, "index"_a);
    m.def(
        "postorder", [](std::span<const Index> parent) { return postorder(checked_tree(parent)); }, Unlocked(),
        "parent"_a);
    m.def(
        "column_counts",
        [](std::span<const Index> start, std::span<const Index> index, std::span<const Index> parent) {
            const Lists lower = checked_lower(start, index, false);
            require_length(parent, lower.count(), "parent");
            return column_counts(lower, checked_tree(parent));
        },
        Unlocked(), "start"_a, "index"_a, "parent"_a);
    nb::class_<Factor>(m, "Factor")
        .def(
            "__init__",
            [](Factor* self, std::span<const Index> start, std::span<const Index> index, std::span<const Index> parent,
               std::span<const Index> counts, Index widest) {
                const Lists lower = checked_lower(start, index, true);
                require_length(parent, lower.count(), "parent");
                require_length(counts, lower.count(), "counts");
                blas::load();
                new (self) Factor(lower, checked_tree(parent), counts, widest);
            },
            "start"_a, "index"_a, "parent"_a, "counts"_a, "widest"_a)
        .def_prop_ro("flops", &Factor::flops)
        .def_prop_ro("n_values", &Factor::n_values)
        .def("factorize", &Factor::factorize, Unlocked(), "data"_a, "tiny"_a)
        .def("solve", &Factor::solve, Unlocked(), "x"_a);
}

}  // namespace cellguard

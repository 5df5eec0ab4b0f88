// The search for squares: which relations of a table run along the same dimension. Two relations that share a cell run
// along different dimensions if they span a square: next to the cell, each finds a parallel of the other.
#include "border.hpp"
#include "checks.hpp"

namespace cellguard {

namespace {

constexpr int CORNERS = 2;  // cells of a relation at which its squares are looked for

/// Sets that are joined; the smallest number stands for its set.
class Sets {
  public:
    explicit Sets(Index n) : parent_(numbers_up_to(n)) {}

    Index root(Index i) {
        while (parent_[i] != i) {
            parent_[i] = parent_[parent_[i]];
            i = parent_[i];
        }
        return i;
    }
    void join(Index i, Index j) {
        i = root(i);
        j = root(j);
        if (i != j) parent_[std::max(i, j)] = std::min(i, j);
    }

  private:
    std::vector<Index> parent_;
};

/// A parallel of each of two relations.
struct Square {
    Index first = -1;
    Index second = -1;
};

class Squares {
  public:
    Squares(const Sparse& relations, const Lists& relations_of)
        : relations_(relations),
          relations_of_(relations_of),
          mark_(static_cast<std::size_t>(relations.count()), -1),
          via_(mark_.size(), -1) {}

    std::vector<Index> classes() {
        Sets sets(relations_.count());
        for (Index row = 0; row < relations_.count(); ++row) {
            for (const Index c : landmarks(row)) {
                for (const Index other : relations_of_[c]) {
                    if (other == row) continue;
                    const Square square = square_of(row, other, c);
                    if (square.first < 0) {
                        sets.join(row, other);
                    } else {
                        sets.join(row, square.first);
                        sets.join(other, square.second);
                    }
                }
            }
        }
        std::vector<Index> out;
        for (Index i = 0; i < relations_.count(); ++i) out.push_back(sets.root(i));
        return out;
    }

  private:
    std::span<const Index> cells_of(Index row) const { return relations_.pattern()[row]; }

    /// The total and two parts of a relation: relations of one dimension meet at a total.
    std::vector<Index> landmarks(Index row) const {
        if (relations_.length_of(row) == 0) return {};
        const Index first = relations_.start[row], last = relations_.start[row + 1] - 1;
        Index total = first;
        for (Index k = first; k <= last; ++k) {
            if (relations_.value[k] < 0) total = k;
        }
        std::vector<Index> out{relations_.index[total]};
        if (first != total) out.push_back(relations_.index[first]);
        if (last != total) out.push_back(relations_.index[last]);
        return out;
    }

    double sign(Index row, Index cell) const {
        for (Index k = relations_.start[row]; k < relations_.start[row + 1]; ++k) {
            if (relations_.index[k] == cell) return relations_.value[k];
        }
        return 0.0;
    }

    /// Find a parallel of each of two relations that share a cell.
    Square square_of(Index row, Index other, Index c) {
        ++stamp_;
        int tries = 0;
        for (const Index r : cells_of(row)) {
            if (r == c) continue;
            if (++tries > CORNERS) break;
            mark_neighbours_of_parallels(row, other, r, sign(other, c));
            for (const Index q : cells_of(other)) {
                if (q == c) continue;
                for (const Index square : relations_of_[q]) {
                    if (square != other && mark_[square] == stamp_ &&
                        relations_.length_of(square) == relations_.length_of(row))
                        return {square, via_[square]};
                }
            }
        }
        return {};
    }

    /// Mark the relations that cross a possible parallel of `other` through cell r.
    void mark_neighbours_of_parallels(Index row, Index other, Index r, double side) {
        for (const Index along : relations_of_[r]) {
            if (along == row || relations_.length_of(along) != relations_.length_of(other) || sign(along, r) != side)
                continue;
            for (const Index d : cells_of(along)) {
                if (d == r) continue;
                for (const Index crossing : relations_of_[d]) {
                    if (crossing == along) continue;
                    mark_[crossing] = stamp_;
                    via_[crossing] = along;
                }
            }
        }
    }

    const Sparse& relations_;
    const Lists& relations_of_;
    std::vector<Index> mark_;  // the last search that saw a relation
    std::vector<Index> via_;   // through which parallel it was reached
    Index stamp_ = 0;
};

}  // namespace

void bind_factors(nb::module_ m) {
    m.def(
        "classes",
        [](std::span<const Index> start, std::span<const Index> index, std::span<const double> value,
           std::span<const Index> cell_start, std::span<const Index> cell_row) {
            const Sparse relations = checked(Sparse{start, index, value}, length(cell_start) - 1, "relations");
            const Lists relations_of =
                checked(Lists{cell_start, cell_row}, relations.count(), "relations of the cells");
            return Squares(relations, relations_of).classes();
        },
        Unlocked(), "start"_a, "index"_a, "value"_a, "cell_start"_a, "cell_row"_a);
}

}  // namespace cellguard

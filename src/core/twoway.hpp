// Two-way tables of counts: x[row, column] without its margins, which are published.
//
// A pattern is a bit mask per row (which columns are suppressed) and, kept beside it, a bit mask per column. Everything
// the margins and the published cells leave open is reached by alternating cycles: add one to a suppressed cell, take
// one from another in its row, add one to another in that column, and so on. So the range of a cell is two maximum
// flows on the graph of rows and columns, where
//
// * a row reaches a column by a suppressed cell that can still be lowered,
// * a column reaches a row by any suppressed cell (counts have no upper bound of their own).
//
// Flows are whole numbers: the ranges over counts are those of the linear programs (minami2019 (5)-(9)).
#pragma once

#include <bit>
#include <vector>

#include "arrays.hpp"
#include "watch.hpp"

namespace cellguard::twoway {

using Mask = std::int64_t;
using Table = Matrix<Index>;
using ConstTable = Matrix<const Index>;
using OwnTable = Rows<Index>;
using Masks = std::vector<Mask>;
using ConstMasks = std::span<const Mask>;

constexpr Index MAX_LINES = 62;  // rows or columns that fit a mask
constexpr Index HUGE_COST = Index{1} << 61;
constexpr Index FAR_AWAY = Index{1} << 60;  // above every count

constexpr Mask bit(Index i) { return Mask{1} << i; }
constexpr bool holds(Mask mask, Index i) { return ((mask >> i) & 1) != 0; }
constexpr Mask all_below(Index n) { return bit(n) - 1; }
inline Index lowest(Mask mask) { return std::countr_zero(static_cast<std::uint64_t>(mask)); }
inline Index bits(Mask mask) { return std::popcount(static_cast<std::uint64_t>(mask)); }

/// Call f for every position that is set, ascending.
template <class F>
void for_each(Mask mask, F f) {
    for (; mask != 0; mask &= mask - 1) f(lowest(mask));
}

/// The same; stops at the first for which f is true, and returns whether there is one.
template <class F>
bool any_of(Mask mask, F f) {
    for (; mask != 0; mask &= mask - 1) {
        if (f(lowest(mask))) return true;
    }
    return false;
}

/// A pattern by rows and by columns.
struct Pattern {
    Masks rows, columns;

    Pattern() = default;
    Pattern(ConstMasks by_row, Index n_columns);
    void add(Index i, Index j) {
        rows[i] |= bit(j);
        columns[j] |= bit(i);
    }
    void remove(Index i, Index j) {
        rows[i] &= ~bit(j);
        columns[j] &= ~bit(i);
    }
};

enum class Way { UP, DOWN };

/// Rows and columns that were reached when a search found no way on: a minimum cut.
struct Reach {
    Mask rows = 0, columns = 0;
};

/// Flows on tables of one shape; keeps its scratch space from one to the next.
class Flow {
  public:
    Flow(Index n_rows, Index n_columns);

    /// Move cell (i, j) of y up or down by at most `most` along one alternating cycle; returns by how much.
    Index augment(Table y, const Pattern& pattern, Index i, Index j, Way way, Index most);
    /// Lower cell (i, j) of y as far as it goes.
    void lower(Table y, const Pattern& pattern, Index i, Index j);
    /// How far cell (i, j) can move, at most `most`; x stays as it is.
    Index shift(ConstTable x, const Pattern& pattern, Index i, Index j, Way way, Index most);
    /// The width of the range of suppressed cell (i, j), or `cap` when it is at least that.
    Index width(ConstTable x, const Pattern& pattern, Index i, Index j, Index cap);
    /// What the last searches in a direction reached.
    const Reach& reach(Way way) const { return way == Way::UP ? reach_up_ : reach_down_; }

  private:
    bool find_cycle(ConstTable y, const Pattern& pattern, Index i, Index j, Way way);
    template <class Raise, class Lower>
    void walk(Index i, Index j, Way way, Raise raise, Lower lower) const;

    OwnTable scratch_;
    std::vector<Index> column_of_row_, row_of_column_;  // from where a line was reached
    Reach reach_up_, reach_down_;
};

/// The lowest and the highest value that the published cells leave to every cell.
struct Spans {
    OwnTable low, high;
};

Spans spans(ConstTable x, ConstMasks rows, Flow& flow);

// ---------------------------------------------------------------- the cheapest safe pattern

/// A sensitive cell.
struct Place {
    Index row, column;
};

/// How a search ended.
enum class Found { NOTHING, PATTERN, LIMIT };

struct Search {
    Found found;
    Index cost;  // of the pattern
    Index nodes;
};

/// Looks for cheap safe patterns of tables of one shape.
class PatternSearch {
  public:
    PatternSearch(Index n_rows, Index n_columns) : n_rows_(n_rows), n_columns_(n_columns) {}

    /// Search a safe pattern that is cheaper than `best`, or as cheap and before it in the fixed order.
    ///
    /// `cost` has the price of each cell, whole numbers above 0. `best` is overwritten by what is found. With `first`
    /// the first improvement ends the search, otherwise the optimum does. At the limit `best` may have improved.
    Search better(ConstTable x, std::span<const Place> need, Index cap, ConstTable cost, std::span<Mask> best,
                  Index best_cost, bool first, Index limit, Flow& flow, Watch& watch);

  private:
    struct Node {
        Pattern pattern;
        Masks shut;  // cells that stay published below this node
        std::vector<Index> branch;  // cells of which one must be added
        std::size_t next = 0;
        Index spent = 0;
    };

    Index n_rows_, n_columns_;
    std::vector<Node> nodes_;  // a layer per level of the tree
};

/// Whether pattern a comes before b in the fixed order that decides between equal costs.
bool before(ConstMasks a, ConstMasks b);

// ---------------------------------------------------------------- candidates

/// Cells that decide all others: `first` (unless -1), then one for every other independent cycle. The forest takes the
/// cells of narrow span, the basis the wide ones, widest first.
std::vector<Index> basis(ConstMasks rows, Index n_columns, Index first, ConstTable span);

/// For each l the cells (masks by row) that are decided once order[0..l] are.
Rows<Mask> decided(std::span<const Index> order, ConstMasks rows, Index n_columns);

/// The candidate with the lowest value in the first cell, then in the second, and so on. It depends on what is
/// published only: whatever starts from it uses nothing else.
OwnTable first_candidate(ConstTable x, ConstMasks rows, Flow& flow);

/// The tree of candidates: a table per level, and the cells that are free to move there.
class Tree {
  public:
    Tree(ConstTable x, std::span<const Index> order, ConstMasks rows, Flow& flow);

    Index levels() const { return length(level_); }
    Table table(Index l) { return level_[l].table.view(); }
    const Pattern& free(Index l) const { return level_[l].free; }
    Place cell(Index l) const { return {order_[l] / columns_, order_[l] % columns_}; }
    /// Set the cell of level l to the lowest value that the levels above leave it.
    void settle(Index l);
    /// Raise the cell of level l by one; false when it is at its highest.
    bool step(Index l);

  private:
    struct Level {
        OwnTable table;
        Pattern free;
    };

    std::span<const Index> order_;
    Index columns_;
    Flow& flow_;
    std::vector<Level> level_;
};

}  // namespace cellguard::twoway

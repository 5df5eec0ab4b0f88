// The neighbourhood of a cell in which cells can hide one another.
//
// A movement of a cell needs partners in each of its relations, those need partners in turn, and so on until all sums
// close. The cheapest partners in the relations of the cell are taken, if need be their cheapest partners too (a large
// cell among small ones hides only behind its totals), and then, round by round, the cells that lie in at least two of
// the relations touched so far: in a table of k dimensions these are the corners of all boxes spanned by the first
// partners.
#include "border.hpp"
#include "checks.hpp"

namespace cellguard {

namespace {

/// Which cells each relation holds, and which relations each cell is in.
struct Incidence {
    Lists cells_of;
    Lists relations_of;
};

/// How large a window is to become.
struct Size {
    Index width;  // partners from each relation
    Index depth;  // generations of partners
    Index most;   // cells besides the first
};

/// When a cell or relation was last seen: in the window of which stamp.
struct Marks {
    std::vector<Index> cell;
    std::vector<Index> relation;
    Index stamp = 0;

    bool holds(Index c) const { return cell[c] == stamp; }
    bool touched(Index r) const { return relation[r] == stamp; }
};

class Window {
  public:
    Window(const Incidence& table, std::span<const double> cost, std::span<const bool> usable, const Size& size,
           Marks& marks)
        : table_(table),
          cost_(cost),
          usable_(usable),
          size_(size),
          marks_(marks) {}

    std::vector<Index> around(Index p) {
        take(p);
        Index old = 0;
        for (Index generation = 0; generation < size_.depth; ++generation) {
            const Index young = length(cells_);
            for (Index a = old; a < young; ++a) take_partners(cells_[a]);
            old = young;
        }
        for (Index first = 1; first < length(cells_) && has_room();) {
            const Index last = length(cells_);
            touch(first, last);
            for (Index a = first; a < last; ++a) take_corners(cells_[a]);
            first = last;
        }
        return std::move(cells_);
    }

  private:
    bool has_room() const { return length(cells_) <= size_.most; }

    void take(Index c) {
        marks_.cell[c] = marks_.stamp;
        cells_.push_back(c);
    }

    void take_partners(Index cell) {
        for (const Index r : table_.relations_of[cell]) {
            if (marks_.touched(r)) continue;
            marks_.relation[r] = marks_.stamp;
            for (const Index c : cheapest(r)) {
                if (has_room()) take(c);
            }
        }
    }

    /// The cheapest cells of a relation that are not in the window yet.
    std::vector<Index> cheapest(Index r) const {
        std::vector<Index> best;
        for (const Index c : table_.cells_of[r]) {
            if (!usable_[c] || marks_.holds(c)) continue;
            const auto dearer = [&](Index other) { return cost_[other] > cost_[c]; };
            const auto at = std::find_if_not(best.rbegin(), best.rend(), dearer).base();
            best.insert(at, c);
            if (length(best) > size_.width) best.pop_back();
        }
        return best;
    }

    void touch(Index first, Index last) {
        for (Index a = first; a < last; ++a) {
            for (const Index r : table_.relations_of[cells_[a]]) marks_.relation[r] = marks_.stamp;
        }
    }

    /// Cells of its relations that lie in another touched one as well.
    void take_corners(Index cell) {
        for (const Index r : table_.relations_of[cell]) {
            for (const Index c : table_.cells_of[r]) {
                if (marks_.holds(c) || !usable_[c] || !has_room()) continue;
                const auto around = table_.relations_of[c];
                const auto touched = [&](Index other) { return marks_.touched(other); };
                if (std::count_if(around.begin(), around.end(), touched) >= 2) take(c);
            }
        }
    }

    const Incidence& table_;
    std::span<const double> cost_;
    std::span<const bool> usable_;
    Size size_;
    Marks& marks_;
    std::vector<Index> cells_;
};

/// Drop cells that are alone in one of their relations, until every relation holds none or two.
std::vector<Index> closed(std::vector<Index> cells, const Incidence& table, Marks& marks) {
    const auto is_alone = [&](Index c) {
        for (const Index r : table.relations_of[c]) {
            const auto others = table.cells_of[r];
            const auto is_partner = [&](Index other) { return other != c && marks.holds(other); };
            if (std::none_of(others.begin(), others.end(), is_partner)) return true;
        }
        return false;
    };
    for (bool dropped = true; dropped;) {
        dropped = false;
        for (const Index c : cells) {
            if (!marks.holds(c) || !is_alone(c)) continue;
            marks.cell[c] = marks.stamp - 1;
            dropped = true;
        }
    }
    std::erase_if(cells, [&](Index c) { return !marks.holds(c); });
    return cells;
}

/// The windows of one table; its relations are checked once.
class Windows {
  public:
    Windows(std::span<const Index> row_start, std::span<const Index> row_cell, std::span<const Index> cell_start,
            std::span<const Index> cell_row)
        : row_start_(row_start.begin(), row_start.end()),
          row_cell_(row_cell.begin(), row_cell.end()),
          cell_start_(cell_start.begin(), cell_start.end()),
          cell_row_(cell_row.begin(), cell_row.end()) {
        checked(table().cells_of, length(cell_start) - 1, "cells of the relations");
        checked(table().relations_of, length(row_start) - 1, "relations of the cells");
        marks_.cell.assign(cell_start_.size() - 1, 0);
        marks_.relation.assign(row_start_.size() - 1, 0);
    }

    /// Cells around cell p in which it can move, ascending; none if it cannot.
    std::vector<Index> around(Index p, std::span<const double> cost, std::span<const bool> usable, Index width,
                              Index depth, Index most) {
        const Index n = length(marks_.cell);
        require_index(p, n, "cell");
        require_length(cost, n, "cost");
        require_length(usable, n, "usable");
        require(width >= 0 && most >= 0, "width and most must not be negative");
        marks_.stamp += 2;
        const Incidence incidence = table();
        std::vector<Index> cells =
            closed(Window(incidence, cost, usable, {width, depth, most}, marks_).around(p), incidence, marks_);
        if (!marks_.holds(p)) return {};
        std::sort(cells.begin(), cells.end());
        return cells;
    }

  private:
    Incidence table() const { return {{row_start_, row_cell_}, {cell_start_, cell_row_}}; }

    std::vector<Index> row_start_, row_cell_, cell_start_, cell_row_;
    Marks marks_;
};

}  // namespace

void bind_windows(nb::module_ m) {
    nb::class_<Windows>(m, "Windows")
        .def(nb::init<std::span<const Index>, std::span<const Index>, std::span<const Index>, std::span<const Index>>(),
             "row_start"_a, "row_cell"_a, "cell_start"_a, "cell_row"_a)
        .def("around", &Windows::around, "p"_a, "cost"_a, "usable"_a, "width"_a, "depth"_a, "most"_a);
}

}  // namespace cellguard

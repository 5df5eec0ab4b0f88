// The cheapest safe pattern of a two-way table of counts (minami2019 definition 4).
//
// Depth-first: branch on the cells of which at least one must be added (include one, publish the earlier ones), bounded
// by the lines that still need a cell.
#include "twoway.hpp"

namespace cellguard::twoway {

namespace {

/// A table whose sensitive cells must keep a width, as a node of the search sees it.
struct View {
    ConstTable x;
    std::span<const Place> need;
    ConstMasks must;  // the same cells, by row
    Index cap;
    const Pattern& pattern;
    ConstMasks shut;  // cells that stay published

    Index rows() const { return x.rows(); }
    Index columns() const { return x.columns(); }
    /// Cells of a row that may still be suppressed.
    Mask open(Index i) const { return all_below(columns()) & ~(pattern.rows[i] | shut[i]); }
};

/// Rows and columns.
struct Lines {
    Mask rows = 0, columns = 0;
};

/// Rows and columns that need one more suppressed cell whatever else is done: a line with one suppressed cell gives it
/// away (and the cell is of no use); a line with a sensitive cell and a suppressed sum below the width leaves it too
/// little room.
Lines short_lines(const View& view) {
    Lines out;
    const auto is_short = [&](Mask line, Index total, bool sensitive) {
        return line != 0 && ((line & (line - 1)) == 0 || (sensitive && total < view.cap));
    };
    for (Index i = 0; i < view.rows(); ++i) {
        Index total = 0;
        for_each(view.pattern.rows[i], [&](Index j) { total += view.x(i, j); });
        if (is_short(view.pattern.rows[i], total, view.must[i] != 0)) out.rows |= bit(i);
    }
    for (Index j = 0; j < view.columns(); ++j) {
        Index total = 0;
        bool sensitive = false;
        for_each(view.pattern.columns[j], [&](Index i) {
            total += view.x(i, j);
            sensitive |= holds(view.must[i], j);
        });
        if (is_short(view.pattern.columns[j], total, sensitive)) out.columns |= bit(j);
    }
    return out;
}

/// Bipartite matching: rows that want one of several columns.
class Matching {
  public:
    Matching(Index n_rows, Index n_columns)
        : wants(static_cast<std::size_t>(n_rows), 0),
          owner_(static_cast<std::size_t>(n_columns), -1) {}

    /// Give row r one of the columns it wants, moving others if needed.
    bool match(Index r) {
        std::vector<Index> path{r}, taken;
        Mask seen = 0;
        while (!path.empty()) {
            const Mask open = wants[path.back()] & ~seen;
            if (open == 0) {
                path.pop_back();
                if (!taken.empty()) taken.pop_back();
                continue;
            }
            const Index b = lowest(open);
            seen |= bit(b);
            taken.push_back(b);
            if (owner_[b] < 0) {
                for (std::size_t d = 0; d < taken.size(); ++d) owner_[taken[d]] = path[d];
                return true;
            }
            path.push_back(owner_[b]);
        }
        return false;
    }

    Masks wants;

  private:
    std::vector<Index> owner_;
};

/// Lower bound of the cells still to add; -1 when a short row has none left.
///
/// A new cell helps one short row and one short column at most: rows + columns - a maximum matching of the two over the
/// cells that may still be suppressed.
Index cells_needed(const View& view, const Lines& missing) {
    Matching matching(view.rows(), view.columns());
    const bool hopeless = any_of(missing.rows, [&](Index i) {
        matching.wants[i] = view.open(i) & missing.columns;
        return view.open(i) == 0;
    });
    if (hopeless) return -1;
    Index needed = bits(missing.rows) + bits(missing.columns);
    for_each(missing.rows, [&](Index i) {
        if (matching.wants[i] != 0 && matching.match(i)) --needed;
    });
    return needed;
}

/// The cells of the short line with the fewest choices.
std::vector<Index> branch_on_line(const View& view, const Lines& missing) {
    Index best = view.rows() + view.columns(), line = -1;
    bool by_row = true;
    for_each(missing.rows, [&](Index i) {
        const Index count = bits(view.open(i));
        if (count < best) {
            best = count;
            line = i;
        }
    });
    for_each(missing.columns, [&](Index j) {
        Index count = 0;
        for (Index i = 0; i < view.rows(); ++i) count += holds(view.open(i), j);
        if (count < best) {
            best = count;
            line = j;
            by_row = false;
        }
    });
    std::vector<Index> out;
    for (Index i = 0; i < view.rows() && line >= 0; ++i) {
        if (by_row && i != line) continue;
        for_each(by_row ? view.open(i) : view.open(i) & bit(line),
                 [&](Index j) { out.push_back(i * view.columns() + j); });
    }
    return out;
}

/// Mark the cells that would let more flow over the cut; returns how many are new.
Index mark_cut(const View& view, const Reach& reach, Masks& marked) {
    Index added = 0;
    for (Index i = 0; i < view.rows(); ++i) {
        Mask open = view.open(i) & ~marked[i], helps = 0;
        if (holds(reach.rows, i)) {  // to an unreached column: only a cell that can be lowered helps
            for_each(open & ~reach.columns, [&](Index j) {
                if (view.x(i, j) > 0) helps |= bit(j);
            });
        } else {
            helps = open & reach.columns;
        }
        marked[i] |= helps;
        added += bits(helps);
    }
    return added;
}

struct CutBranch {
    bool safe = true;  // no sensitive cell is too narrow
    std::vector<Index> cells;
};

/// The cells of which one must be added, for the violated cell with the fewest.
CutBranch branch_on_cut(const View& view, Flow& flow) {
    CutBranch out;
    for (const auto& [i, j] : view.need) {
        const Index up = flow.shift(view.x, view.pattern, i, j, Way::UP, view.cap);
        if (up >= view.cap) continue;
        const Index room = std::min(view.x(i, j), view.cap - up);
        const Index down = flow.shift(view.x, view.pattern, i, j, Way::DOWN, room);
        if (up + down >= view.cap) continue;
        Masks marked(static_cast<std::size_t>(view.rows()), 0);
        Index count = mark_cut(view, flow.reach(Way::UP), marked);
        if (down < room && up + view.x(i, j) >= view.cap)  // going further down could do as well
            count += mark_cut(view, flow.reach(Way::DOWN), marked);
        if (!out.safe && count >= length(out.cells)) continue;
        out.safe = false;
        out.cells.clear();
        for (Index a = 0; a < view.rows(); ++a)
            for_each(marked[a], [&](Index b) { out.cells.push_back(a * view.columns() + b); });
        if (count <= 1) break;
    }
    return out;
}

}  // namespace

bool before(ConstMasks a, ConstMasks b) { return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end()); }

Search PatternSearch::better(ConstTable x, std::span<const Place> need, Index cap, ConstTable cost,
                             std::span<Mask> best, Index best_cost, bool first, Index limit, Flow& flow, Watch& watch) {
    const Index n_cells = n_rows_ * n_columns_;
    const Index cheapest = n_cells == 0 ? 0 : *std::min_element(cost.data(), cost.data() + n_cells);
    Masks must(static_cast<std::size_t>(n_rows_), 0);
    nodes_.resize(std::max<std::size_t>(nodes_.size(), 1));
    Node& root = nodes_[0];
    for (const auto& [i, j] : need) must[i] |= bit(j);
    root = {Pattern(must, n_columns_), Masks(must.size(), 0), {}, 0, 0};
    for (const auto& [i, j] : need) root.spent += cost(i, j);
    Search out{Found::NOTHING, 0, 0};
    bool fresh = root.spent <= best_cost;
    for (Index depth = 0; depth >= 0;) {
        if (fresh) {
            if (++out.nodes > limit || watch.over()) {
                out.found = Found::LIMIT;
                return out;
            }
            Node& node = nodes_[depth];
            const View view{x, need, must, cap, node.pattern, node.shut};
            const Lines missing = short_lines(view);
            node.next = 0;
            node.branch.clear();
            bool safe = false;
            if ((missing.rows | missing.columns) != 0) {
                const Index needed = cells_needed(view, missing);
                if (needed >= 0 && node.spent + needed * cheapest <= best_cost)
                    node.branch = branch_on_line(view, missing);
            } else {
                CutBranch cut = branch_on_cut(view, flow);
                safe = cut.safe;
                if (node.spent + cheapest <= best_cost) node.branch = std::move(cut.cells);
            }
            if (safe && (node.spent < best_cost || before(node.pattern.rows, best))) {
                out.found = Found::PATTERN;
                out.cost = best_cost = node.spent;
                std::copy(node.pattern.rows.begin(), node.pattern.rows.end(), best.begin());
                if (first) return out;
            }
        }
        if (nodes_[depth].next == nodes_[depth].branch.size()) {
            --depth;
            fresh = false;
            continue;
        }
        // The next cell is added; those before it stay published in this branch and the later ones.
        if (depth + 1 == length(nodes_)) nodes_.emplace_back();
        Node& node = nodes_[depth];
        const Index c = node.branch[node.next++], i = c / n_columns_, j = c % n_columns_;
        const Index spent = node.spent + cost(i, j);
        fresh = spent <= best_cost;
        if (fresh) {
            Node& child = nodes_[depth + 1];
            child.pattern = node.pattern;
            child.shut = node.shut;
            child.spent = spent;
            child.pattern.add(i, j);
        }
        node.shut[i] |= bit(j);
        depth += fresh;
    }
    return out;
}

}  // namespace cellguard::twoway

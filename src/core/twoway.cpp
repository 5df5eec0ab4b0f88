// Which candidates reproduce the pattern (minami2019 definition 5), and the border of all about two-way tables.
//
// Every candidate shares the margins, the published cells and the pattern P. A better safe pattern Q excludes it. What
// Q leaves open depends on the candidate only through the cells of P that Q publishes (the rest of Q's margins is
// public), so a Q found for one candidate excludes whole branches of the depth-first search as soon as those few cells
// are decided.
#include "twoway.hpp"

#include "border.hpp"
#include "checks.hpp"

namespace cellguard::twoway {

namespace {

// What becomes of a candidate, or of a cell's end.
constexpr Index SURVIVOR = 1, EXCLUDED = 0, NOTHING = -1, LIMIT = -2;
constexpr Index REMEMBERED = 256;  // better patterns kept beyond the subsets of the pattern
constexpr double NO_LIMIT = std::numeric_limits<double>::infinity();

/// A deterministic optimal suppression that the attacker knows: a count is sensitive from `smallest` to below
/// `minimum`, its range must have width `cap`, suppressing cell (i, j) costs base(i, j) + slope * x(i, j).
struct Law {
    Index smallest, minimum, cap;
    ConstTable base;
    Index slope;

    bool is_sensitive(Index count) const { return smallest <= count && count < minimum; }
    Index cost(ConstTable x, Index i, Index j) const { return base(i, j) + slope * x(i, j); }
};

/// Cells by row: sensitive in a table, and those that may be in what agrees with it on the cells that are known.
struct Sensitive {
    Masks now, possible;
};

/// A better pattern found so far, and the level of the tree at which it can be tried; -1 when that is not known.
struct Better {
    Pattern pattern;
    Index level = -1;
};

struct Verdict {
    Index status;
    Index work;
};

/// An attack under way: the ends of the intervals found so far.
class Siege {
  public:
    /// @param x any candidate; only what is published of it matters
    /// @param subsets whether patterns with one cell less count as better ones
    /// @param hunt whether better patterns are searched for every candidate
    Siege(ConstTable x, ConstMasks rows, const Law& law, bool subsets, bool hunt)
        : p_(rows, x.columns()),
          base_(law.base),
          law_(law),
          hunt_(hunt),
          flow_(x.rows(), x.columns()),
          search_(x.rows(), x.columns()),
          start_(first_candidate(x, rows, flow_)),
          hull_{OwnTable(x), OwnTable(x)},
          risky_(rows.size(), 0),
          weak_(rows.size(), 0) {
        law_.base = std::as_const(base_).view();
        outer_ = spans(std::as_const(start_).view(), rows, flow_);
        Index suppressed = 0;
        for (Index i = 0; i < length(rows); ++i) {
            for_each(rows[i], [&](Index j) {
                ++suppressed;
                hull_.low(i, j) = FAR_AWAY;
                hull_.high(i, j) = -1;
                if (outer_.low(i, j) >= law.minimum || outer_.high(i, j) < law.smallest) return;
                risky_[i] |= bit(j);
                if (outer_.high(i, j) - outer_.low(i, j) < law.cap) weak_[i] |= bit(j);
            });
        }
        most_ = static_cast<std::size_t>(suppressed + REMEMBERED);
        if (!subsets) return;
        for (Index i = 0; i < length(rows); ++i) {
            for_each(rows[i], [&](Index j) {
                pool_.push_back({p_});
                pool_.back().pattern.remove(i, j);
            });
        }
    }

    Index rows() const { return start_.rows(); }
    Index columns() const { return start_.columns(); }
    const Spans& outer() const { return outer_; }
    const Spans& hull() const { return hull_; }

    /// Scan the values of a cell from one end, and stop at the first that survives, or at `stop`.
    ///
    /// The outer ends move inward as values are excluded, the hull of the survivors grows. NOTHING when no value
    /// survives.
    Verdict scan(Index cell, Way way, Index stop, Index limit) {
        const Index i = cell / columns(), j = cell % columns();
        const bool upward = way == Way::DOWN;  // from the low end
        OwnTable span = outer_.high;
        for (Index k = 0; k < rows() * columns(); ++k) span.view().data()[k] -= outer_.low.view().data()[k];
        const std::vector<Index> order = basis(p_.rows, columns(), cell, span.view());
        const Rows<Mask> known = decided(order, p_.rows, columns());
        Watch watch(NO_LIMIT);
        Index& end = upward ? outer_.low(i, j) : outer_.high(i, j);
        for (Index spent = 0;;) {
            if (upward ? end >= hull_.low(i, j) : end <= hull_.high(i, j)) return {SURVIVOR, spent};
            if (outer_.low(i, j) > outer_.high(i, j)) return {NOTHING, spent};
            if (upward ? end >= stop : end <= stop) return {EXCLUDED, spent};
            const Verdict found = first_survivor(end, order, known.view(), limit - spent, watch);
            spent += found.work;
            if (found.status != EXCLUDED) return {found.status, spent};
            end += upward ? 1 : -1;
        }
    }

    /// For each candidate how many of the drawn costs it survives.
    std::vector<Index> surviving_draws(Stack<const Index> tables, Stack<const Index> costs, bool hunt, Index limit) {
        std::vector<Index> hits(static_cast<std::size_t>(tables.count), 0);
        Watch watch(NO_LIMIT);
        for (Index t = 0; t < tables.count; ++t) {
            for (Index d = 0; d < costs.count; ++d) {
                Law drawn = law_;
                drawn.base = costs[d];
                hits[t] += survives(tables[t], drawn, hunt, limit, watch).status == SURVIVOR;
            }
        }
        return hits;
    }

  private:
    /// Note which cells are sensitive; false when a known cell contradicts the pattern.
    bool look(ConstTable x, ConstMasks known, Sensitive& out) const {
        out.now.assign(risky_.size(), 0);
        out.possible.assign(risky_.size(), 0);
        for (Index i = 0; i < x.rows(); ++i) {
            for_each(risky_[i], [&](Index j) {
                if (law_.is_sensitive(x(i, j))) out.now[i] |= bit(j);
            });
            out.possible[i] = (out.now[i] & known[i]) | (risky_[i] & ~known[i]);
            if ((out.now[i] & known[i] & weak_[i]) != 0) return false;
        }
        return true;
    }

    /// Cost of Q less the cost of P: what only one of them suppresses.
    Index price(ConstMasks q, ConstTable x, const Law& law) const {
        Index out = 0;
        for (Index i = 0; i < length(q); ++i) {
            for_each(q[i] ^ p_.rows[i],
                     [&](Index j) { out += holds(q[i], j) ? law.cost(x, i, j) : -law.cost(x, i, j); });
        }
        return out;
    }

    /// Whether Q is better than P for x, and for whatever else was noted.
    bool excludes(ConstTable x, const Pattern& q, const Sensitive& noted, const Law& law) {
        for (Index i = 0; i < x.rows(); ++i) {
            if ((noted.now[i] & p_.rows[i] & ~q.rows[i]) != 0) return false;
        }
        const Index difference = price(q.rows, x, law);
        if (difference > 0 || (difference == 0 && !before(q.rows, p_.rows))) return false;
        for (Index i = 0; i < x.rows(); ++i) {
            const bool narrow = any_of(noted.possible[i] & q.rows[i],
                                       [&](Index j) { return flow_.width(x, q, i, j, law.cap) < law.cap; });
            if (narrow) return false;
        }
        return true;
    }

    /// Whether the algorithm gives P for candidate x; and the work that took.
    ///
    /// Without `hunt` only the patterns of the pool are tried: subset-minimality, when the pool is new.
    Verdict survives(ConstTable x, const Law& law, bool hunt, Index limit, Watch& watch) {
        Sensitive noted;
        if (!look(x, p_.rows, noted)) return {EXCLUDED, 0};
        for (std::size_t k = 0; k < pool_.size(); ++k) {
            if (!excludes(x, pool_[k].pattern, noted, law)) continue;
            std::swap(pool_[k], pool_[k / 2]);  // earlier next time: it tends to exclude the neighbours
            return {EXCLUDED, 1};
        }
        if (!hunt) return {SURVIVOR, 1};
        std::vector<Place> need;
        OwnTable cost(x.rows(), x.columns());
        Index paid = 0;
        for (Index i = 0; i < x.rows(); ++i) {
            for (Index j = 0; j < x.columns(); ++j) cost(i, j) = law.cost(x, i, j);
            for_each(p_.rows[i], [&](Index j) {
                paid += cost(i, j);
                if (holds(noted.now[i], j)) need.push_back({i, j});
            });
        }
        Masks best = p_.rows;
        const Search found =
            search_.better(x, need, law.cap, std::as_const(cost).view(), best, paid, true, limit, flow_, watch);
        if (found.found == Found::NOTHING) return {SURVIVOR, found.nodes};
        if (found.found == Found::LIMIT) return {LIMIT, found.nodes};
        if (pool_.size() < most_) pool_.push_back({Pattern(best, columns())});
        return {EXCLUDED, found.nodes};
    }

    /// The level of the tree at which every cell of P that Q publishes is decided.
    Index level_of(const Pattern& q, Matrix<const Mask> known) const {
        for (Index l = 0; l < known.rows(); ++l) {
            bool inside = true;
            for (Index a = 0; a < rows(); ++a) inside &= (p_.rows[a] & ~q.rows[a] & ~known(l, a)) == 0;
            if (inside) return l;
        }
        return known.rows();
    }

    /// Whether a pattern of the pool excludes every candidate below this node.
    bool branch_excluded(ConstTable x, Index l, Matrix<const Mask> known) {
        Sensitive noted;
        if (!look(x, known[l], noted)) return true;
        for (Better& better : pool_) {
            if (better.level < 0) better.level = level_of(better.pattern, known);
            if (better.level == l && excludes(x, better.pattern, noted, law_)) return true;
        }
        return false;
    }

    /// Search a candidate that survives among those whose first cell of the order has the value given; the hull takes
    /// it up.
    Verdict first_survivor(Index value, std::span<const Index> order, Matrix<const Mask> known, Index limit,
                           Watch& watch) {
        Tree tree(std::as_const(start_).view(), order, p_.rows, flow_);
        for (Better& better : pool_) better.level = -1;  // the order of the cells has changed
        const auto [i, j] = tree.cell(0);
        while (tree.table(0)(i, j) != value) {
            const Index missing = value - tree.table(0)(i, j);
            const Way way = missing > 0 ? Way::UP : Way::DOWN;
            if (flow_.augment(tree.table(0), tree.free(0), i, j, way, std::abs(missing)) == 0) return {EXCLUDED, 0};
        }
        Index spent = 0, l = 0;
        while (true) {
            if (++spent > limit || watch.over()) return {LIMIT, spent};
            if (l == tree.levels() - 1) {
                const Verdict found = survives(tree.table(l), law_, hunt_, limit - spent, watch);
                spent += found.work;
                if (found.status == SURVIVOR) widen_hull(tree.table(l));
                if (found.status != EXCLUDED) return {found.status, spent};
            } else if (!branch_excluded(tree.table(l), l, known)) {
                tree.settle(++l);
                continue;
            }
            while (l > 0 && !tree.step(l)) --l;
            if (l == 0) return {EXCLUDED, spent};
        }
    }

    void widen_hull(ConstTable y) {
        for (Index a = 0; a < y.rows(); ++a) {
            for (Index b = 0; b < y.columns(); ++b) {
                hull_.low(a, b) = std::min(hull_.low(a, b), y(a, b));
                hull_.high(a, b) = std::max(hull_.high(a, b), y(a, b));
            }
        }
    }

    Pattern p_;
    OwnTable base_;
    Law law_;
    bool hunt_;
    Flow flow_;
    PatternSearch search_;
    OwnTable start_;
    Spans outer_;         // nothing outside survives
    Spans hull_;          // of the survivors that were found
    Masks risky_, weak_;  // cells of P that some candidate makes sensitive; those that P leaves too narrow then
    std::vector<Better> pool_;
    std::size_t most_ = 0;
};

struct Listing {
    Index count = 0;
    Rows<Index> tables;  // a row each
};

/// List the candidates, as many as there is room for, and count them up to `limit`. With no room left the last cell's
/// values are counted, not visited.
Listing listed(ConstTable x, ConstMasks rows, Index room, Index limit) {
    const Index cells = x.rows() * x.columns();
    Listing out{0, Rows<Index>(0, cells)};
    Flow flow(x.rows(), x.columns());
    Watch watch(NO_LIMIT);
    const OwnTable start = first_candidate(x, rows, flow);
    Spans wide = spans(start.view(), rows, flow);
    for (Index k = 0; k < cells; ++k) wide.high.view().data()[k] -= wide.low.view().data()[k];
    const std::vector<Index> order = basis(rows, x.columns(), -1, wide.high.view());
    const auto flat = [&](ConstTable y) { return std::span(y.data(), static_cast<std::size_t>(cells)); };
    if (order.empty()) {
        if (room > 0) out.tables.append(flat(start.view()));
        out.count = 1;
        return out;
    }
    Tree tree(start.view(), order, rows, flow);
    Index l = 0;
    tree.settle(0);
    while (true) {
        while (l < tree.levels() - 1) tree.settle(++l);
        if (out.count < room) {
            out.tables.append(flat(tree.table(l)));
            ++out.count;
        } else {
            const auto [i, j] = tree.cell(l);
            out.count += 1 + flow.shift(tree.table(l), tree.free(l), i, j, Way::UP, FAR_AWAY);
            --l;
        }
        if (out.count >= limit || watch.over()) return out;
        while (l >= 0 && !tree.step(l)) --l;
        if (l < 0) return out;
    }
}

// ---------------------------------------------------------------- Python

void require_table(ConstTable x) {
    require(x.rows() <= MAX_LINES && x.columns() <= MAX_LINES, "at most 62 rows and columns");
    for (Index k = 0; k < x.rows() * x.columns(); ++k)
        require(0 <= x.data()[k] && x.data()[k] < (Index{1} << 53), "counts must be from 0 up to 2^53");
}

ConstMasks checked_masks(ConstMasks rows, ConstTable x) {
    require_table(x);
    require_length(rows, x.rows(), "rows");
    for (const Mask m : rows) require((m & ~all_below(x.columns())) == 0, "a mask holds a column that is not there");
    return rows;
}

void require_costs(ConstTable cost, Index rows, Index columns) {
    require(cost.rows() == rows && cost.columns() == columns, "a cost is needed for every cell");
    double total = 0.0;
    for (Index k = 0; k < rows * columns; ++k) {
        require(cost.data()[k] > 0, "costs must be above 0");
        total += static_cast<double>(cost.data()[k]);
    }
    require(total < static_cast<double>(HUGE_COST), "the costs add up to too much");
}

using LawArrays = std::tuple<Index, Index, Index, ConstTable, Index>;

Law checked_law(const LawArrays& arrays, ConstTable x) {
    const auto law = std::make_from_tuple<Law>(arrays);
    require_costs(law.base, x.rows(), x.columns());
    require(0 <= law.slope && law.slope < (Index{1} << 45), "the slope must be from 0 up to 2^45");
    require(law.cap >= 0, "a width must not be negative");
    return law;
}

std::pair<OwnTable, OwnTable> both(Spans spans) { return {std::move(spans.low), std::move(spans.high)}; }

}  // namespace

}  // namespace cellguard::twoway

namespace cellguard {

void bind_twoway(nb::module_ m) {
    using namespace twoway;
    m.attr("SURVIVOR") = SURVIVOR;
    m.attr("EXCLUDED") = EXCLUDED;
    m.attr("NOTHING") = NOTHING;
    m.attr("LIMIT") = LIMIT;
    m.def(
        "spans",
        [](ConstTable x, ConstMasks rows) {
            checked_masks(rows, x);
            Flow flow(x.rows(), x.columns());
            return both(spans(x, rows, flow));
        },
        Unlocked(), "x"_a, "rows"_a);
    m.def(
        "first_candidate",
        [](ConstTable x, ConstMasks rows) {
            checked_masks(rows, x);
            Flow flow(x.rows(), x.columns());
            return first_candidate(x, rows, flow);
        },
        Unlocked(), "x"_a, "rows"_a);
    m.def(
        "candidates",
        [](ConstTable x, ConstMasks rows, Index limit) {
            return listed(x, checked_masks(rows, x), limit, limit).tables;
        },
        Unlocked(), "x"_a, "rows"_a, "limit"_a);
    m.def(
        "count_candidates",
        [](ConstTable x, ConstMasks rows, Index limit) { return listed(x, checked_masks(rows, x), 0, limit).count; },
        Unlocked(), "x"_a, "rows"_a, "limit"_a);
    m.def(
        "basis",
        [](ConstMasks rows, Index first, ConstTable span) {
            checked_masks(rows, span);
            require(-1 <= first && first < span.rows() * span.columns(), "the first cell is not there");
            return basis(rows, span.columns(), first, span);
        },
        Unlocked(), "rows"_a, "first"_a, "span"_a);
    m.def(
        "optimal_pattern",
        [](ConstTable x, Matrix<const Index> need, Index cap, ConstTable cost, Index limit) {
            require_table(x);
            require_costs(cost, x.rows(), x.columns());
            require(need.rows() == 0 || need.columns() == 2, "a row and a column for each cell in need");
            std::vector<Place> places;
            for (Index k = 0; k < need.rows(); ++k) {
                require_index(need(k, 0), x.rows(), "need");
                require_index(need(k, 1), x.columns(), "need");
                places.push_back({need(k, 0), need(k, 1)});
            }
            Masks best(static_cast<std::size_t>(x.rows()), 0);
            Flow flow(x.rows(), x.columns());
            Watch watch(NO_LIMIT);
            const Search found = PatternSearch(x.rows(), x.columns())
                                     .better(x, places, cap, cost, best, HUGE_COST, false, limit, flow, watch);
            return std::tuple(found.found == Found::PATTERN, std::move(best), found.nodes);
        },
        Unlocked(), "x"_a, "need"_a, "cap"_a, "cost"_a, "limit"_a);
    nb::class_<Siege>(m, "Siege")
        .def(
            "__init__",
            [](Siege* self, ConstTable x, ConstMasks rows, const LawArrays& law, bool subsets, bool hunt) {
                new (self) Siege(x, checked_masks(rows, x), checked_law(law, x), subsets, hunt);
            },
            "x"_a, "rows"_a, "law"_a, "subsets"_a, "hunt"_a)
        .def_prop_ro("outer", [](const Siege& s) { return both(s.outer()); })
        .def_prop_ro("hull", [](const Siege& s) { return both(s.hull()); })
        .def(
            "scan",
            [](Siege& s, Index cell, bool from_low, Index stop, Index limit) {
                require_index(cell, s.rows() * s.columns(), "cell");
                const Verdict out = s.scan(cell, from_low ? Way::DOWN : Way::UP, stop, limit);
                return std::pair(out.status, out.work);
            },
            Unlocked(), "cell"_a, "from_low"_a, "stop"_a, "limit"_a)
        .def(
            "surviving_draws",
            [](Siege& s, Stack<const Index> tables, Stack<const Index> costs, bool hunt, Index limit) {
                for (Index t = 0; t < tables.count; ++t) {
                    require_table(tables[t]);
                    require(tables.rows == s.rows() && tables.columns == s.columns(), "tables of another shape");
                }
                for (Index d = 0; d < costs.count; ++d) require_costs(costs[d], s.rows(), s.columns());
                return s.surviving_draws(tables, costs, hunt, limit);
            },
            Unlocked(), "tables"_a, "costs"_a, "hunt"_a, "limit"_a);
}

}  // namespace cellguard

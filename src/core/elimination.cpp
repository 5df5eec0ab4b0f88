// The reduction: exact elimination over a prime field beside floating point.
//
// Whether a number is zero is decided modulo the prime, exactly; how large it is comes from the floating-point value
// carried beside it. A zero test is wrong only if the prime divides a number that is not zero, for entries drawn at
// random: about one in 10^9 per test, and tests that matter use two independent draws.
#include <cmath>
#include <functional>
#include <queue>

#include "border.hpp"
#include "checks.hpp"
#include "watch.hpp"

namespace cellguard {

namespace {

using Numbers = std::vector<Index>;
using Reals = std::vector<double>;

constexpr double LEAST_PIVOT = 0.1;  // share of the largest coefficient of its row
constexpr double NEGLIGIBLE = 1e-9;  // a coefficient of the null space below this is rounding
constexpr Index PRIME = 2147483647;  // 2^31 - 1: the product of two residues fits into 63 bits

/// x modulo the prime, for 0 <= x < 2^63: 2^31 is 1.
constexpr Index residue_of(Index x) {
    x = (x & PRIME) + (x >> 31);
    x = (x & PRIME) + (x >> 31);
    return x >= PRIME ? x - PRIME : x;
}

/// Inverse modulo the prime, by Fermat: x^(p-2). Nearly all that is asked for are those of 1 and -1, their own.
Index inverse_of(Index x) {
    if (x == 1 || x == PRIME - 1) return x;
    Index result = 1, power = residue_of(x);
    for (Index e = PRIME - 2; e > 0; e >>= 1) {
        if (e & 1) result = residue_of(result * power);
        power = residue_of(power * power);
    }
    return result;
}

/// A number, exact modulo the prime, and about how large it is.
struct Number {
    Index exact = 0;
    double value = 0.0;
};

/// Relations between cells; coefficients as numbers and as residues. Only free cells count.
struct Relations {
    Sparse matrix;
    std::span<const Index> residue;
    std::span<const bool> free;

    Index count() const { return matrix.count(); }
    Index cells() const { return length(free); }
};

/// The relation that defines each total by its parts, -1 for a leaf; and the totals, parts before their total.
struct Definitions {
    std::span<const Index> relation;
    std::span<const Index> order;
};

/// Numbers of some cells, most of them zero: a dense array and the cells that were touched, in this order.
class Accumulator {
  public:
    explicit Accumulator(Index n) : at_(static_cast<std::size_t>(n)), seen_(at_.size(), 0) {}

    /// Returns whether the cell had not been seen since the last clearing.
    bool touch(Index c) {
        if (seen_[c]) return false;
        seen_[c] = 1;
        touched_.push_back(c);
        return true;
    }
    Number& operator[](Index c) { return at_[c]; }
    /// Add numbers that are below 2^62.
    void add(Index c, Index exact, double value) {
        at_[c].exact = residue_of(at_[c].exact + exact);
        at_[c].value += value;
    }
    std::span<const Index> touched() const { return touched_; }
    void clear() {
        for (const Index c : touched_) {
            at_[c] = {};
            seen_[c] = 0;
        }
        touched_.clear();
    }

  private:
    std::vector<Number> at_;
    Flags seen_;
    Numbers touched_;
};

/// Sparse rows of numbers, one after the other.
struct NumberRows {
    Numbers start{0}, cell, exact;
    Reals value;

    void push(Index c, Index e, double v) {
        cell.push_back(c);
        exact.push_back(e);
        value.push_back(v);
    }
    Index entries() const { return length(cell); }
    void end_row() { start.push_back(entries()); }
};

// ---------------------------------------------------------------- totals and leaves

/// The shortest relation of which each cell is the total: the cell of odd sign.
Numbers shortest_definitions(const Relations& relations) {
    const auto& [start, index, value] = relations.matrix;
    Numbers definition(relations.free.size(), -1), shortest(relations.free.size(), Index{1} << 60);
    for (Index r = 0; r < relations.count(); ++r) {
        Index positive = 0, negative = 0, up = -1, down = -1;
        for (Index k = start[r]; k < start[r + 1]; ++k) {
            if (!relations.free[index[k]] || value[k] == 0) continue;
            if (value[k] > 0) {
                ++positive;
                up = index[k];
            } else {
                ++negative;
                down = index[k];
            }
        }
        if (negative != 1 && positive != 1) continue;
        const Index total = negative == 1 ? down : up;
        if (positive + negative < shortest[total]) {
            shortest[total] = positive + negative;
            definition[total] = r;
        }
    }
    return definition;
}

/// Kahn's order: a total waits for those of its parts that are totals themselves. Where totals wait for one another in
/// a circle, one of them becomes a leaf.
class TotalsInOrder {
  public:
    TotalsInOrder(const Relations& relations, Numbers& definition)
        : definition_(definition),
          waiting_(definition.size(), 0),
          users_(definition.size()),
          done_(definition.size(), 0) {
        for (Index c = 0; c < length(definition); ++c) {
            if (definition[c] < 0) continue;
            for (const Index part : relations.matrix.pattern()[definition[c]]) {
                if (part == c || !relations.free[part] || definition[part] < 0) continue;
                ++waiting_[c];
                users_[part].push_back(c);
            }
        }
    }

    Numbers order() {
        for (Index c = 0; c < length(definition_); ++c) {
            if (definition_[c] >= 0 && waiting_[c] == 0) order_.push_back(c);
        }
        Index scan = 0;
        while (true) {
            for (; head_ < order_.size(); ++head_) {
                done_[order_[head_]] = 1;
                release_users(order_[head_]);
            }
            while (scan < length(definition_) && (definition_[scan] < 0 || done_[scan])) ++scan;
            if (scan == length(definition_)) return std::move(order_);
            definition_[scan] = -1;  // what still waits lies on a circle
            release_users(scan);
        }
    }

  private:
    void release_users(Index c) {
        for (const Index user : users_[c]) {
            if (--waiting_[user] == 0 && definition_[user] >= 0) order_.push_back(user);
        }
    }

    Numbers& definition_;
    Numbers waiting_;
    std::vector<Numbers> users_;
    Flags done_;
    Numbers order_;
    std::size_t head_ = 0;
};

/// Complete numbers of the leaves to all cells.
void propagate(const Relations& relations, const Definitions& definitions, std::span<Index> exact,
               std::span<double> value) {
    const Sparse& T = relations.matrix;
    for (const Index c : definitions.order) {
        const Index r = definitions.relation[c];
        Number sum, own;
        for (Index k = T.start[r]; k < T.start[r + 1]; ++k) {
            const Index part = T.index[k];
            if (part == c) {
                own = {relations.residue[k], T.value[k]};
            } else if (relations.free[part]) {
                sum.exact = residue_of(sum.exact + relations.residue[k] * exact[part]);
                sum.value += T.value[k] * value[part];
            }
        }
        exact[c] = residue_of((PRIME - sum.exact) * inverse_of(own.exact));
        value[c] = -sum.value / own.value;
    }
}

/// Relations that define nothing and that two random vectors show to be independent of those that do.
Numbers leftover_relations(const Relations& relations, std::span<const Index> first, std::span<const Index> second) {
    const Sparse& T = relations.matrix;
    Numbers out;
    for (Index r = 0; r < relations.count(); ++r) {
        Index s = 0, t = 0;
        for (Index k = T.start[r]; k < T.start[r + 1]; ++k) {
            const Index c = T.index[k];
            if (!relations.free[c]) continue;
            s = residue_of(s + relations.residue[k] * first[c]);
            t = residue_of(t + relations.residue[k] * second[c]);
        }
        if (s != 0 || t != 0) out.push_back(r);
    }
    return out;
}

/// Write relations as relations between leaves: totals are replaced by their definitions, the last in the order first,
/// because their parts come before them.
NumberRows expand(const Relations& relations, const Definitions& definitions, std::span<const Index> rows) {
    const Sparse& T = relations.matrix;
    Numbers position(relations.free.size(), -1);
    for (Index i = 0; i < length(definitions.order); ++i) position[definitions.order[i]] = i;
    Accumulator sum(relations.cells());
    std::priority_queue<Index> totals;
    NumberRows out;
    const auto touch = [&](Index c) {
        if (sum.touch(c) && position[c] >= 0) totals.push(position[c]);
    };
    for (const Index row : rows) {
        for (Index k = T.start[row]; k < T.start[row + 1]; ++k) {
            const Index c = T.index[k];
            if (!relations.free[c]) continue;
            touch(c);
            sum.add(c, relations.residue[k], T.value[k]);
        }
        while (!totals.empty()) {
            const Index c = definitions.order[totals.top()], r = definitions.relation[c];
            totals.pop();
            const Number total = std::exchange(sum[c], {});
            if (total.exact == 0) continue;
            Number own{1, 1.0};
            for (Index k = T.start[r]; k < T.start[r + 1]; ++k) {
                if (T.index[k] == c) own = {relations.residue[k], T.value[k]};
            }
            const Index e = PRIME - residue_of(total.exact * inverse_of(own.exact));
            const double f = total.value / own.value;
            for (Index k = T.start[r]; k < T.start[r + 1]; ++k) {
                const Index part = T.index[k];
                if (part == c || !relations.free[part]) continue;
                touch(part);
                sum.add(part, e * relations.residue[k], -(f * T.value[k]));
            }
        }
        for (const Index c : sum.touched()) {
            if (sum[c].exact != 0) out.push(c, sum[c].exact, sum[c].value);
        }
        out.end_row();
        sum.clear();
    }
    return out;
}

// ---------------------------------------------------------------- elimination between leaves

/// Pivot leaves as combinations of leaves that are no pivots: that of pivot i is entry start[i] up to stop[i].
struct Pivots {
    Numbers used;  // the relations
    Numbers leaf;
    Numbers start, stop;
    NumberRows combination;
};

class Elimination {
  public:
    Elimination(const NumberRows& rows, Index n)
        : rows_(rows),
          use_(static_cast<std::size_t>(n), 0),
          pivot_of_(use_.size(), -1),
          sum_(n) {
        for (const Index c : rows.cell) ++use_[c];
    }

    /// Reduced echelon form of relations between leaves, taken in the given sequence. The pivot of a row is the leaf
    /// that stands in the fewest rows.
    Pivots run(std::span<const Index> sequence, Watch& watch) {
        for (const Index row : sequence) {
            watch.over();
            reduce(row);
            const Index best = choose();
            if (best >= 0) store(row, best);
            sum_.clear();
        }
        substitute_back();
        return std::move(out_);
    }

  private:
    /// Replace the pivots of a row by their combinations.
    void reduce(Index row) {
        std::priority_queue<Index, Numbers, std::greater<>> pivots;
        const auto touch = [&](Index c) {
            if (sum_.touch(c) && pivot_of_[c] >= 0) pivots.push(pivot_of_[c]);
        };
        for (Index k = rows_.start[row]; k < rows_.start[row + 1]; ++k) {
            touch(rows_.cell[k]);
            sum_[rows_.cell[k]] = {rows_.exact[k], rows_.value[k]};
        }
        while (!pivots.empty()) {
            const Index j = pivots.top();
            pivots.pop();
            const Number factor = std::exchange(sum_[out_.leaf[j]], {});
            if (factor.exact == 0) continue;
            for (Index k = stored_.start[j]; k < stored_.start[j + 1]; ++k) {
                touch(stored_.cell[k]);
                sum_.add(stored_.cell[k], factor.exact * stored_.exact[k], factor.value * stored_.value[k]);
            }
        }
    }

    Index choose() {
        double largest = 1e-10;
        for (const Index c : sum_.touched()) {
            if (sum_[c].exact != 0) largest = std::max(largest, std::abs(sum_[c].value));
        }
        Index best = -1, best_use = Index{1} << 60;
        for (const Index c : sum_.touched()) {
            // a smaller one would let the others grow, or is a fraction that is not binary, cancelled
            if (sum_[c].exact == 0 || !(std::abs(sum_[c].value) > LEAST_PIVOT * largest)) continue;
            const bool unit = std::abs(std::abs(sum_[c].value) - 1.0) < 1e-9;  // unit pivots keep integers
            const Index use = 2 * use_[c] + (unit ? 0 : 1);
            if (use < best_use || (use == best_use && c < best)) {
                best = c;
                best_use = use;
            }
        }
        return best;
    }

    /// The pivot equals the combination of the other leaves of its row.
    void store(Index row, Index best) {
        const Index scale = PRIME - inverse_of(sum_[best].exact);
        const double scale_f = -1.0 / sum_[best].value;
        for (const Index c : sum_.touched()) {
            if (sum_[c].exact != 0 && c != best)
                stored_.push(c, residue_of(sum_[c].exact * scale), sum_[c].value * scale_f);
        }
        stored_.end_row();
        pivot_of_[best] = length(out_.leaf);
        out_.used.push_back(row);
        out_.leaf.push_back(best);
    }

    /// Last pivot first: later pivots leave the earlier rows.
    void substitute_back() {
        const Index rank = length(out_.leaf);
        out_.start.assign(static_cast<std::size_t>(rank), 0);
        out_.stop = out_.start;
        NumberRows& final = out_.combination;
        const auto add = [&](Index c, Index exact, double value) {
            sum_.touch(c);
            sum_.add(c, exact, value);
        };
        for (Index i = rank - 1; i >= 0; --i) {
            for (Index k = stored_.start[i]; k < stored_.start[i + 1]; ++k) {
                const Index c = stored_.cell[k], j = pivot_of_[c];
                if (j < 0) {
                    add(c, stored_.exact[k], stored_.value[k]);
                    continue;
                }
                for (Index q = out_.start[j]; q < out_.stop[j]; ++q)
                    add(final.cell[q], stored_.exact[k] * final.exact[q], stored_.value[k] * final.value[q]);
            }
            out_.start[i] = final.entries();
            for (const Index c : sum_.touched()) {
                if (sum_[c].exact != 0) final.push(c, sum_[c].exact, sum_[c].value);
            }
            out_.stop[i] = final.entries();
            sum_.clear();
        }
    }

    const NumberRows& rows_;
    Numbers use_;       // in how many rows a leaf stands
    Numbers pivot_of_;  // leaf -> number of its pivot
    Accumulator sum_;
    NumberRows stored_;
    Pivots out_;
};

/// Combinations of leaves as Python keeps them.
struct Combinations {
    std::span<const Index> leaf, start, stop, cell;
};

/// Set the pivot leaves from the other leaves.
void combine(const Combinations& pivots, std::span<const Index> coefficient, std::span<const double> coefficient_f,
             std::span<Index> exact, std::span<double> value) {
    for (Index i = 0; i < length(pivots.leaf); ++i) {
        Number sum;
        for (Index k = pivots.start[i]; k < pivots.stop[i]; ++k) {
            sum.exact = residue_of(sum.exact + coefficient[k] * exact[pivots.cell[k]]);
            sum.value += coefficient_f[k] * value[pivots.cell[k]];
        }
        exact[pivots.leaf[i]] = sum.exact;
        value[pivots.leaf[i]] = sum.value;
    }
}

struct SparseRows {
    Numbers start{0}, index;
    Reals value;
};

/// Rows of the basis in which the parameters are the identity, one row per cell.
SparseRows null_space(const Relations& relations, const Definitions& definitions, std::span<const Index> parameters,
                      const Combinations& pivots, std::span<const double> coefficient) {
    const Sparse& T = relations.matrix;
    const Index n = relations.cells(), d = length(parameters);
    Numbers first(relations.free.size(), 0), last(first), number(relations.free.size(), -1);
    SparseRows rows;  // in the order in which they are found
    const auto push = [&](Index column, double v) {
        rows.index.push_back(column);
        rows.value.push_back(v);
    };
    for (Index j = 0; j < d; ++j) {
        number[parameters[j]] = j;
        first[parameters[j]] = length(rows.index);
        push(j, 1.0);
        last[parameters[j]] = length(rows.index);
    }
    for (Index i = 0; i < length(pivots.leaf); ++i) {
        first[pivots.leaf[i]] = length(rows.index);
        for (Index k = pivots.start[i]; k < pivots.stop[i]; ++k) {
            require(number[pivots.cell[k]] >= 0, "a pivot must be a combination of parameters");
            push(number[pivots.cell[k]], coefficient[k]);
        }
        last[pivots.leaf[i]] = length(rows.index);
    }
    Reals sum(static_cast<std::size_t>(d), 0.0);
    Flags seen(static_cast<std::size_t>(d), 0);
    Numbers touched;
    for (const Index c : definitions.order) {
        const Index r = definitions.relation[c];
        double own = 1.0;
        for (Index k = T.start[r]; k < T.start[r + 1]; ++k) {
            const Index part = T.index[k];
            if (part == c) {
                own = T.value[k];
            } else if (relations.free[part]) {
                for (Index q = first[part]; q < last[part]; ++q) {
                    const Index j = rows.index[q];
                    if (!seen[j]) {
                        seen[j] = 1;
                        touched.push_back(j);
                    }
                    sum[j] += T.value[k] * rows.value[q];
                }
            }
        }
        first[c] = length(rows.index);
        for (const Index j : touched) {
            if (std::abs(sum[j]) > NEGLIGIBLE) push(j, -sum[j] / own);
            sum[j] = 0.0;
            seen[j] = 0;
        }
        last[c] = length(rows.index);
        touched.clear();
    }
    SparseRows out;
    out.index.reserve(rows.index.size());
    out.value.reserve(rows.value.size());
    for (Index c = 0; c < n; ++c) {
        out.index.insert(out.index.end(), rows.index.begin() + first[c], rows.index.begin() + last[c]);
        out.value.insert(out.value.end(), rows.value.begin() + first[c], rows.value.begin() + last[c]);
        out.start.push_back(length(out.index));
    }
    return out;
}

/// Classes of cells that move together: the class of each cell (-1 for none) and how far it moves with it.
struct Classes {
    std::span<const Index> of;
    std::span<const double> ratio;
    Index count;
};

/// Some relations as relations between classes of cells. What cancels is left out, and rows of which nothing is left.
SparseRows between_classes(const Sparse& T, std::span<const Index> rows, const Classes& classes) {
    SparseRows out;
    Reals sum(static_cast<std::size_t>(classes.count), 0.0);
    Flags seen(sum.size(), 0);
    Numbers touched;
    for (const Index r : rows) {
        for (Index k = T.start[r]; k < T.start[r + 1]; ++k) {
            const Index c = T.index[k], j = classes.of[c];
            if (j < 0) continue;
            if (!seen[j]) {
                seen[j] = 1;
                touched.push_back(j);
            }
            sum[j] += T.value[k] * classes.ratio[c];
        }
        std::sort(touched.begin(), touched.end());
        for (const Index j : touched) {
            if (!(std::abs(sum[j]) < NEGLIGIBLE)) {
                out.index.push_back(j);
                out.value.push_back(sum[j]);
            }
            sum[j] = 0.0;
            seen[j] = 0;
        }
        touched.clear();
        if (length(out.index) > out.start.back()) out.start.push_back(length(out.index));
    }
    return out;
}

/// Directions of three fingerprints: equal for cells whose movements are proportional.
Rows<Index> quotients(std::span<const Index> first, std::span<const Index> second, std::span<const Index> third) {
    Rows<Index> out(length(first), 2);
    Numbers before(first.size());  // the product of all that are not 0 before each: one inverse is enough for all
    Index all = 1;
    for (Index i = 0; i < length(first); ++i) {
        before[i] = all;
        if (first[i] != 0) all = residue_of(all * first[i]);
    }
    Index left = inverse_of(all);
    for (Index i = length(first) - 1; i >= 0; --i) {
        if (first[i] == 0) continue;
        const Index inverse = residue_of(left * before[i]);
        left = residue_of(left * first[i]);
        out(i, 0) = residue_of(second[i] * inverse);
        out(i, 1) = residue_of(third[i] * inverse);
    }
    return out;
}

/// The root of each moving cell, the smallest that relations tie it to; -1 for the others.
Numbers join(const Lists& relations, std::span<const Index> rows, std::span<const bool> moving) {
    Numbers parent = numbers_up_to(length(moving));
    const auto root_of = [&](Index c) {
        while (parent[c] != c) {
            parent[c] = parent[parent[c]];
            c = parent[c];
        }
        return c;
    };
    for (const Index r : rows) {
        Index root = -1;
        for (const Index cell : relations[r]) {
            if (!moving[cell]) continue;
            const Index c = root_of(cell);
            if (root < 0)
                root = c;
            else if (c < root)
                root = parent[root] = c;
            else
                parent[c] = root;
        }
    }
    Numbers out(moving.size(), -1);
    for (Index c = 0; c < length(moving); ++c) {
        if (moving[c]) out[c] = root_of(c);
    }
    return out;
}

// ---------------------------------------------------------------- Python

using RelationArrays =
    std::tuple<std::span<const Index>, std::span<const Index>, std::span<const double>, std::span<const Index>>;
using CombinationArrays =
    std::tuple<std::span<const Index>, std::span<const Index>, std::span<const Index>, std::span<const Index>>;
using DefinitionArrays = std::tuple<std::span<const Index>, std::span<const Index>>;

Relations checked_relations(const RelationArrays& arrays, std::span<const bool> free) {
    const auto& [start, index, value, residue] = arrays;
    const Sparse matrix = checked(Sparse{start, index, value}, length(free), "relations");
    require_length(residue, length(index), "residues");
    for (const Index r : residue) require(0 <= r && r < PRIME, "residues must be from 0 up to the prime");
    return {matrix, residue, free};
}

Definitions checked_definitions(const DefinitionArrays& arrays, const Relations& relations) {
    const auto& [relation, order] = arrays;
    require_length(relation, relations.cells(), "definitions");
    require_indices(order, relations.cells(), "order");
    for (const Index c : order) require_index(relation[c], relations.count(), "definitions");
    return {relation, order};
}

Combinations checked_combinations(const CombinationArrays& arrays, Index n) {
    const auto& [leaf, start, stop, cell] = arrays;
    require_indices(leaf, n, "pivots");
    require_indices(cell, n, "cells of the pivots");
    require_length(start, length(leaf), "start");
    require_length(stop, length(leaf), "stop");
    for (Index i = 0; i < length(leaf); ++i)
        require(0 <= start[i] && start[i] <= stop[i] && stop[i] <= length(cell),
                "start and stop must lie in the entries");
    return {leaf, start, stop, cell};
}

void require_residues(std::span<const Index> exact, Index n, const char* name) {
    require_length(exact, n, name);
    for (const Index e : exact) require(0 <= e && e < PRIME, "residues must be from 0 up to the prime");
}

}  // namespace

void bind_elimination(nb::module_ m) {
    m.attr("PRIME") = PRIME;
    m.def(
        "choose_definitions",
        [](const RelationArrays& arrays, std::span<const bool> free) {
            const Relations relations = checked_relations(arrays, free);
            Numbers definition = shortest_definitions(relations);
            Numbers order = TotalsInOrder(relations, definition).order();
            return std::pair(std::move(definition), std::move(order));
        },
        Unlocked(), "relations"_a, "free"_a);
    m.def(
        "propagate",
        [](const RelationArrays& arrays, std::span<const bool> free, const DefinitionArrays& definitions,
           std::span<Index> exact, std::span<double> value) {
            const Relations relations = checked_relations(arrays, free);
            require_residues(exact, relations.cells(), "exact");
            require_length(value, relations.cells(), "value");
            propagate(relations, checked_definitions(definitions, relations), exact, value);
        },
        Unlocked(), "relations"_a, "free"_a, "definitions"_a, "exact"_a, "value"_a);
    m.def(
        "leftover_relations",
        [](const RelationArrays& arrays, std::span<const bool> free, std::span<const Index> first,
           std::span<const Index> second) {
            const Relations relations = checked_relations(arrays, free);
            require_residues(first, relations.cells(), "first");
            require_residues(second, relations.cells(), "second");
            return leftover_relations(relations, first, second);
        },
        Unlocked(), "relations"_a, "free"_a, "first"_a, "second"_a);
    m.def(
        "eliminate",
        [](const RelationArrays& arrays, std::span<const bool> free, const DefinitionArrays& definitions,
           std::span<const Index> rows) {
            const Relations relations = checked_relations(arrays, free);
            require_indices(rows, relations.count(), "rows");
            Watch watch(std::numeric_limits<double>::infinity());
            const NumberRows expanded = expand(relations, checked_definitions(definitions, relations), rows);
            Numbers lengths;
            for (Index i = 0; i < length(rows); ++i) lengths.push_back(expanded.start[i + 1] - expanded.start[i]);
            Pivots out = Elimination(expanded, relations.cells()).run(stable_order<Index>(lengths), watch);
            for (Index& used : out.used) used = rows[used];
            return std::tuple(std::move(out.used), std::move(out.leaf), std::move(out.start), std::move(out.stop),
                              std::move(out.combination.cell), std::move(out.combination.exact),
                              std::move(out.combination.value));
        },
        Unlocked(), "relations"_a, "free"_a, "definitions"_a, "rows"_a);
    m.def(
        "combine",
        [](const CombinationArrays& pivots, std::span<const Index> coefficient, std::span<const double> coefficient_f,
           std::span<Index> exact, std::span<double> value) {
            const Combinations combinations = checked_combinations(pivots, length(exact));
            require_residues(coefficient, length(combinations.cell), "coefficients");
            require_length(coefficient_f, length(combinations.cell), "coefficients");
            require_residues(exact, length(value), "exact");
            combine(combinations, coefficient, coefficient_f, exact, value);
        },
        Unlocked(), "pivots"_a, "coefficient"_a, "coefficient_f"_a, "exact"_a, "value"_a);
    m.def(
        "null_space",
        [](std::span<const Index> start, std::span<const Index> index, std::span<const double> value,
           std::span<const bool> free, const DefinitionArrays& definitions, std::span<const Index> parameters,
           const CombinationArrays& pivots, std::span<const double> coefficient) {
            const Relations relations{checked(Sparse{start, index, value}, length(free), "relations"), {}, free};
            const Combinations combinations = checked_combinations(pivots, relations.cells());
            require_indices(parameters, relations.cells(), "parameters");
            require_length(coefficient, length(combinations.cell), "coefficients");
            SparseRows out = null_space(relations, checked_definitions(definitions, relations), parameters,
                                        combinations, coefficient);
            return std::tuple(std::move(out.start), std::move(out.index), std::move(out.value));
        },
        Unlocked(), "start"_a, "index"_a, "value"_a, "free"_a, "definitions"_a, "parameters"_a, "pivots"_a,
        "coefficient"_a);
    m.def(
        "between_classes",
        [](std::span<const Index> start, std::span<const Index> index, std::span<const double> value,
           std::span<const Index> rows, std::span<const Index> class_of, std::span<const double> ratio, Index classes) {
            const Sparse T = checked(Sparse{start, index, value}, length(class_of), "relations");
            require_indices(rows, T.count(), "rows");
            require_length(ratio, length(class_of), "ratio");
            require(classes >= 0 && classes <= length(class_of), "there cannot be more classes than cells");
            for (const Index j : class_of) require(j >= -1 && j < classes, "classes are numbered from 0");
            SparseRows out = between_classes(T, rows, {class_of, ratio, classes});
            return std::tuple(std::move(out.start), std::move(out.index), std::move(out.value));
        },
        Unlocked(), "start"_a, "index"_a, "value"_a, "rows"_a, "class_of"_a, "ratio"_a, "classes"_a);
    m.def(
        "quotients",
        [](std::span<const Index> first, std::span<const Index> second, std::span<const Index> third) {
            for (const auto& each : {first, second, third}) require_residues(each, length(first), "fingerprints");
            return quotients(first, second, third);
        },
        Unlocked(), "first"_a, "second"_a, "third"_a);
    m.def(
        "join",
        [](std::span<const Index> start, std::span<const Index> index, std::span<const Index> rows,
           std::span<const bool> moving) {
            const Lists relations = checked(Lists{start, index}, length(moving), "relations");
            require_indices(rows, relations.count(), "rows");
            return join(relations, rows, moving);
        },
        Unlocked(), "start"_a, "index"_a, "rows"_a, "moving"_a);
}

}  // namespace cellguard

// Movements of few variables that are as wide as can be, all at once.
//
// The relations leave some variables free to choose; the others follow. Let those follow whose rooms are the widest:
// take the variables from the widest to the narrowest, and let each follow unless those before it determine it (the
// greedy basis of a matroid). Move one variable that does not follow, and what must follow it: a circuit. All others in
// it have at least its room, for otherwise it would have been taken before one of them. So a circuit goes about as far
// as its own variable can, one elimination gives one for each degree of freedom, and most variables stand in many of
// them.
#include <cmath>

#include "border.hpp"
#include "checks.hpp"
#include "watch.hpp"

namespace cellguard {

namespace {

constexpr double NOTHING = 1e-9;  // a coefficient below this is rounding: those of tables are small whole numbers
constexpr double PIVOT = 0.5;     // share of the largest coefficient that a pivot must have

struct Entry {
    Index column;
    double value;
};
using Row = std::vector<Entry>;
/// A movement in each row: where it begins, which variables move, and by how much.
using Movements = std::tuple<std::vector<Index>, std::vector<Index>, std::vector<double>>;

/// Relations that are solved for one variable after the other; solved ones stay solved (Gauss and Jordan).
class Elimination {
  public:
    Elimination(const Sparse& relations, Index columns)
        : rows_(static_cast<std::size_t>(relations.count())),
          pivot_(rows_.size(), -1),
          rows_of_(static_cast<std::size_t>(columns)) {
        for (Index r = 0; r < relations.count(); ++r) {
            for (Index k = relations.start[r]; k < relations.start[r + 1]; ++k) {
                rows_[r].push_back({relations.index[k], relations.value[k]});
                rows_of_[relations.index[k]].push_back(r);
            }
            std::sort(rows_[r].begin(), rows_[r].end(), [](Entry a, Entry b) { return a.column < b.column; });
            entries_ += length(rows_[r]);
        }
    }

    Index entries() const { return entries_; }

    /// Let a variable follow, if those that follow already do not determine it.
    void follow(Index column) {
        std::vector<Index>& rows = rows_of_[column];  // some may have lost it meanwhile, some stand there twice
        std::sort(rows.begin(), rows.end());
        rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
        const Index chosen = pivot_row(rows, column);
        if (chosen < 0) return;
        pivot_[chosen] = column;
        const double size = coefficient(chosen, column);
        for (Entry& e : rows_[chosen]) e.value /= size;
        for (const Index r : rows) {
            if (r != chosen) eliminate(r, chosen, column);
        }
        rows.assign(1, chosen);
    }

    /// Each variable that does not follow, moved by one, with all that follow it.
    Movements circuits() const {
        Flags follows(rows_of_.size(), 0);
        for (const Index c : pivot_) {
            if (c >= 0) follows[c] = 1;
        }
        std::vector<Row> moved(rows_of_.size());
        for (std::size_t r = 0; r < rows_.size(); ++r) {
            if (pivot_[r] < 0) continue;
            for (const Entry& e : rows_[r]) {
                if (!follows[e.column]) moved[e.column].push_back({pivot_[r], -e.value});
            }
        }
        std::vector<Index> start{0}, index;
        std::vector<double> value;
        for (std::size_t c = 0; c < moved.size(); ++c) {
            if (follows[c]) continue;
            moved[c].push_back({static_cast<Index>(c), 1.0});
            std::sort(moved[c].begin(), moved[c].end(), [](Entry a, Entry b) { return a.column < b.column; });
            for (const Entry& e : moved[c]) {
                index.push_back(e.column);
                value.push_back(e.value);
            }
            start.push_back(length(index));
        }
        return {std::move(start), std::move(index), std::move(value)};
    }

  private:
    double coefficient(Index row, Index column) const {
        const Row& entries = rows_[row];
        const auto at = std::lower_bound(entries.begin(), entries.end(), column,
                                         [](const Entry& e, Index c) { return e.column < c; });
        return at != entries.end() && at->column == column ? at->value : 0.0;
    }

    /// The shortest row that is not solved yet and holds enough of the column; -1: none.
    Index pivot_row(std::span<const Index> rows, Index column) const {
        double largest = 0.0;
        for (const Index r : rows) {
            if (pivot_[r] < 0) largest = std::max(largest, std::abs(coefficient(r, column)));
        }
        Index best = -1;
        for (const Index r : rows) {
            if (largest < NOTHING || pivot_[r] >= 0 || std::abs(coefficient(r, column)) < PIVOT * largest) continue;
            if (best < 0 || rows_[r].size() < rows_[best].size()) best = r;
        }
        return best;
    }

    /// Take a multiple of the chosen row away from a row, so that it loses the column.
    void eliminate(Index row, Index chosen, Index column) {
        const double times = coefficient(row, column);
        if (times == 0.0) return;
        const Row &old = rows_[row], &taken = rows_[chosen];
        sum_.clear();
        auto a = old.begin();
        for (const Entry& b : taken) {
            while (a != old.end() && a->column < b.column) sum_.push_back(*a++);
            const bool both = a != old.end() && a->column == b.column;
            const double value = (both ? a->value : 0.0) - times * b.value;
            if (both) ++a;
            if (b.column == column || std::abs(value) <= NOTHING) continue;
            sum_.push_back({b.column, value});
            if (!both) rows_of_[b.column].push_back(row);
        }
        sum_.insert(sum_.end(), a, old.end());
        entries_ += length(sum_) - length(old);
        rows_[row].swap(sum_);
    }

    std::vector<Row> rows_;
    std::vector<Index> pivot_;  // the variable that each row is solved for; -1: none yet
    std::vector<std::vector<Index>> rows_of_;
    Row sum_;
    Index entries_ = 0;
};

/// The circuits for variables from the widest to the narrowest; none where they take more entries, or time, than given.
Movements widest(const Sparse& relations, std::span<const Index> order, Index most, double time_left_s) {
    Elimination elimination(relations, length(order));
    Watch watch(time_left_s);
    for (const Index column : order) {
        if (elimination.entries() > most || watch.over()) return {{0}, {}, {}};
        elimination.follow(column);
    }
    return elimination.circuits();
}

/// Circuits added up, in their order, until a variable has moved as far as it needs to; nothing if it cannot.
std::vector<double> added(const Sparse& circuits, std::span<const Index> order, Index variable, double need,
                          std::span<const double> room) {
    std::vector<double> moved(room.size(), 0.0);
    for (const Index c : order) {
        double own = 0.0;
        for (Index k = circuits.start[c]; k < circuits.start[c + 1]; ++k) {
            if (circuits.index[k] == variable) own = circuits.value[k];
        }
        if (own == 0.0) continue;
        const double sign = own > 0.0 ? 1.0 : -1.0;
        double times = (need - moved[variable]) / std::abs(own);
        for (Index k = circuits.start[c]; k < circuits.start[c + 1]; ++k) {
            const Index v = circuits.index[k];
            const double step = sign * circuits.value[k], left = room[v] + (step > 0.0 ? -moved[v] : moved[v]);
            if (step != 0.0) times = std::min(times, left / std::abs(step));
        }
        if (!(times > NOTHING * need)) continue;
        for (Index k = circuits.start[c]; k < circuits.start[c + 1]; ++k) {
            moved[circuits.index[k]] += times * sign * circuits.value[k];
        }
        if (moved[variable] >= need * (1.0 - NOTHING)) return moved;
    }
    return {};
}

}  // namespace

void bind_widest(nb::module_ m) {
    m.def(
        "widest",
        [](std::span<const Index> start, std::span<const Index> index, std::span<const double> value,
           std::span<const Index> order, Index most, double time_left_s) {
            const Sparse relations = checked(Sparse{start, index, value}, length(order), "relations");
            require_indices(order, length(order), "order");
            return widest(relations, order, most, time_left_s);
        },
        Unlocked(), "start"_a, "index"_a, "value"_a, "order"_a, "most"_a, "time_left_s"_a = INFINITY);
    m.def(
        "added",
        [](std::span<const Index> start, std::span<const Index> index, std::span<const double> value,
           std::span<const Index> order, Index variable, double need, std::span<const double> room) {
            const Sparse circuits = checked(Sparse{start, index, value}, length(room), "circuits");
            require_indices(order, circuits.count(), "order");
            require_index(variable, length(room), "variable");
            return added(circuits, order, variable, need, room);
        },
        Unlocked(), "start"_a, "index"_a, "value"_a, "order"_a, "variable"_a, "need"_a, "room"_a);
}

}  // namespace cellguard

#include "twoway.hpp"

namespace cellguard::twoway {

Pattern::Pattern(ConstMasks by_row, Index n_columns)
    : rows(by_row.begin(), by_row.end()),
      columns(static_cast<std::size_t>(n_columns), 0) {
    for (Index i = 0; i < length(rows); ++i) for_each(rows[i], [&](Index j) { columns[j] |= bit(i); });
}

Flow::Flow(Index n_rows, Index n_columns)
    : scratch_(n_rows, n_columns),
      column_of_row_(static_cast<std::size_t>(n_rows), 0),
      row_of_column_(static_cast<std::size_t>(n_columns), 0) {}

/// Breadth-first from row i to column j (up) or back (down), not over cell (i, j) itself. Leaves the way in the links.
bool Flow::find_cycle(ConstTable y, const Pattern& pattern, Index i, Index j, Way way) {
    const bool up = way == Way::UP;
    Reach seen{up ? bit(i) : 0, up ? 0 : bit(j)}, front = seen;
    while ((front.rows | front.columns) != 0) {
        Reach next;
        for_each(front.rows, [&](Index a) {
            Mask open = pattern.rows[a] & ~(seen.columns | next.columns);
            if (a == i) open &= ~bit(j);
            for_each(open, [&](Index b) {
                if (y(a, b) <= 0) return;
                next.columns |= bit(b);
                row_of_column_[b] = a;
            });
        });
        for_each(front.columns, [&](Index b) {
            Mask open = pattern.columns[b] & ~(seen.rows | next.rows);
            if (b == j) open &= ~bit(i);
            next.rows |= open;
            for_each(open, [&](Index a) { column_of_row_[a] = b; });
        });
        seen.rows |= next.rows;
        seen.columns |= next.columns;
        front = next;
        if (up ? holds(seen.columns, j) : holds(seen.rows, i)) return true;
    }
    (up ? reach_up_ : reach_down_) = seen;
    return false;
}

/// Go along the cycle that was found: cells that are raised and cells that are lowered, (i, j) itself left out.
template <class Raise, class Lower>
void Flow::walk(Index i, Index j, Way way, Raise raise, Lower lower) const {
    Index a = i, b = j;
    if (way == Way::UP) {
        while (true) {
            a = row_of_column_[b];
            lower(a, b);
            if (a == i) return;
            b = column_of_row_[a];
            raise(a, b);
        }
    }
    while (true) {
        b = column_of_row_[a];
        raise(a, b);
        if (b == j) return;
        a = row_of_column_[b];
        lower(a, b);
    }
}

Index Flow::augment(Table y, const Pattern& pattern, Index i, Index j, Way way, Index most) {
    if (!find_cycle(y, pattern, i, j, way)) return 0;
    Index amount = most;
    walk(i, j, way, [](Index, Index) {}, [&](Index a, Index b) { amount = std::min(amount, y(a, b)); });
    walk(i, j, way, [&](Index a, Index b) { y(a, b) += amount; }, [&](Index a, Index b) { y(a, b) -= amount; });
    y(i, j) += way == Way::UP ? amount : -amount;
    return amount;
}

void Flow::lower(Table y, const Pattern& pattern, Index i, Index j) {
    while (y(i, j) > 0 && augment(y, pattern, i, j, Way::DOWN, y(i, j)) > 0) {
    }
}

Index Flow::shift(ConstTable x, const Pattern& pattern, Index i, Index j, Way way, Index most) {
    std::copy(x.data(), x.data() + x.rows() * x.columns(), scratch_.view().data());
    Index moved = 0;
    while (moved < most) {
        const Index step = augment(scratch_.view(), pattern, i, j, way, most - moved);
        if (step == 0) break;
        moved += step;
    }
    return moved;
}

Index Flow::width(ConstTable x, const Pattern& pattern, Index i, Index j, Index cap) {
    const Index up = shift(x, pattern, i, j, Way::UP, cap);
    if (up >= cap) return cap;
    return up + shift(x, pattern, i, j, Way::DOWN, std::min(x(i, j), cap - up));
}

Spans spans(ConstTable x, ConstMasks rows, Flow& flow) {
    Spans out{OwnTable(x), OwnTable(x)};
    const Pattern pattern(rows, x.columns());
    for (Index i = 0; i < x.rows(); ++i) {
        for_each(rows[i], [&](Index j) {
            out.high(i, j) += flow.shift(x, pattern, i, j, Way::UP, FAR_AWAY);
            out.low(i, j) -= flow.shift(x, pattern, i, j, Way::DOWN, x(i, j));
        });
    }
    return out;
}

}  // namespace cellguard::twoway

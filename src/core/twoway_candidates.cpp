// Every table of counts that agrees with what is published, depth-first (minami2019 (34)).
//
// The suppressed cells that no spanning forest of the pattern needs decide all others. They are set one after the
// other; flows give the exact range that the earlier ones leave to the next, so that there are no dead ends: every leaf
// of the tree is a candidate.
#include "twoway.hpp"

namespace cellguard::twoway {

std::vector<Index> basis(ConstMasks rows, Index n_columns, Index first, ConstTable span) {
    const Index n_rows = length(rows);
    std::vector<Index> cells, key;
    for (Index i = 0; i < n_rows; ++i) {
        for_each(rows[i], [&](Index j) {
            if (i * n_columns + j != first) cells.push_back(i * n_columns + j);
        });
    }
    std::stable_sort(cells.begin(), cells.end(), [&](Index a, Index b) { return span.data()[a] < span.data()[b]; });
    std::vector<Index> parent = numbers_up_to(n_rows + n_columns), out;
    const auto root = [&](Index a) {
        while (parent[a] != a) a = parent[a];
        return a;
    };
    for (const Index c : cells) {
        const Index a = root(c / n_columns), b = root(n_rows + c % n_columns);
        if (a == b)
            out.push_back(c);
        else
            parent[a] = b;
    }
    if (first >= 0) out.push_back(first);
    std::reverse(out.begin(), out.end());
    return out;
}

namespace {

/// Whether column j is reached from row i without cell (i, j).
bool on_cycle(const Pattern& pattern, Index i, Index j) {
    Mask seen_rows = bit(i), seen_columns = 0, front = seen_rows;
    while (front != 0) {
        const Index a = lowest(front);
        front &= front - 1;
        Mask open = pattern.rows[a] & ~seen_columns;
        if (a == i) open &= ~bit(j);
        seen_columns |= open;
        if (holds(seen_columns, j)) return true;
        for_each(open, [&](Index b) {
            front |= pattern.columns[b] & ~seen_rows;
            seen_rows |= pattern.columns[b];
        });
    }
    return false;
}

}  // namespace

Rows<Mask> decided(std::span<const Index> order, ConstMasks rows, Index n_columns) {
    Rows<Mask> known(length(order), length(rows));
    Pattern free(rows, n_columns);
    for (Index l = 0; l < length(order); ++l) {
        free.remove(order[l] / n_columns, order[l] % n_columns);
        for (Index i = 0; i < length(rows); ++i) {
            known(l, i) = rows[i];
            for_each(free.rows[i], [&](Index j) {
                if (on_cycle(free, i, j)) known(l, i) &= ~bit(j);
            });
        }
    }
    return known;
}

OwnTable first_candidate(ConstTable x, ConstMasks rows, Flow& flow) {
    OwnTable y(x);
    Pattern free(rows, x.columns());
    for (Index i = 0; i < x.rows(); ++i) {
        for_each(rows[i], [&](Index j) {
            flow.lower(y.view(), free, i, j);
            free.remove(i, j);
        });
    }
    return y;
}

Tree::Tree(ConstTable x, std::span<const Index> order, ConstMasks rows, Flow& flow)
    : order_(order),
      columns_(x.columns()),
      flow_(flow) {
    Pattern free(rows, x.columns());
    for (Index l = 0; l < std::max<Index>(length(order), 1); ++l) {
        level_.push_back({OwnTable(x), free});
        if (l < length(order)) free.remove(order[l] / columns_, order[l] % columns_);
    }
}

void Tree::settle(Index l) {
    if (l > 0) level_[l].table = level_[l - 1].table;
    const auto [i, j] = cell(l);
    flow_.lower(table(l), free(l), i, j);
}

bool Tree::step(Index l) {
    const auto [i, j] = cell(l);
    return flow_.augment(table(l), free(l), i, j, Way::UP, 1) > 0;
}

}  // namespace cellguard::twoway

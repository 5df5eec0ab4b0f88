// Minimum degree ordering of a symmetric pattern.
//
// The approximate minimum degree algorithm of P. R. Amestoy, T. A. Davis and I. S. Duff (SIAM J. Matrix Anal. Appl. 17,
// 1996), written from the paper: a quotient graph in which eliminated nodes become elements, degrees are bounded
// instead of counted, and nodes with equal neighbours are one.
#include "border.hpp"
#include "checks.hpp"
#include "watch.hpp"

namespace cellguard {

namespace {

using Numbers = std::vector<Index>;

/// Nodes by their degree, in doubly linked lists.
class DegreeLists {
  public:
    explicit DegreeLists(Index n)
        : degree(size(n), 0),
          head_(size(n + 1), -1),
          next_(size(n), -1),
          previous_(size(n), -1) {}

    void link(Index i, Index d) {
        degree[i] = d;
        next_[i] = head_[d];
        previous_[i] = -1;
        if (head_[d] >= 0) previous_[head_[d]] = i;
        head_[d] = i;
        least_ = std::min(least_, d);
    }
    void unlink(Index i) {
        (previous_[i] >= 0 ? next_[previous_[i]] : head_[degree[i]]) = next_[i];
        if (next_[i] >= 0) previous_[next_[i]] = previous_[i];
    }
    /// A node of least degree, taken out.
    Index pop() {
        while (head_[least_] < 0) ++least_;
        const Index i = head_[least_];
        unlink(i);
        return i;
    }

    Numbers degree;

  private:
    static std::size_t size(Index n) { return static_cast<std::size_t>(n); }

    Numbers head_, next_, previous_;
    Index least_ = 0;
};

/// A node lists its elements first, then its other neighbours; an element lists its nodes.
class QuotientGraph {
  public:
    explicit QuotientGraph(const Lists& neighbours)
        : n_(neighbours.count()),
          store_(neighbours.entry.begin(), neighbours.entry.end()),
          start_(neighbours.start.begin(), neighbours.start.end() - 1),
          length_(start_.size()),
          n_elements_(start_.size(), 0),
          size_(start_.size(), 1),
          is_element_(start_.size(), 0),
          alive_(start_.size(), 1),
          in_new_(start_.size(), 0),
          leader_(numbers_up_to(n_)),
          weight_of_(start_.size(), 0),
          outside_(start_.size(), 0),
          bucket_(start_.size(), -1),
          chain_(start_.size(), -1),
          hash_(start_.size(), 0),
          marked_(start_.size(), 0),
          lists_(n_) {
        const Index entries = length(store_);
        free_ = entries;
        store_.resize(static_cast<std::size_t>(entries + entries / 4 + 4 * n_ + 64));
        for (Index i = n_ - 1; i >= 0; --i) {
            length_[i] = neighbours.start[i + 1] - neighbours.start[i];
            lists_.link(i, length_[i]);
        }
    }

    Numbers order(Watch& watch) {
        Numbers pivots;
        for (Index eliminated = 0; eliminated < n_; watch.over()) {
            const Index p = lists_.pop();
            make_element(p);
            count_outside();
            update_neighbours(p);
            merge_indistinguishable();
            eliminated += weight_;
            link_again(p, eliminated);
            pivots.push_back(p);
        }
        return with_followers(pivots);
    }

  private:
    bool is_open(Index i) const { return size_[i] > 0 && !is_element_[i] && !in_new_[i]; }

    /// The new element: all neighbours of p, directly or through its elements. Its nodes are store_[first_ .. free_).
    void make_element(Index p) {
        make_room(p);
        first_ = free_;
        new_size_ = 0;
        in_new_[p] = 1;
        for (Index k = start_[p]; k < start_[p] + n_elements_[p]; ++k) {
            const Index e = store_[k];
            alive_[e] = 0;
            collect(start_[e], start_[e] + length_[e]);
        }
        collect(start_[p] + n_elements_[p], start_[p] + length_[p]);
        in_new_[p] = 0;
        is_element_[p] = 1;
        start_[p] = first_;
        length_[p] = free_ - first_;
        n_elements_[p] = 0;
        weight_ = size_[p];
    }

    void collect(Index begin, Index end) {
        for (Index k = begin; k < end; ++k) {
            const Index i = store_[k];
            if (!is_open(i)) continue;
            in_new_[i] = 1;
            new_size_ += size_[i];
            store_[free_++] = i;
            lists_.unlink(i);
        }
    }

    void make_room(Index p) {
        Index need = length_[p] - n_elements_[p];
        for (Index k = start_[p]; k < start_[p] + n_elements_[p]; ++k) need += length_[store_[k]];
        if (free_ + need <= length(store_)) return;
        compact();
        if (free_ + need > length(store_)) store_.resize(static_cast<std::size_t>(2 * (free_ + need)));
    }

    /// Move the lists that are alive to the front of the store.
    void compact() {
        free_ = 0;
        for (const Index i : stable_order<Index>(start_)) {
            if (!alive_[i]) continue;
            std::copy(store_.begin() + start_[i], store_.begin() + start_[i] + length_[i], store_.begin() + free_);
            start_[i] = free_;
            free_ += length_[i];
        }
    }

    /// How much of every other element lies outside the new one: outside_[e] - stamp_.
    void count_outside() {
        stamp_ += n_ + 1;
        for (Index q = first_; q < free_; ++q) {
            const Index i = store_[q];
            for (Index k = start_[i]; k < start_[i] + n_elements_[i]; ++k) {
                const Index e = store_[k];
                if (!alive_[e]) continue;
                if (outside_[e] < stamp_) outside_[e] = stamp_ + weight_of_[e];
                outside_[e] -= size_[i];
            }
        }
    }

    /// New lists and degrees of the nodes of the new element; what nothing else touches is eliminated with p.
    void update_neighbours(Index p) {
        for (Index q = first_; q < free_; ++q) {
            const Index i = store_[q];
            Index write = start_[i], d = 0, hash = p, kept = 1;
            const Index middle = start_[i] + n_elements_[i], end = start_[i] + length_[i];
            Index held = p;  // the new element comes first; everything else moves up by one
            for (Index k = start_[i]; k < middle; ++k) {
                const Index e = store_[k];
                if (!alive_[e]) continue;
                if (outside_[e] - stamp_ > 0) {
                    store_[write++] = std::exchange(held, e);
                    ++kept;
                    d += outside_[e] - stamp_;
                    hash += e;
                } else {
                    alive_[e] = 0;  // it lies inside the new one
                }
            }
            n_elements_[i] = kept;
            for (Index k = middle; k < end; ++k) {
                const Index j = store_[k];
                if (!is_open(j)) continue;
                store_[write++] = std::exchange(held, j);
                d += size_[j];
                hash += j;
            }
            store_[write++] = held;
            length_[i] = write - start_[i];
            if (d == 0 && kept == 1) {
                weight_ += size_[i];
                new_size_ -= size_[i];
                absorb(i, p);
            } else {
                lists_.degree[i] = std::min(lists_.degree[i], d);
                hash_[i] = hash % n_;
                chain_[i] = std::exchange(bucket_[hash_[i]], i);
            }
        }
    }

    void absorb(Index i, Index into) {
        leader_[i] = into;
        size_[i] = 0;
        alive_[i] = 0;
        in_new_[i] = 0;
    }

    /// Nodes of the new element that have become indistinguishable are merged.
    void merge_indistinguishable() {
        for (Index q = first_; q < free_; ++q) {
            if (size_[store_[q]] == 0) continue;
            Index i = std::exchange(bucket_[hash_[store_[q]]], -1);
            for (; i >= 0 && chain_[i] >= 0; i = chain_[i]) {
                const Index stamp = stamp_ + i + 1;
                for (Index k = start_[i]; k < start_[i] + length_[i]; ++k) marked_[store_[k]] = stamp;
                Index last = i;
                for (Index j = chain_[i]; j >= 0; j = chain_[last]) {
                    if (!same_list(i, j, stamp)) {
                        last = j;
                        continue;
                    }
                    size_[i] += size_[j];
                    absorb(j, i);
                    chain_[last] = chain_[j];
                }
            }
        }
    }

    bool same_list(Index i, Index j, Index stamp) const {
        if (length_[j] != length_[i] || n_elements_[j] != n_elements_[i]) return false;
        const auto begin = store_.begin() + start_[j];
        return std::all_of(begin, begin + length_[j], [&](Index entry) { return marked_[entry] == stamp; });
    }

    /// Back into the lists of degrees.
    void link_again(Index p, Index eliminated) {
        Index write = first_;
        for (Index q = first_; q < free_; ++q) {
            const Index i = store_[q];
            if (size_[i] == 0) continue;
            in_new_[i] = 0;
            const Index d = std::min(lists_.degree[i] + new_size_ - size_[i], n_ - eliminated - size_[i]);
            lists_.link(i, std::max(d, Index{0}));
            store_[write++] = i;
        }
        free_ = write;
        length_[p] = write - first_;
        weight_of_[p] = new_size_;
        size_[p] = 0;
        alive_[p] = length_[p] > 0;
    }

    /// Nodes follow their representative.
    Numbers with_followers(const Numbers& pivots) const {
        Numbers position(start_.size(), -1), root(start_.size());
        for (Index k = 0; k < length(pivots); ++k) position[pivots[k]] = k;
        for (Index i = 0; i < n_; ++i) {
            Index r = i;
            while (leader_[r] != r) r = leader_[r];
            root[i] = position[r];
        }
        return stable_order<Index>(root);
    }

    Index n_;
    Numbers store_, start_, length_, n_elements_;
    Numbers size_;  // how many nodes a node stands for; 0 once it is absorbed or eliminated
    Flags is_element_, alive_, in_new_;
    Numbers leader_;  // representative a node was merged into
    Numbers weight_of_;  // how many nodes an element holds: constant while it is alive
    Numbers outside_, bucket_, chain_, hash_, marked_;
    DegreeLists lists_;
    Index free_ = 0, first_ = 0, stamp_ = 1;
    Index weight_ = 0;  // nodes that are eliminated with the pivot, itself included
    Index new_size_ = 0;  // nodes of the new element
};

}  // namespace

void bind_ordering(nb::module_ m) {
    m.def(
        "minimum_degree",
        [](std::span<const Index> start, std::span<const Index> index) {
            const Lists neighbours = checked(Lists{start, index}, length(start) - 1, "the pattern");
            for (Index i = 0; i < neighbours.count(); ++i) {
                for (const Index j : neighbours[i]) require(i != j, "the pattern must not hold the diagonal");
                require(length(neighbours[i]) < neighbours.count(), "the pattern holds a neighbour twice");
            }
            Watch watch(std::numeric_limits<double>::infinity());
            return QuotientGraph(neighbours).order(watch);
        },
        Unlocked(), "start"_a, "index"_a);
}

}  // namespace cellguard

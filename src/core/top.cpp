// Margins of microdata: the largest contributions of a union are among the largest of its parts.
#include "border.hpp"
#include "checks.hpp"

namespace cellguard {

namespace {

/// Items in falling order of value, up to the one that completes so many units of weight. Items of equal value come in
/// the order of their numbers, so that the same input gives the same lists.
class Top {
  public:
    Top(std::span<const double> value, std::span<const double> weight, double units)
        : value_(value),
          weight_(weight),
          units_(units) {}

    void clear() {
        items_.clear();
        full_ = false;
    }
    /// Returns false when it is too small, and everything smaller with it.
    bool add(Index item) {
        const auto follows = [&](Index other) {
            return value_[item] > value_[other] || (value_[item] == value_[other] && item < other);
        };
        const auto at = std::find_if_not(items_.rbegin(), items_.rend(), follows).base();
        if (at == items_.end() && full_) return false;
        items_.insert(at, item);
        double held = 0.0;
        full_ = false;
        for (std::size_t j = 0; j < items_.size(); ++j) {
            held += weight_[items_[j]];
            if (held < units_) continue;
            items_.resize(j + 1);
            full_ = true;
        }
        return true;
    }
    const std::vector<Index>& items() const { return items_; }

  private:
    std::span<const double> value_, weight_;
    double units_;
    std::vector<Index> items_;
    bool full_ = false;
};

struct OwnLists {
    std::vector<Index> start, entry;
};

/// Merge lists of items, each sorted by falling value, into the lists of groups of them.
OwnLists merge_top(const Lists& groups, const Lists& lists, std::span<const double> value,
                   std::span<const double> weight, double units) {
    OwnLists out{{0}, {}};
    Top top(value, weight, units);
    for (Index group = 0; group < groups.count(); ++group) {
        top.clear();
        for (const Index part : groups[group]) {
            for (const Index item : lists[part]) {
                if (!top.add(item)) break;  // the rest of this list is smaller still
            }
        }
        out.entry.insert(out.entry.end(), top.items().begin(), top.items().end());
        out.start.push_back(length(out.entry));
    }
    return out;
}

}  // namespace

void bind_top(nb::module_ m) {
    m.def(
        "merge_top",
        [](std::span<const Index> group_start, std::span<const Index> parts, std::span<const Index> list_start,
           std::span<const Index> items, std::span<const double> value, std::span<const double> weight, double units) {
            require_length(weight, length(value), "weight");
            const Lists lists = checked(Lists{list_start, items}, length(value), "items");
            OwnLists out =
                merge_top(checked(Lists{group_start, parts}, lists.count(), "parts"), lists, value, weight, units);
            return std::pair(std::move(out.start), std::move(out.entry));
        },
        Unlocked(), "group_start"_a, "parts"_a, "list_start"_a, "items"_a, "value"_a, "weight"_a, "units"_a);
}

}  // namespace cellguard

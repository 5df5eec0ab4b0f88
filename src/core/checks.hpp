// What every array that enters must satisfy: a loop that trusts its indices must have seen them checked.
#pragma once

#include <cmath>
#include <stdexcept>
#include <string>

#include "arrays.hpp"

namespace cellguard {

/// Refuse wrong input; Python sees a ValueError.
inline void require(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

template <class T>
void require_length(std::span<T> values, Index n, const char* name) {
    if (length(values) != n) {
        throw std::invalid_argument(std::string(name) + " has " + std::to_string(values.size()) + " entries, not " +
                                    std::to_string(n));
    }
}

inline void require_index(Index i, Index n, const char* name) {
    if (i < 0 || i >= n) {
        throw std::invalid_argument(std::string(name) + " holds " + std::to_string(i) + ", which is not in 0 .. " +
                                    std::to_string(n - 1));
    }
}

inline void require_indices(std::span<const Index> values, Index n, const char* name) {
    for (const Index i : values) require_index(i, n, name);
}

inline void require_numbers(std::span<const double> values, const char* name) {
    for (const double v : values) {
        if (std::isnan(v)) throw std::invalid_argument(std::string(name) + " holds something that is not a number");
    }
}

/// Pointers into `entries` entries: from 0 on, never falling, up to their number.
inline void require_pointers(std::span<const Index> start, Index entries, const char* name) {
    bool holds = !start.empty() && start.front() == 0 && start.back() == entries;
    for (std::size_t i = 1; holds && i < start.size(); ++i) holds = start[i - 1] <= start[i];
    if (!holds) throw std::invalid_argument(std::string(name) + " must rise from 0 to the number of entries");
}

inline Lists checked(const Lists& lists, Index n, const char* name) {
    require_pointers(lists.start, length(lists.entry), name);
    require_indices(lists.entry, n, name);
    return lists;
}

inline Sparse checked(const Sparse& matrix, Index columns, const char* name) {
    require_length(matrix.value, length(matrix.index), name);
    checked(matrix.pattern(), columns, name);
    return matrix;
}

}  // namespace cellguard

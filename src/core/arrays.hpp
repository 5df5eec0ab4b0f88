// Rectangular arrays, row by row as numpy lays them out: a view and an owner.
#pragma once

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace cellguard {

using Index = std::int64_t;

/// Yes or no for each of many things; a std::vector<bool> has no addresses. Leaves as an array of numpy's bool.
using Flags = std::vector<char>;

template <class T>
Index length(const T& container) {
    return static_cast<Index>(container.size());
}

/// A view of rows of equal length.
template <class T>
class Matrix {
  public:
    Matrix() = default;
    Matrix(T* data, Index rows, Index columns) : data_(data), rows_(rows), columns_(columns) {}
    template <class U>
        requires std::is_same_v<T, const U>
    Matrix(const Matrix<U>& other)  // to look at what may be changed is always allowed
        : data_(other.data()),
          rows_(other.rows()),
          columns_(other.columns()) {}

    T* data() const { return data_; }
    Index rows() const { return rows_; }
    Index columns() const { return columns_; }

    std::span<T> operator[](Index row) const {
        assert(0 <= row && row < rows_);
        return {data_ + row * columns_, static_cast<std::size_t>(columns_)};
    }
    T& operator()(Index row, Index column) const {
        assert(0 <= row && row < rows_ && 0 <= column && column < columns_);
        return data_[row * columns_ + column];
    }
    /// The first rows.
    Matrix first(Index rows) const {
        assert(rows <= rows_);
        return {data_, rows, columns_};
    }

  private:
    T* data_ = nullptr;
    Index rows_ = 0;
    Index columns_ = 0;
};

/// Rows of equal length that it owns; rows can be added.
template <class T>
class Rows {
  public:
    Rows() = default;
    Rows(Index rows, Index columns, T value = T{})
        : values_(static_cast<std::size_t>(rows * columns), value),
          rows_(rows),
          columns_(columns) {}
    explicit Rows(Matrix<const T> view)
        : values_(view.data(), view.data() + view.rows() * view.columns()),
          rows_(view.rows()),
          columns_(view.columns()) {}
    explicit Rows(Matrix<T> view) : Rows(Matrix<const T>(view)) {}

    Index rows() const { return rows_; }
    Index columns() const { return columns_; }

    std::span<T> operator[](Index row) { return view()[row]; }
    std::span<const T> operator[](Index row) const { return view()[row]; }
    T& operator()(Index row, Index column) { return view()(row, column); }
    const T& operator()(Index row, Index column) const { return view()(row, column); }

    Matrix<T> view() { return {values_.data(), rows_, columns_}; }
    Matrix<const T> view() const { return {values_.data(), rows_, columns_}; }

    void append(std::span<const T> row) {
        assert(length(row) == columns_);
        values_.insert(values_.end(), row.begin(), row.end());
        ++rows_;
    }
    /// Keep the first rows.
    void shorten(Index rows) {
        assert(rows <= rows_);
        values_.resize(static_cast<std::size_t>(rows * columns_));
        rows_ = rows;
    }
    /// The rows of these numbers, in this order.
    Rows chosen(std::span<const Index> numbers) const {
        Rows out(0, columns_);
        out.values_.reserve(numbers.size() * static_cast<std::size_t>(columns_));
        for (const Index i : numbers) out.append((*this)[i]);
        return out;
    }
    /// The values, row by row; nothing is left behind.
    std::vector<T> release() && { return std::move(values_); }

  private:
    std::vector<T> values_;
    Index rows_ = 0;
    Index columns_ = 0;
};

/// Lists of different lengths, one after the other: list i is entry[start[i]] up to entry[start[i + 1]].
struct Lists {
    std::span<const Index> start;
    std::span<const Index> entry;

    Index count() const { return length(start) - 1; }
    std::span<const Index> operator[](Index i) const {
        return entry.subspan(static_cast<std::size_t>(start[i]), static_cast<std::size_t>(start[i + 1] - start[i]));
    }
};

/// A sparse matrix by rows (or columns), as scipy stores it.
struct Sparse {
    std::span<const Index> start;
    std::span<const Index> index;
    std::span<const double> value;

    Index count() const { return length(start) - 1; }
    Index length_of(Index row) const { return start[row + 1] - start[row]; }
    Lists pattern() const { return {start, index}; }
};

/// The numbers 0, 1, ..., n - 1.
inline std::vector<Index> numbers_up_to(Index n) {
    std::vector<Index> out(static_cast<std::size_t>(n));
    for (Index i = 0; i < n; ++i) out[i] = i;
    return out;
}

/// Numbers without a pattern are multiples of these, less their whole part.
constexpr double GOLDEN = 0.6180339887498949, ROOT_OF_TWO = 0.4142135623730951;

inline double fraction(double x) { return x - std::floor(x); }

/// Numbers in ascending order of their keys; equal keys keep the order of the numbers.
template <class Key>
std::vector<Index> stable_order(std::span<const Key> key) {
    std::vector<Index> order = numbers_up_to(length(key));
    std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return key[a] < key[b]; });
    return order;
}

}  // namespace cellguard

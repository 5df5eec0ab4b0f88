// The border to Python. Arrays enter as views, of exactly the type and shape that a function asks for (nothing is
// converted behind the caller's back), and leave as numpy arrays that own their memory. Everything behind the border
// is plain C++.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <memory>
#include <span>
#include <vector>

#include "arrays.hpp"

namespace cellguard {

namespace nb = nanobind;
using namespace nb::literals;

/// Other Python threads go on while a function works.
using Unlocked = nb::call_guard<nb::gil_scoped_release>;

/// Three dimensions: some matrices of one shape.
template <class T>
struct Stack {
    T* data = nullptr;
    Index count = 0;
    Index rows = 0;
    Index columns = 0;

    Matrix<T> operator[](Index i) const {
        assert(0 <= i && i < count);
        return {data + i * rows * columns, rows, columns};
    }
};

}  // namespace cellguard

namespace nanobind::detail {

using cellguard::Index;

/// Load an array without converting it.
template <class View, class T, class... Shape>
struct view_caster {
    using Array = ndarray<T, Shape..., c_contig, device::cpu>;

    NB_TYPE_CASTER(View, make_caster<Array>::Name)

    bool from_python(handle source, uint32_t flags, cleanup_list* cleanup) noexcept {
        if (!array_.from_python(source, flags & ~static_cast<uint32_t>(cast_flags::convert), cleanup)) return false;
        value = view_of(array_.value);
        return true;
    }

  private:
    static View view_of(const Array& a) {
        if constexpr (Array::Config::N == 1)
            return View(a.data(), a.shape(0));
        else if constexpr (Array::Config::N == 2)
            return View(a.data(), static_cast<Index>(a.shape(0)), static_cast<Index>(a.shape(1)));
        else
            return View{a.data(), static_cast<Index>(a.shape(0)), static_cast<Index>(a.shape(1)),
                        static_cast<Index>(a.shape(2))};
    }

    make_caster<Array> array_;  // keeps the array alive during the call
};

template <class T>
struct type_caster<std::span<T>> : view_caster<std::span<T>, T, ndim<1>> {};
template <class T>
struct type_caster<cellguard::Matrix<T>> : view_caster<cellguard::Matrix<T>, T, ndim<2>> {};
template <class T>
struct type_caster<cellguard::Stack<T>> : view_caster<cellguard::Stack<T>, T, ndim<3>> {};

/// Hand values over to numpy without copying them; flags become numpy's bool.
template <class T>
handle to_numpy(std::vector<T>&& values, std::initializer_list<size_t> shape, cleanup_list* cleanup) {
    using Element = std::conditional_t<std::is_same_v<T, char>, bool, T>;
    using Array = ndarray<numpy, Element>;
    auto owned = std::make_unique<std::vector<T>>(std::move(values));
    capsule owner(owned.get(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    auto* data = reinterpret_cast<Element*>(owned.release()->data());
    return make_caster<Array>::from_cpp(Array(data, shape.size(), shape.begin(), owner), rv_policy::automatic, cleanup);
}

template <class T>
struct type_caster<std::vector<T>> {
    using Element = std::conditional_t<std::is_same_v<T, char>, bool, T>;
    using Array = ndarray<numpy, Element, ndim<1>>;
    NB_TYPE_CASTER(std::vector<T>, make_caster<Array>::Name)

    static handle from_cpp(std::vector<T>&& values, rv_policy, cleanup_list* cleanup) {
        const size_t n = values.size();
        return to_numpy(std::move(values), {n}, cleanup);
    }
};

template <class T>
struct type_caster<cellguard::Rows<T>> {
    using Array = ndarray<numpy, T, ndim<2>>;
    NB_TYPE_CASTER(cellguard::Rows<T>, make_caster<Array>::Name)

    static handle from_cpp(cellguard::Rows<T>&& rows, rv_policy, cleanup_list* cleanup) {
        const auto height = static_cast<size_t>(rows.rows()), width = static_cast<size_t>(rows.columns());
        return to_numpy(std::move(rows).release(), {height, width}, cleanup);
    }
};

}  // namespace nanobind::detail

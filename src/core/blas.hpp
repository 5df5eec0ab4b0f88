// Matrix products by the BLAS that scipy brings along: no other library is needed, and its threads are set in one
// place.
#pragma once

#include "arrays.hpp"

namespace cellguard::blas {

/// Find the library; needs the interpreter's lock, once before the first product or solve.
void load();

/// C = A B'; rows of A times rows of B.
void multiply_by_rows(Matrix<const double> A, Matrix<const double> B, Matrix<double> C);

/// C = A B.
void multiply(Matrix<const double> A, Matrix<const double> B, Matrix<double> C);

/// Solve L L' x = b in place, where the upper triangle of the rows of `factor` is L'.
void solve_factored(Matrix<const double> factor, std::span<double> x);

}  // namespace cellguard::blas

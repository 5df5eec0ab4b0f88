#include "blas.hpp"

#include <nanobind/nanobind.h>

namespace cellguard::blas {

namespace {

using Dgemm = void (*)(const char*, const char*, const int*, const int*, const int*, const double*, const double*,
                       const int*, const double*, const int*, const double*, double*, const int*);
using Dpotrs = void (*)(const char*, const int*, const int*, const double*, const int*, double*, const int*, int*);

Dgemm dgemm = nullptr;
Dpotrs dpotrs = nullptr;

void* exported(const char* module, const char* name) {
    const nanobind::object functions = nanobind::module_::import_(module).attr("__pyx_capi__");
    const nanobind::object capsule = functions[name];
    void* found = PyCapsule_GetPointer(capsule.ptr(), PyCapsule_GetName(capsule.ptr()));
    if (found == nullptr) throw nanobind::python_error();
    return found;
}

// BLAS counts by columns: the transpose of a matrix that is stored by rows.
void run(char transposed, Matrix<const double> A, Matrix<const double> B, Matrix<double> C) {
    const int m = static_cast<int>(C.columns()), n = static_cast<int>(C.rows()), k = static_cast<int>(A.columns());
    const int ldb = static_cast<int>(B.columns());
    const char as_it_is = 'N';
    const double one = 1.0, zero = 0.0;
    if (m == 0 || n == 0 || k == 0) return;
    dgemm(&transposed, &as_it_is, &m, &n, &k, &one, B.data(), &ldb, A.data(), &k, &zero, C.data(), &m);
}

}  // namespace

void load() {
    if (dpotrs != nullptr) return;
    dgemm = reinterpret_cast<Dgemm>(exported("scipy.linalg.cython_blas", "dgemm"));
    dpotrs = reinterpret_cast<Dpotrs>(exported("scipy.linalg.cython_lapack", "dpotrs"));
}

void multiply_by_rows(Matrix<const double> A, Matrix<const double> B, Matrix<double> C) { run('T', A, B, C); }

void multiply(Matrix<const double> A, Matrix<const double> B, Matrix<double> C) { run('N', A, B, C); }

void solve_factored(Matrix<const double> factor, std::span<double> x) {
    const int n = static_cast<int>(factor.rows()), one = 1;
    const char lower = 'L';  // by columns
    int info = 0;
    if (n > 0) dpotrs(&lower, &n, &one, factor.data(), &n, x.data(), &n, &info);
}

}  // namespace cellguard::blas

#include "blas.hpp"

#include <nanobind/nanobind.h>

namespace cellguard::blas {

namespace {

using Dgemm = void (*)(const char*, const char*, const int*, const int*, const int*, const double*, const double*,
                       const int*, const double*, const int*, const double*, double*, const int*);

Dgemm dgemm = nullptr;

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
    if (dgemm != nullptr) return;
    const nanobind::object exported = nanobind::module_::import_("scipy.linalg.cython_blas").attr("__pyx_capi__");
    const nanobind::object capsule = exported["dgemm"];
    void* found = PyCapsule_GetPointer(capsule.ptr(), PyCapsule_GetName(capsule.ptr()));
    if (found == nullptr) throw nanobind::python_error();
    dgemm = reinterpret_cast<Dgemm>(found);
}

void multiply_by_rows(Matrix<const double> A, Matrix<const double> B, Matrix<double> C) { run('T', A, B, C); }

void multiply(Matrix<const double> A, Matrix<const double> B, Matrix<double> C) { run('N', A, B, C); }

}  // namespace cellguard::blas

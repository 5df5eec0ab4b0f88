// The module cellguard._core: a submodule for each subject.
#include <nanobind/nanobind.h>

namespace cellguard {

void bind_areas(nanobind::module_ m);
void bind_cholesky(nanobind::module_ m);
void bind_circuits(nanobind::module_ m);
void bind_echelon(nanobind::module_ m);
void bind_elimination(nanobind::module_ m);
void bind_factors(nanobind::module_ m);
void bind_flows(nanobind::module_ m);
void bind_gram(nanobind::module_ m);
void bind_interior(nanobind::module_ m);
void bind_mincut(nanobind::module_ m);
void bind_ordering(nanobind::module_ m);
void bind_patterns(nanobind::module_ m);
void bind_pile(nanobind::module_ m);
void bind_saddle(nanobind::module_ m);
void bind_schur(nanobind::module_ m);
void bind_senses(nanobind::module_ m);
void bind_top(nanobind::module_ m);
void bind_twoway(nanobind::module_ m);
void bind_unit_walks(nanobind::module_ m);
void bind_widest(nanobind::module_ m);
void bind_windows(nanobind::module_ m);
void bind_witnesses(nanobind::module_ m);

}  // namespace cellguard

NB_MODULE(_core, m) {
    using namespace cellguard;
    m.doc() = "Loops over arrays, built ahead of time.";
    bind_areas(m.def_submodule("areas", "Rounding by areas."));
    bind_cholesky(m.def_submodule("cholesky", "Sparse Cholesky factors."));
    bind_circuits(m.def_submodule("circuits", "Which variables determine another one."));
    bind_echelon(m.def_submodule("echelon", "Null spaces in echelon form, and the simplex method on them."));
    bind_elimination(m.def_submodule("elimination", "Exact elimination over a prime field."));
    bind_factors(m.def_submodule("factors", "Which relations run along the same dimension."));
    bind_flows(m.def_submodule("flows", "Cheapest flows and negative cycles."));
    bind_gram(m.def_submodule("gram", "The systems that the interior point solves."));
    bind_interior(m.def_submodule("interior", "Newton's steps of the interior point."));
    bind_mincut(m.def_submodule("mincut", "Flows around an arc, and narrowest cuts."));
    bind_ordering(m.def_submodule("ordering", "Minimum degree ordering."));
    bind_patterns(m.def_submodule("patterns", "Search over patterns."));
    bind_pile(m.def_submodule("pile", "Small movements piled up."));
    bind_saddle(m.def_submodule("saddle", "Steps of the primal-dual method."));
    bind_schur(m.def_submodule("schur", "The copies of a table in the range form."));
    bind_senses(m.def_submodule("senses", "Which way each cell goes, so that the totals above them move least."));
    bind_top(m.def_submodule("top", "The largest contributions."));
    bind_twoway(m.def_submodule("twoway", "Two-way tables of counts."));
    bind_unit_walks(m.def_submodule("unit_walks", "Movements in whole numbers, unit by unit."));
    bind_widest(m.def_submodule("widest", "Circuits as wide as can be."));
    bind_windows(m.def_submodule("windows", "Neighbourhoods of cells."));
    bind_witnesses(m.def_submodule("witnesses", "Which movement shows what a view must hold possible."));
}

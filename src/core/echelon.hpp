// Simplex for few degrees of freedom: a null space kept as a dense echelon form.
//
// The rows of a form are movements that span the space; each has a parameter of its own, a variable in which it is 1
// and the others 0. The form serves both to fix a variable at zero (eliminate: publish a cell) and as the tableau of
// the simplex method, which moves a variable as far as the others' bounds allow. A program takes microseconds where a
// call of a general solver takes milliseconds.
#pragma once

#include <span>
#include <vector>

#include "arrays.hpp"
#include "checks.hpp"
#include "watch.hpp"

namespace cellguard {

/// Movements in echelon form, a row each, and the variable that is the parameter of each.
struct Echelon {
    Matrix<double> movement;
    std::span<Index> parameter;

    Index count() const { return movement.rows(); }
    Index variables() const { return movement.columns(); }
    Echelon first(Index n) const { return {movement.first(n), parameter.first(static_cast<std::size_t>(n))}; }
};

inline Echelon checked(const Echelon& form) {
    require_length(form.parameter, form.count(), "parameter");
    require_indices(form.parameter, form.variables(), "parameter");
    return form;
}

/// The same, with its own memory.
struct OwnEchelon {
    Rows<double> movement;
    std::vector<Index> parameter;

    OwnEchelon() = default;
    OwnEchelon(Rows<double> movement, std::vector<Index> parameter)
        : movement(std::move(movement)),
          parameter(std::move(parameter)) {}
    explicit OwnEchelon(const Echelon& form)
        : movement(form.movement),
          parameter(form.parameter.begin(), form.parameter.end()) {}

    Echelon view() { return {movement.view(), parameter}; }
    void shorten(Index n) {
        movement.shorten(n);
        parameter.resize(static_cast<std::size_t>(n));
    }
};

/// Rows as they were before a change.
struct Before {
    std::vector<Index> row;
    Rows<double> value;
};

/// How far the variables of a movement may go.
struct Bounds {
    std::span<const double> low;
    std::span<const double> high;
};

/// Make variable i the parameter of movement j.
void pivot(const Echelon& form, Index i, Index j);

/// The movement with the largest coefficient of variable i: the one to eliminate with.
Index strongest(Matrix<const double> movement, Index i);

/// The largest coefficient of variable i: 0 when it cannot move.
double largest(Matrix<const double> movement, Index i);

/// Hold variable i fast; movement j is used up and becomes the last one, to be left out from now on.
/// Returns what the other movements that changed were.
Before eliminate(const Echelon& form, Index i, Index j);

/// Put back what some rows were.
void restore(Matrix<double> rows, const Before& before);

/// Independent movements that span the same space. A parameter is the variable with the largest coefficient, among
/// ties the first: a movement that small whole numbers describe stays one.
OwnEchelon echelon(Matrix<const double> vectors);

/// Move `sign * z[row]` up to the target, or as far as the bounds allow, or until the time is up; z changes in place.
///
/// z must be a feasible combination of the movements. Of the movements with the highest rates the one with the largest
/// gain enters. Bounds are widened by a hair, each by another, so that no two stop a movement at once; the result is
/// pulled back. What pivots change in the form is put back, and z is computed anew from it at the end, so that
/// rounding of the pivots cannot enter it. Returns the value reached, at most the target.
double push(const Echelon& form, std::span<double> z, const Bounds& bounds, Index row, double sign, double target,
            Watch& watch);

}  // namespace cellguard

// Newton's steps of the interior point (see cellguard._engine.closest.interior), all but the system between movers.
//
//     min   sum c v + 1/2 q v^2 + cost a + 1/2 curve a^2
//     s.t.  A v = 0,  sign v[mover] + lift a[aux] - slack = side,  slack >= 0
//
// Rows are bounds first, which have no auxiliary, then two rows for each paired auxiliary (k and k + n_pairs), then the
// rows of shared ones. Paired auxiliaries are eliminated here: a step of the movers is all that is asked from outside,
// and one of the few shared auxiliaries.
#include "border.hpp"
#include "checks.hpp"
#include "hot.hpp"

namespace cellguard {

namespace {

using Numbers = std::vector<double>;
using View = std::span<const double>;

Numbers copied(View values) { return {values.begin(), values.end()}; }

/// The longest step (up to 2) that keeps x + step dx at least 0.
CELLGUARD_HOT double longest_step(const double* x, const double* dx, Index n) {
    double least = -0.5;
#pragma omp simd reduction(min : least)
    for (Index i = 0; i < n; ++i) least = std::min(least, dx[i] / x[i]);
    return -1.0 / least;
}

CELLGUARD_HOT double product(const double* a, const double* b, Index n) {
    double total = 0.0;
#pragma omp simd reduction(+ : total)
    for (Index i = 0; i < n; ++i) total += a[i] * b[i];
    return total;
}

/// The product of what slacks and multipliers become after a step.
CELLGUARD_HOT double product_after(const double* s, const double* ds, double up, const double* y, const double* dy,
                                   double down, Index n) {
    double total = 0.0;
#pragma omp simd reduction(+ : total)
    for (Index i = 0; i < n; ++i) total += (s[i] + up * ds[i]) * (y[i] + down * dy[i]);
    return total;
}

/// (target - y part) / s: what a multiplier changes by when its row changes by `part`.
CELLGUARD_HOT void answered(double* out, const double* target, const double* y, const double* part, const double* s,
                            Index n) {
    for (Index i = 0; i < n; ++i) out[i] = (target[i] - y[i] * part[i]) / s[i];
}

/// Rows of one mover each: sign v[mover].
CELLGUARD_HOT void gathered(double* out, const double* sign, const double* v, const std::int32_t* mover, Index n) {
    for (Index i = 0; i < n; ++i) out[i] = sign[i] * v[mover[i]];
}

/// -s y + centre - ds dy: by how much the products of slack and multiplier shall grow.
CELLGUARD_HOT void growth(double* out, double centre, const double* s, const double* y, const double* ds,
                          const double* dy, Index n) {
    for (Index i = 0; i < n; ++i) out[i] = centre - s[i] * y[i] - ds[i] * dy[i];
}

CELLGUARD_HOT void moved(double* x, const double* dx, double step, Index n) {
    for (Index i = 0; i < n; ++i) x[i] += step * dx[i];
}

CELLGUARD_HOT bool all_finite(const double* x, Index n) {
    double nothing = 0.0;  // a sum of zeros, or NaN
#pragma omp simd reduction(+ : nothing)
    for (Index i = 0; i < n; ++i) nothing += x[i] * 0.0;
    return nothing == 0.0;
}

void require_finite(const Numbers& x) {
    if (!all_finite(x.data(), length(x))) throw std::overflow_error("beyond what can be computed with");
}

struct Program {
    Numbers linear, quadratic;
    std::vector<std::int32_t> mover;
    std::vector<Index> aux;
    Numbers sign, lift, side;
    Numbers cost, curve;  // of the auxiliaries
    Index first_pair, n_pairs;

    Index movers() const { return length(linear); }
    Index rows() const { return length(mover); }
    Index auxiliaries() const { return length(cost); }
    Index shared() const { return auxiliaries() - n_pairs; }
};

class Newton {
  public:
    explicit Newton(Program program)
        : p_(std::move(program)),
          primal_(p_.side.size()),
          theta_(p_.side.size(), 1.0),
          weight_(p_.side.size()),
          target_(p_.side.size()),
          ds_(p_.side.size()),
          dy_(p_.side.size()),
          force_(p_.linear.size()),
          dv_(p_.linear.size()),
          aux_force_(p_.cost.size()),
          da_(p_.cost.size()),
          h_(p_.cost.size()),
          pair_F_(static_cast<std::size_t>(p_.n_pairs), 1.0),
          pair_E_(static_cast<std::size_t>(p_.n_pairs)) {}

    /// Stand at a point; returns the sum of the products, the objective and the largest violation of a row.
    std::tuple<double, double, double> stand(View v, View a, View slack, View multiplier) {
        require_length(v, p_.movers(), "v");
        require_length(a, p_.auxiliaries(), "a");
        for (const auto& each : {slack, multiplier}) require_length(each, p_.rows(), "slack and multiplier");
        v_ = copied(v), a_ = copied(a), s_ = copied(slack), y_ = copied(multiplier);
        rows_of(v_, a_, primal_);
        double violation = 0.0, objective = 0.0;
        for (Index i = 0; i < p_.rows(); ++i) {
            primal_[i] -= s_[i] + p_.side[i];
            violation = std::max(violation, std::abs(primal_[i]) / std::max(1.0, std::abs(p_.side[i])));
        }
        movers_of(y_, force_);
        for (Index j = 0; j < p_.movers(); ++j) {
            objective += (p_.linear[j] + 0.5 * p_.quadratic[j] * v_[j]) * v_[j];
            force_[j] = p_.quadratic[j] * v_[j] + p_.linear[j] - force_[j];
        }
        auxiliaries_of(y_, aux_force_);
        for (Index k = 0; k < p_.auxiliaries(); ++k) {
            objective += (p_.cost[k] + 0.5 * p_.curve[k] * a_[k]) * a_[k];
            aux_force_[k] = p_.cost[k] + p_.curve[k] * a_[k] - aux_force_[k];
        }
        return {product(s_.data(), y_.data(), p_.rows()), objective, violation};
    }

    /// Give rows these weights; returns the diagonal between the movers, paired auxiliaries eliminated.
    Numbers condense(View theta) {
        require_length(theta, p_.rows(), "theta");
        theta_ = copied(theta);
        require_finite(theta_);
        Numbers diagonal(p_.quadratic);
        const Index k = p_.first_pair, P = p_.n_pairs;
        for (Index i = 0; i < k; ++i) diagonal[p_.mover[i]] += p_.sign[i] * p_.sign[i] * theta_[i];
        for (Index i = k + 2 * P; i < p_.rows(); ++i) diagonal[p_.mover[i]] += p_.sign[i] * p_.sign[i] * theta_[i];
        for (Index i = 0; i < P; ++i) {  // theta1 theta2 / (theta1 + theta2), without cancellation
            const Index one = k + i, two = one + P;
            const double s1 = p_.sign[one], k1 = p_.lift[one], t1 = theta_[one];
            const double s2 = p_.sign[two], k2 = p_.lift[two], t2 = theta_[two], across = s1 * k2 - s2 * k1;
            pair_F_[i] = k1 * k1 * t1 + k2 * k2 * t2 + p_.curve[i];
            pair_E_[i] = s1 * k1 * t1 + s2 * k2 * t2;
            const double left = t1 * t2 * across * across + p_.curve[i] * (s1 * s1 * t1 + s2 * s2 * t2);
            diagonal[p_.mover[one]] += left / pair_F_[i];
        }
        for (double& d : diagonal) d = std::max(d, 1e-300);
        require_finite(diagonal);
        return diagonal;
    }

    /// The right-hand sides (movers, shared auxiliaries) of a full step to where all products are 0.
    std::pair<Numbers, Numbers> predict() {
        require_point();
        for (Index i = 0; i < p_.rows(); ++i) target_[i] = -s_[i] * y_[i];
        return aim();
    }

    /// Those of the step towards the centre, by what the prediction that was followed has missed.
    std::pair<Numbers, Numbers> correct() {
        require_point();
        const Index n = p_.rows();
        const double up = longest_step(s_.data(), ds_.data(), n), down = longest_step(y_.data(), dy_.data(), n);
        const double now = product(s_.data(), y_.data(), n);
        const double left = product_after(s_.data(), ds_.data(), up, y_.data(), dy_.data(), down, n) / now;
        const double centre = left * left * left * now / static_cast<double>(n);
        growth(target_.data(), centre, s_.data(), y_.data(), ds_.data(), dy_.data(), n);
        return aim();
    }

    /// Those of the step that balances the forces.
    std::pair<Numbers, Numbers> balance() {
        require_point();
        Numbers g(force_.size());
        for (Index j = 0; j < p_.movers(); ++j) g[j] = -force_[j];
        for (Index k = 0; k < p_.auxiliaries(); ++k) h_[k] = -aux_force_[k];
        return eliminated(std::move(g));
    }

    /// Take movers and shared auxiliaries for the answer: slacks and multipliers follow.
    void follow(View dv, View shared) {
        answer(dv, shared);
        for (Index i = 0; i < p_.rows(); ++i) ds_[i] += primal_[i];
        answered(dy_.data(), target_.data(), y_.data(), ds_.data(), s_.data(), p_.rows());
    }

    /// The point after the step that was followed, cut so that a share `keep` of the way to a bound is gone at most.
    std::tuple<Numbers, Numbers, Numbers, Numbers> advance(double keep, bool together) {
        require_point();
        double up = std::min(1.0, keep * longest_step(s_.data(), ds_.data(), p_.rows()));
        double down = std::min(1.0, keep * longest_step(y_.data(), dy_.data(), p_.rows()));
        if (together) up = down = std::min(up, down);
        moved(v_.data(), dv_.data(), up, p_.movers());
        moved(a_.data(), da_.data(), up, p_.auxiliaries());
        moved(s_.data(), ds_.data(), up, p_.rows());
        moved(y_.data(), dy_.data(), down, p_.rows());
        for (const Numbers* each : {&v_, &a_, &s_, &y_}) require_finite(*each);
        return {v_, a_, s_, y_};
    }

    /// What the multipliers change by with the step that balances them.
    Numbers balanced(View dv, View shared) {
        answer(dv, shared);
        Numbers step(p_.side.size());
        for (Index i = 0; i < p_.rows(); ++i) step[i] = -theta_[i] * ds_[i];
        return step;
    }

  private:
    void require_point() const { require(!v_.empty() || p_.movers() == 0, "no point has been set yet"); }

    /// G x of the rows.
    void rows_of(const Numbers& v, const Numbers& a, Numbers& out) const {
        gathered(out.data(), p_.sign.data(), v.data(), p_.mover.data(), p_.rows());
        for (Index i = p_.first_pair; i < p_.rows(); ++i) out[i] += p_.lift[i] * a[p_.aux[i]];
    }

    /// G' w, the part on the movers.
    void movers_of(const Numbers& w, Numbers& out) const {
        std::fill(out.begin(), out.end(), 0.0);
        for (Index i = 0; i < p_.rows(); ++i) out[p_.mover[i]] += p_.sign[i] * w[i];
    }

    /// G' w, the part on the auxiliaries.
    void auxiliaries_of(const Numbers& w, Numbers& out) const {
        std::fill(out.begin(), out.end(), 0.0);
        for (Index i = p_.first_pair; i < p_.rows(); ++i) out[p_.aux[i]] += p_.lift[i] * w[i];
    }

    /// Right-hand sides of Newton's step towards products that are larger by the target.
    std::pair<Numbers, Numbers> aim() {
        answered(weight_.data(), target_.data(), y_.data(), primal_.data(), s_.data(), p_.rows());
        Numbers g(force_.size());
        movers_of(weight_, g);
        for (Index j = 0; j < p_.movers(); ++j) g[j] -= force_[j];
        auxiliaries_of(weight_, h_);
        for (Index k = 0; k < p_.auxiliaries(); ++k) h_[k] -= aux_force_[k];
        return eliminated(std::move(g));
    }

    std::pair<Numbers, Numbers> eliminated(Numbers g) const {
        for (Index i = 0; i < p_.n_pairs; ++i) g[p_.mover[p_.first_pair + i]] -= pair_E_[i] * h_[i] / pair_F_[i];
        require_finite(g);
        return {std::move(g), Numbers(h_.begin() + p_.n_pairs, h_.end())};
    }

    /// Auxiliaries and rows that belong to a step of the movers.
    void answer(View dv, View shared) {
        require_length(dv, p_.movers(), "dv");
        require_length(shared, p_.shared(), "shared");
        std::copy(dv.begin(), dv.end(), dv_.begin());
        for (Index i = 0; i < p_.n_pairs; ++i)
            da_[i] = (h_[i] - pair_E_[i] * dv_[p_.mover[p_.first_pair + i]]) / pair_F_[i];
        std::copy(shared.begin(), shared.end(), da_.begin() + p_.n_pairs);
        rows_of(dv_, da_, ds_);
    }

    Program p_;
    Numbers v_, a_, s_, y_;  // the point
    Numbers primal_;  // what the rows miss
    Numbers theta_, weight_, target_;
    Numbers ds_, dy_;
    Numbers force_, dv_;
    Numbers aux_force_, da_, h_;
    Numbers pair_F_, pair_E_;
};

Program checked(Program p) {
    const Index m = p.rows(), k = p.first_pair, P = p.n_pairs;
    require_length(std::span(p.quadratic), p.movers(), "quadratic");
    require_length(std::span(p.aux), m, "aux");
    for (const Numbers* each : {&p.sign, &p.lift, &p.side}) require_length(std::span(*each), m, "sign, lift and side");
    require_length(std::span(p.curve), p.auxiliaries(), "curve");
    require(0 <= k && 0 <= P && P <= p.auxiliaries() && P <= m && k <= m - 2 * P, "pairs must be rows and auxiliaries");
    for (Index i = k; i < m; ++i) {
        require_index(p.aux[i], p.auxiliaries(), "aux");
        if (i < k + 2 * P) {
            require(p.aux[i] == (i - k) % std::max<Index>(P, 1), "a pair's auxiliary is its own");
            require(p.mover[i] == p.mover[k + (i - k) % std::max<Index>(P, 1)], "a pair has one mover");
        }
    }
    return p;
}

}  // namespace

void bind_interior(nb::module_ m) {
    using Whole = std::span<const Index>;
    m.def(
        "longest_step",
        [](View x, View dx) {
            require(length(x) == length(dx), "a step must have as many entries as what it moves");
            return longest_step(x.data(), dx.data(), length(x));
        },
        "x"_a, "dx"_a);
    nb::class_<Newton>(m, "Newton")
        .def(
            "__init__",
            [](Newton* self, View linear, View quadratic, std::pair<Whole, Whole> places,
               std::tuple<View, View, View> rows, std::pair<View, View> auxiliaries, std::pair<Index, Index> pairs) {
                const auto& [mover, aux] = places;
                const auto& [sign, lift, side] = rows;
                require(length(linear) < std::numeric_limits<std::int32_t>::max(), "too many movers");
                require_indices(mover, length(linear), "mover");
                new (self) Newton(checked({.linear = copied(linear),
                                           .quadratic = copied(quadratic),
                                           .mover = {mover.begin(), mover.end()},
                                           .aux = {aux.begin(), aux.end()},
                                           .sign = copied(sign),
                                           .lift = copied(lift),
                                           .side = copied(side),
                                           .cost = copied(auxiliaries.first),
                                           .curve = copied(auxiliaries.second),
                                           .first_pair = pairs.first,
                                           .n_pairs = pairs.second}));
            },
            "linear"_a, "quadratic"_a, "places"_a, "rows"_a, "auxiliaries"_a, "pairs"_a)
        .def("stand", &Newton::stand, "v"_a, "a"_a, "slack"_a, "multiplier"_a)
        .def("condense", &Newton::condense, "theta"_a)
        .def("predict", &Newton::predict)
        .def("correct", &Newton::correct)
        .def("balance", &Newton::balance)
        .def("follow", &Newton::follow, "dv"_a, "shared"_a)
        .def("advance", &Newton::advance, "keep"_a, "together"_a)
        .def("balanced", &Newton::balanced, "dv"_a, "shared"_a);
}

}  // namespace cellguard

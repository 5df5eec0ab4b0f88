// Search over patterns: publish classes of cells while every request keeps its witnesses.
//
// Variables are classes of cells that can only move together; a pattern is a space of movements, in echelon form. A
// request asks that a variable can be moved down, up, and in all by so much, inside the bounds of an attacker. A few
// movements (the bank), each stretched as far as the bounds allow, serve as witnesses of most requests; the simplex
// method finds the others.
#include <cmath>
#include <limits>

#include "border.hpp"
#include "echelon.hpp"
#include "hot.hpp"

namespace cellguard {

namespace {

constexpr double INF = std::numeric_limits<double>::infinity();
constexpr double ZERO = 1e-7;  // coefficients of an echelon form below this are rounding
constexpr double NEAR = 1.0 - 1e-7;
constexpr double ROUNDING = 1e-13;
constexpr double CANCELLED = 1e-6;  // a difference so much smaller than its terms is rounding: stretching blows it up
constexpr Index MANY_FREE = 40;  // movements beyond which classes are spared by the dozen
constexpr Index TOGETHER = 8, MOST_TOGETHER = 64;
constexpr Index SMALL = 200'000;  // numbers in a bank that are moved at no cost worth a thought

// States of a variable.
constexpr Index OPEN = 0, STAYS = 1, PUBLISHED = 2;

using Movement = std::span<const double>;
using Bank = Rows<double>;

/// What attackers know besides: where each one's entries begin, their variables, and bounds of their movements.
struct Known {
    std::span<const Index> start;
    std::span<const Index> variable;
    std::span<const double> low;
    std::span<const double> high;
};

/// How far down, up and in all a variable must be able to move, against an attacker.
struct Requests {
    std::span<const Index> attacker;
    std::span<const Index> variable;
    std::span<const double> down;
    std::span<const double> up;
    std::span<const double> slide;

    Index count() const { return length(variable); }
};

/// What is asked of the movements of a space.
struct Task {
    Bounds bounds;
    Known known;
    Requests requests;
};

/// How far each request is met so far.
struct Reached {
    std::span<double> down;
    std::span<double> up;
};

struct OwnReached {
    std::vector<double> down, up;

    explicit OwnReached(Index n) : down(static_cast<std::size_t>(n), 0.0), up(static_cast<std::size_t>(n), 0.0) {}
    Reached view() { return {down, up}; }
};

/// Multiples of a movement that the bounds allow, backward and forward.
struct Stretch {
    double backward = INF;
    double forward = INF;

    void tighten(double coefficient, double low, double high) {
        if (coefficient > 0.0) {
            forward = std::min(forward, high / coefficient);
            backward = std::min(backward, -low / coefficient);
        } else if (coefficient < 0.0) {
            forward = std::min(forward, low / coefficient);
            backward = std::min(backward, -high / coefficient);
        }
    }
};

Stretch stretch(Movement z, const Bounds& bounds) {
    Stretch out;
    for (Index i = 0; i < length(z); ++i) out.tighten(z[i], bounds.low[i], bounds.high[i]);
    return out;
}

bool is_met(Index r, const Requests& requests, const Reached& got) {
    return got.up[r] >= requests.up[r] * NEAR && got.down[r] >= requests.down[r] * NEAR &&
           got.up[r] + got.down[r] >= requests.slide[r] * NEAR;
}

/// Raise what is reached for request r; returns whether that helped, for it was not met before.
bool raise(Index r, double down, double up, const Requests& requests, const Reached& got) {
    if (up <= got.up[r] && down <= got.down[r]) return false;
    const bool helped = !is_met(r, requests, got);
    got.up[r] = std::max(up, got.up[r]);
    got.down[r] = std::max(down, got.down[r]);
    return helped;
}

/// Raise what is reached for every request by a movement, stretched; returns whether that helped one.
bool count(Movement z, const Task& task, const Reached& got) {
    const auto& [bounds, known, requests] = task;
    const Stretch common = stretch(z, bounds);
    Stretch own = common;
    Index last = -1;
    bool helped = false;
    for (Index r = 0; r < requests.count(); ++r) {
        const double v = z[requests.variable[r]];
        if (v == 0.0) continue;
        const Index attacker = requests.attacker[r];
        if (attacker != last) {
            own = common;
            last = attacker;
            for (Index q = known.start[attacker]; q < known.start[attacker + 1]; ++q)
                own.tighten(z[known.variable[q]], known.low[q], known.high[q]);
        }
        const double up = v > 0.0 ? own.forward * v : own.backward * -v;
        const double down = v > 0.0 ? own.backward * v : own.forward * -v;
        helped = raise(r, down, up, requests, got) || helped;
    }
    return helped;
}

/// Bounds of an attacker: the common ones, tightened by what he knows.
struct OwnBounds {
    std::vector<double> low, high;

    OwnBounds(Index attacker, const Bounds& common, const Known& known)
        : low(common.low.begin(), common.low.end()),
          high(common.high.begin(), common.high.end()) {
        for (Index q = known.start[attacker]; q < known.start[attacker + 1]; ++q) {
            const Index i = known.variable[q];
            low[i] = std::max(low[i], known.low[q]);
            high[i] = std::min(high[i], known.high[q]);
        }
    }
    Bounds view() const { return {low, high}; }
};

// ---------------------------------------------------------------- witnesses

/// Move variable i by `need` in the direction of `sign`. The movement of the bank that gets furthest is the start; the
/// simplex method goes on from there.
std::vector<double> aim(const Echelon& form, Index i, double sign, double need, const Bounds& bounds, const Bank& bank,
                        Watch& watch) {
    std::vector<double> z(static_cast<std::size_t>(form.variables()), 0.0);
    double best = 0.0;
    for (Index q = 0; q < bank.rows() && best < need; ++q) {
        const Movement start = bank[q];
        if (start[i] == 0.0) continue;
        const Stretch far = stretch(start, bounds);
        const double t = sign * start[i] > 0 ? far.forward : -far.backward;
        if (std::abs(t * start[i]) > best) {
            best = std::abs(t * start[i]);
            for (Index k = 0; k < length(z); ++k) z[k] = t * start[k];
        }
    }
    if (best > need) {
        for (double& v : z) v *= need / best;
    }
    if (best < need * NEAR) push(form, z, bounds, i, sign, need, watch);
    return z;
}

/// Meet every request, in the given order, with the movements of the bank, whose reach is known; what is missing is
/// added. The search ends when so many as `patience` cannot be met, or when the time is up. Returns which failed.
Flags meet(const Echelon& form, const Task& task, Bank& bank, std::span<const Index> order, Index patience,
           const Reached& got, Watch& watch) {
    const Requests& requests = task.requests;
    Flags failed(static_cast<std::size_t>(requests.count()), 0);
    for (const Index r : order) {
        if (is_met(r, requests, got)) continue;
        if (watch.over()) {  // what was not looked at counts as not met
            failed[r] = 1;
            continue;
        }
        const OwnBounds bounds(requests.attacker[r], task.bounds, task.known);
        for (const double sign : {1.0, -1.0}) {
            const bool upward = sign > 0, narrow = got.up[r] + got.down[r] < requests.slide[r] * NEAR;
            const double level = upward ? requests.up[r] : requests.down[r];
            const double rest = requests.slide[r] - (upward ? requests.down[r] : got.up[r]);
            const double need = std::max(level, narrow ? rest : 0.0);
            if ((upward ? got.up[r] : got.down[r]) >= need * NEAR) continue;
            bank.append(aim(form, requests.variable[r], sign, need, bounds.view(), bank, watch));
            count(std::as_const(bank)[bank.rows() - 1], task, got);
        }
        if (is_met(r, requests, got)) continue;
        failed[r] = 1;
        if (--patience == 0) break;
    }
    return failed;
}

/// The same, when it is not known yet what the bank reaches.
Flags prove(const Echelon& form, const Task& task, Bank& bank, Index patience, Watch& watch) {
    OwnReached got(task.requests.count());
    for (Index q = 0; q < bank.rows(); ++q) count(bank[q], task, got.view());
    return meet(form, task, bank, numbers_up_to(task.requests.count()), patience, got.view(), watch);
}

bool any(const Flags& flags) { return std::find(flags.begin(), flags.end(), 1) != flags.end(); }

Index first_of(const Flags& flags) { return std::find(flags.begin(), flags.end(), 1) - flags.begin(); }

// ---------------------------------------------------------------- what a bank reaches

/// How far a movement serves a request.
struct Hit {
    Index request;
    double down, up;
};

/// Which requests each movement of a bank serves.
class Hits {
  public:
    explicit Hits(const Task& task) : task_(task), scratch_(task.requests.count()) {}

    /// Write down what one movement of the bank serves.
    void write(const Bank& bank, Index q) {
        if (q >= length(of_)) of_.resize(static_cast<std::size_t>(q + 1));
        of_[q].clear();
        count(bank[q], task_, scratch_.view());
        for (Index r = 0; r < task_.requests.count(); ++r) {
            if (scratch_.down[r] > 0.0 || scratch_.up[r] > 0.0) {
                of_[q].push_back({r, scratch_.down[r], scratch_.up[r]});
                scratch_.down[r] = scratch_.up[r] = 0.0;
            }
        }
    }
    void write_all(const Bank& bank) {
        for (Index q = 0; q < bank.rows(); ++q) write(bank, q);
    }

    /// What the bank reaches when what is written of some movements no longer holds.
    OwnReached reached(const Bank& bank, std::span<const Index> changed) const {
        OwnReached out(task_.requests.count());
        Flags holds(static_cast<std::size_t>(bank.rows()), 1);
        for (const Index q : changed) holds[q] = 0;
        for (Index q = 0; q < bank.rows(); ++q) {
            if (!holds[q]) {
                count(bank[q], task_, out.view());
                continue;
            }
            for (const Hit& hit : of_[q]) {
                out.down[hit.request] = std::max(out.down[hit.request], hit.down);
                out.up[hit.request] = std::max(out.up[hit.request], hit.up);
            }
        }
        return out;
    }

    /// Keep of a bank the movements that reach further than those before them, latest first.
    void keep_useful(Bank& bank) {
        OwnReached got(task_.requests.count());
        std::vector<Index> kept;
        std::vector<std::vector<Hit>> theirs;
        for (Index q = bank.rows() - 1; q >= 0; --q) {
            bool helped = false;
            for (const Hit& hit : of_[q])
                helped = raise(hit.request, hit.down, hit.up, task_.requests, got.view()) || helped;
            if (!helped) continue;
            kept.push_back(q);
            theirs.push_back(std::move(of_[q]));
        }
        bank = bank.chosen(kept);
        of_ = std::move(theirs);
    }

  private:
    const Task& task_;
    OwnReached scratch_;
    std::vector<std::vector<Hit>> of_;
};

// ---------------------------------------------------------------- cleaning

/// target - factor * source where the difference is more than rounding; returns the largest difference.
CELLGUARD_HOT double subtract_large(std::span<double> target, std::span<const double> source, double factor) {
    double size = 0.0, left = 0.0;
    for (std::size_t k = 0; k < target.size(); ++k)
        size = std::max(size, std::max(std::abs(target[k]), std::abs(factor * source[k])));
    for (std::size_t k = 0; k < target.size(); ++k) {
        const double v = target[k] - factor * source[k];
        target[k] = std::abs(v) > size * ROUNDING ? v : 0.0;
        left = std::max(left, std::abs(v));
    }
    return left < size * CANCELLED ? 0.0 : left;
}

/// Take their part in variable i from the movements of a bank; returns what those that changed were.
Before without(Bank& bank, std::span<const double> used, Index i) {
    Before before{{}, Rows<double>(0, bank.columns())};
    for (Index q = 0; q < bank.rows(); ++q) {
        const double part = bank(q, i);
        if (part == 0.0) continue;
        before.row.push_back(q);
        before.value.append(bank[q]);
        if (subtract_large(bank[q], used, part / used[i]) == 0.0)
            std::fill(bank[q].begin(), bank[q].end(), 0.0);
        else
            bank(q, i) = 0.0;
    }
    return before;
}

void clear_column(Bank& bank, Index i) {
    for (Index q = 0; q < bank.rows(); ++q) bank(q, i) = 0.0;
}

/// Classes of parallel variables.
struct Classes {
    std::vector<Index> label;  // of each variable; -1 when it cannot move
    std::vector<double> total;  // weight of each class
    Flags may;  // whether it may be published

    Index first_member(Index c) const { return std::find(label.begin(), label.end(), c) - label.begin(); }
};

CELLGUARD_HOT void add_combinations(std::span<const double> row, double first, double second, std::span<double> f,
                                    std::span<double> g, std::span<double> size) {
    for (std::size_t i = 0; i < row.size(); ++i) {
        f[i] += first * row[i];
        g[i] += second * row[i];
        size[i] = std::max(size[i], std::abs(row[i]));
    }
}

/// Two combinations f and g of the movements are proportional for parallel variables; it takes a coincidence of 1e-11
/// to confuse others. The factors are numbers without a pattern.
Classes classes(Matrix<const double> Z, std::span<const double> weight, std::span<const Index> state) {
    const auto m = static_cast<std::size_t>(Z.columns());
    std::vector<double> f(m, 0.0), g(m, 0.0), size(m, 0.0), slope(m);
    for (Index k = 0; k < Z.rows(); ++k) {
        const auto n = static_cast<double>(k + 1);
        add_combinations(Z[k], 0.5 + fraction(n * GOLDEN), 0.5 + fraction(n * ROOT_OF_TWO), f, g, size);
    }
    std::vector<Index> order;
    for (std::size_t i = 0; i < m; ++i) {
        slope[i] = g[i] == 0.0 ? INF : f[i] / g[i];
        if (size[i] > ZERO && !std::isnan(slope[i])) order.push_back(static_cast<Index>(i));
    }
    std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return slope[a] < slope[b]; });
    // the sine of the angle between two directions, as far as it matters
    const auto are_apart = [&](Index a, Index b) {
        return std::abs(f[a] * g[b] - f[b] * g[a]) > 1e-11 * std::abs(f[a] * f[b] + g[a] * g[b]);
    };
    Classes out{std::vector<Index>(m, -1), {}, {}};
    Index last = -1;
    for (const Index i : order) {
        if (last < 0 || are_apart(last, i)) {
            out.total.push_back(0.0);
            out.may.push_back(1);
        }
        last = i;
        out.label[i] = length(out.total) - 1;
        out.total.back() += weight[i];
        if (state[i] == STAYS) out.may.back() = 0;
    }
    return out;
}

std::vector<Index> falling_order(std::span<const double> key) {
    std::vector<double> negative(key.begin(), key.end());
    for (double& v : negative) v = -v;
    return stable_order<double>(negative);
}

struct Limits {
    double stop_above;  // give up once the weight that must stay is larger than this
    Index tries;  // stop after so many classes; another call goes on
};

/// Publishes the heaviest class that can be spared, until none can.
class Cleaning {
  public:
    Cleaning(OwnEchelon form, Bank bank, std::vector<Index> state, std::span<const double> weight, const Task& task,
             Limits limits, std::span<double> trouble, Watch& watch)
        : form(std::move(form)),
          bank(std::move(bank)),
          state(std::move(state)),
          weight_(weight),
          task_(task),
          limits_(limits),
          trouble_(trouble),
          watch_(watch),
          hits_(task) {
        hits_.write_all(this->bank);
        most_ = allowance();
    }

    /// Returns whether all classes were tried.
    bool run() {
        bool late = false;
        while (form.movement.rows() > 0 && stuck_ <= limits_.stop_above && limits_.tries > 0) {
            late = watch_.over();
            if (late) break;
            Classes found = classes(form.movement.view(), weight_, state);
            for (const Index i : task_.requests.variable) {  // what is parallel to a request cannot be published
                if (found.label[i] >= 0) found.may[found.label[i]] = 0;
            }
            // in a large space most classes can be spared: many at once
            const bool goes_on =
                together_ > 1 && form.movement.rows() > MANY_FREE ? spare_many(found) : spare_one(found);
            if (!goes_on) break;
        }
        publish_fixed([&](Index i) { return state[i] != PUBLISHED; });
        hits_.keep_useful(bank);
        return limits_.tries > 0 && !late;
    }

    OwnEchelon form;
    Bank bank;
    std::vector<Index> state;

  private:
    Index allowance() const { return bank.rows() + bank.rows() / 4 + 16; }

    /// Variables of a kind that can no longer move are published.
    template <class Kind>
    void publish_fixed(Kind is_of_kind) {
        for (Index i = 0; i < length(state); ++i) {
            if (!is_of_kind(i) || largest(form.movement.view(), i) > ZERO) continue;
            state[i] = PUBLISHED;
            clear_column(bank, i);
        }
    }

    void tidy_bank() {
        hits_.keep_useful(bank);
        most_ = allowance();
    }

    /// Try to spare the heaviest classes at once; returns false when there is none.
    bool spare_many(const Classes& found) {
        std::vector<double> total(found.total.size());
        for (std::size_t c = 0; c < total.size(); ++c) total[c] = found.may[c] ? found.total[c] : 0.0;
        std::vector<Index> some = falling_order(total);
        some.resize(std::min(some.size(), static_cast<std::size_t>(together_)));
        std::erase_if(some, [&](Index c) { return !(total[c] > 0.0); });
        if (some.empty()) return false;
        --limits_.tries;
        OwnEchelon fewer = form;
        Bank moved = bank;
        hold_fast(fewer, moved, found, some);
        OwnReached got(task_.requests.count());
        for (Index q = 0; q < moved.rows(); ++q) count(std::as_const(moved)[q], task_, got.view());
        const Flags failed = meet(fewer.view(), task_, moved, falling_order(trouble_), 1, got.view(), watch_);
        if (any(failed)) {
            trouble_[first_of(failed)] += 1.0;
            together_ /= 2;
            return true;
        }
        together_ = std::min(2 * together_, MOST_TOGETHER);
        form = std::move(fewer);
        bank = std::move(moved);
        publish_fixed([&](Index i) { return state[i] == OPEN; });
        hits_.write_all(bank);
        tidy_bank();
        return true;
    }

    static void hold_fast(OwnEchelon& form, Bank& bank, const Classes& found, std::span<const Index> some) {
        for (const Index c : some) {
            const Index i = found.first_member(c), last = form.movement.rows() - 1;
            if (last < 0 || !(largest(form.movement.view(), i) > ZERO)) continue;
            eliminate(form.view(), i, strongest(form.movement.view(), i));
            without(bank, form.movement[last], i);
            form.shorten(last);
        }
    }

    /// Spare the heaviest class that can be; returns false when none can, or the limits were reached.
    bool spare_one(const Classes& found) {
        for (const Index c : falling_order(found.total)) {
            if (!found.may[c] || !(found.total[c] > 0.0)) continue;
            --limits_.tries;
            if (try_without(found, c)) return true;
            stuck_ += found.total[c];
            for (Index q = 0; q < length(state); ++q) {
                if (found.label[q] == c) state[q] = STAYS;
            }
            if (stuck_ > limits_.stop_above || limits_.tries == 0 || watch_.over()) return false;
        }
        return false;
    }

    /// Hold a class fast; if a request cannot be met then, everything is put back.
    bool try_without(const Classes& found, Index c) {
        const Index i = found.first_member(c), n = bank.rows(), last = form.movement.rows() - 1;
        const Before rows = eliminate(form.view(), i, strongest(form.movement.view(), i));
        const Before moved = without(bank, form.movement[last], i);
        OwnReached got = hits_.reached(bank, moved.row);
        // the likeliest to fail first
        const Flags failed = meet(form.view().first(last), task_, bank, falling_order(trouble_), 1, got.view(), watch_);
        if (any(failed)) {
            bank.shorten(n);
            restore(form.movement.view(), rows);
            restore(bank.view(), moved);
            trouble_[first_of(failed)] += 1.0;
            return false;
        }
        form.shorten(last);
        together_ = 2;
        publish_fixed([&](Index q) { return found.label[q] == c; });
        for (const Index q : moved.row) hits_.write(bank, q);
        for (Index q = n; q < bank.rows(); ++q) hits_.write(bank, q);
        if (bank.rows() > most_ || bank.rows() * bank.columns() < SMALL) tidy_bank();
        return true;
    }

    std::span<const double> weight_;
    const Task& task_;
    Limits limits_;
    std::span<double> trouble_;
    Watch& watch_;
    Hits hits_;
    double stuck_ = 0.0;
    Index together_ = TOGETHER;
    Index most_ = 0;
};

// ---------------------------------------------------------------- recombination

/// A task restricted to some variables, the others being at rest.
class Restriction {
  public:
    Restriction(const Task& whole, std::span<const Index> here, Index m)
        : number_(static_cast<std::size_t>(m), -1),
          task_(whole) {
        for (Index q = 0; q < length(here); ++q) {
            number_[here[q]] = q;
            low_.push_back(whole.bounds.low[here[q]]);
            high_.push_back(whole.bounds.high[here[q]]);
        }
        for (const Index i : whole.requests.variable) {
            requested_.push_back(number_[i]);
            covers_ = covers_ && number_[i] >= 0;
        }
        const Known& known = whole.known;
        start_.push_back(0);
        for (Index k = 0; k + 1 < length(known.start); ++k) {
            for (Index q = known.start[k]; q < known.start[k + 1]; ++q) {
                if (number_[known.variable[q]] < 0) continue;
                known_.push_back(number_[known.variable[q]]);
                known_low_.push_back(known.low[q]);
                known_high_.push_back(known.high[q]);
            }
            start_.push_back(length(known_));
        }
        task_.bounds = {low_, high_};
        task_.known = {start_, known_, known_low_, known_high_};
        task_.requests.variable = requested_;
    }
    Restriction(const Restriction&) = delete;
    Restriction& operator=(const Restriction&) = delete;

    /// Whether the variables of all requests are among them.
    bool covers_requests() const { return covers_; }
    const Task& task() const { return task_; }

  private:
    std::vector<Index> number_, requested_, start_, known_;
    std::vector<double> low_, high_, known_low_, known_high_;
    bool covers_ = true;
    Task task_;
};

Rows<double> columns_of(Matrix<const double> rows, std::span<const Index> here) {
    Rows<double> out(rows.rows(), length(here));
    for (Index k = 0; k < rows.rows(); ++k) {
        for (Index q = 0; q < length(here); ++q) out(k, q) = rows(k, here[q]);
    }
    return out;
}

Rows<double> spread(const Rows<double>& rows, std::span<const Index> here, Index m) {
    Rows<double> out(rows.rows(), m);
    for (Index k = 0; k < rows.rows(); ++k) {
        for (Index q = 0; q < length(here); ++q) out(k, here[q]) = rows(k, q);
    }
    return out;
}

template <class T>
std::vector<T> taken(std::span<const T> values, std::span<const Index> here) {
    std::vector<T> out;
    out.reserve(here.size());
    for (const Index i : here) out.push_back(values[i]);
    return out;
}

struct Recombined {
    double cost;
    Rows<double> movement;
    Bank bank;
};

/// Clean the space that some movements span. Only the variables that move are looked at. An infinite cost when the
/// requests cannot be met or the cost is above `stop_above`.
Recombined recombine(Matrix<const double> vectors, std::span<const double> weight, std::span<const double> noisy,
                     std::span<const bool> keep, const Task& whole, Matrix<const double> bank, double stop_above,
                     Watch& watch) {
    const Index m = vectors.columns();
    const Recombined nothing{INF, Rows<double>(0, m), Bank(0, m)};
    Flags moves(static_cast<std::size_t>(m), 0);
    for (Index k = 0; k < vectors.rows(); ++k) {
        for (Index i = 0; i < m; ++i) moves[i] |= vectors(k, i) != 0.0;
    }
    std::vector<Index> here;
    for (Index i = 0; i < m; ++i) {
        if (moves[i]) here.push_back(i);
    }
    const Restriction inside(whole, here, m);
    if (!inside.covers_requests()) return nothing;
    OwnEchelon form = echelon(columns_of(vectors, here).view());
    Bank witnesses = columns_of(bank, here);
    if (any(prove(form.view(), inside.task(), witnesses, 1, watch))) return nothing;
    std::vector<Index> state;
    for (const Index i : here) state.push_back(keep[i] ? STAYS : OPEN);
    const std::vector<double> order = taken(noisy, here);
    std::vector<double> trouble(static_cast<std::size_t>(whole.requests.count()), 0.0);
    Cleaning cleaning(std::move(form), std::move(witnesses), std::move(state), order, inside.task(),
                      {stop_above, Index{1} << 40}, trouble, watch);
    cleaning.run();
    double cost = 0.0;
    for (Index q = 0; q < length(here); ++q) {
        if (cleaning.state[q] != PUBLISHED) cost += weight[here[q]];
    }
    return {cost, spread(cleaning.form.movement, here, m), spread(cleaning.bank, here, m)};
}

// ---------------------------------------------------------------- Python

using KnownArrays =
    std::tuple<std::span<const Index>, std::span<const Index>, std::span<const double>, std::span<const double>>;
using RequestArrays = std::tuple<std::span<const Index>, std::span<const Index>, std::span<const double>,
                                 std::span<const double>, std::span<const double>>;

Bounds checked_bounds(std::span<const double> low, std::span<const double> high, Index m) {
    require_length(low, m, "low");
    require_length(high, m, "high");
    return {low, high};
}

Task checked_task(std::span<const double> low, std::span<const double> high, const KnownArrays& known_arrays,
                  const RequestArrays& request_arrays, Index m) {
    const auto known = std::make_from_tuple<Known>(known_arrays);
    const auto requests = std::make_from_tuple<Requests>(request_arrays);
    require_pointers(known.start, length(known.variable), "known");
    require_indices(known.variable, m, "known");
    require_length(known.low, length(known.variable), "known");
    require_length(known.high, length(known.variable), "known");
    require_indices(requests.variable, m, "requests");
    require_length(requests.attacker, requests.count(), "requests");
    require_indices(requests.attacker, length(known.start) - 1, "attackers of the requests");
    for (const auto& level : {requests.down, requests.up, requests.slide})
        require_length(level, requests.count(), "requests");
    return {checked_bounds(low, high, m), known, requests};
}

Matrix<const double> checked_bank(Matrix<const double> bank, Index m) {
    require(bank.columns() == m, "the movements of the bank have another number of variables");
    return bank;
}

Reached checked_reached(std::span<double> down, std::span<double> up, Index n) {
    require_length(down, n, "reached_down");
    require_length(up, n, "reached_up");
    return {down, up};
}

}  // namespace

void bind_patterns(nb::module_ m) {
    m.def(
        "stretch",
        [](std::span<const double> z, std::span<const double> low, std::span<const double> high) {
            const Stretch out = stretch(z, checked_bounds(low, high, length(z)));
            return std::pair(out.backward, out.forward);
        },
        "z"_a, "low"_a, "high"_a);
    m.def(
        "is_met",
        [](Index r, const RequestArrays& arrays, std::span<double> down, std::span<double> up) {
            const auto requests = std::make_from_tuple<Requests>(arrays);
            for (const auto& level : {requests.down, requests.up, requests.slide})
                require_length(level, requests.count(), "requests");
            require_index(r, requests.count(), "request");
            return is_met(r, requests, checked_reached(down, up, requests.count()));
        },
        "request"_a, "requests"_a, "reached_down"_a, "reached_up"_a);
    m.def(
        "count",
        [](std::span<const double> z, std::span<const double> low, std::span<const double> high,
           const KnownArrays& known, const RequestArrays& requests, std::span<double> down, std::span<double> up) {
            const Task task = checked_task(low, high, known, requests, length(z));
            return count(z, task, checked_reached(down, up, task.requests.count()));
        },
        "z"_a, "low"_a, "high"_a, "known"_a, "requests"_a, "reached_down"_a, "reached_up"_a);
    m.def(
        "prove",
        [](Matrix<double> movement, std::span<Index> parameter, std::span<const double> low,
           std::span<const double> high, const KnownArrays& known, const RequestArrays& requests,
           Matrix<const double> bank, Index patience, double time_left_s) {
            const Index n = movement.columns();
            const Task task = checked_task(low, high, known, requests, n);
            Bank proof(checked_bank(bank, n));
            Watch watch(time_left_s);
            Flags failed = prove(checked(Echelon{movement, parameter}), task, proof, patience, watch);
            return std::pair(std::move(proof), std::move(failed));
        },
        Unlocked(), "movement"_a, "parameter"_a, "low"_a, "high"_a, "known"_a, "requests"_a, "bank"_a, "patience"_a,
        "time_left_s"_a = INF);
    m.def(
        "without",
        [](Matrix<const double> bank, std::span<const double> used, Index i) {
            require_length(used, bank.columns(), "used");
            require_index(i, bank.columns(), "variable");
            require(used[i] != 0.0, "the movement does not move the variable");
            Bank out(bank);
            without(out, used, i);
            return out;
        },
        Unlocked(), "bank"_a, "used"_a, "i"_a);
    m.def(
        "clean",
        [](Matrix<double> movement, std::span<Index> parameter, std::span<const double> weight,
           std::span<const Index> state, std::span<const double> low, std::span<const double> high,
           const KnownArrays& known, const RequestArrays& requests, Matrix<const double> bank, double stop_above,
           Index tries, std::span<double> trouble, double time_left_s) {
            const Index n = movement.columns();
            const Task task = checked_task(low, high, known, requests, n);
            require_length(weight, n, "weight");
            require_length(state, n, "state");
            require_length(trouble, task.requests.count(), "trouble");
            Watch watch(time_left_s);
            Cleaning cleaning(OwnEchelon(checked(Echelon{movement, parameter})), Bank(checked_bank(bank, n)),
                              {state.begin(), state.end()}, weight, task, {stop_above, tries}, trouble, watch);
            const bool finished = cleaning.run();
            return std::tuple(std::move(cleaning.state), std::move(cleaning.form.movement),
                              std::move(cleaning.form.parameter), std::move(cleaning.bank), finished);
        },
        Unlocked(), "movement"_a, "parameter"_a, "weight"_a, "state"_a, "low"_a, "high"_a, "known"_a, "requests"_a,
        "bank"_a, "stop_above"_a, "tries"_a, "trouble"_a, "time_left_s"_a = INF);
    m.def(
        "recombine",
        [](Matrix<const double> vectors, std::span<const double> weight, std::span<const double> noisy,
           std::span<const bool> keep, std::span<const double> low, std::span<const double> high,
           const KnownArrays& known, const RequestArrays& requests, Matrix<const double> bank, double stop_above,
           double time_left_s) {
            const Index n = vectors.columns();
            require_length(weight, n, "weight");
            require_length(noisy, n, "noisy");
            require_length(keep, n, "keep");
            Watch watch(time_left_s);
            Recombined found = recombine(vectors, weight, noisy, keep, checked_task(low, high, known, requests, n),
                                         checked_bank(bank, n), stop_above, watch);
            return std::tuple(found.cost, std::move(found.movement), std::move(found.bank));
        },
        Unlocked(), "vectors"_a, "weight"_a, "noisy"_a, "keep"_a, "low"_a, "high"_a, "known"_a, "requests"_a, "bank"_a,
        "stop_above"_a, "time_left_s"_a = INF);
}

}  // namespace cellguard

#include "watch.hpp"

#include <nanobind/nanobind.h>

#include <cmath>

namespace cellguard {

namespace {

constexpr std::chrono::milliseconds BETWEEN_LOOKS{50};
constexpr double LONGEST_S = 1e9;  // a steady clock cannot count much further

}  // namespace

Watch::Watch(double time_left_s) {
    const auto now = Clock::now();
    const double seconds = std::isnan(time_left_s) ? 0.0 : std::min(time_left_s, LONGEST_S);
    deadline_ =
        now + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(std::max(seconds, 0.0)));
    next_look_ = now + BETWEEN_LOOKS;
}

bool Watch::over() {
    const auto now = Clock::now();
    if (now >= next_look_) {
        next_look_ = now + BETWEEN_LOOKS;
        const nanobind::gil_scoped_acquire locked;
        if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
    }
    return now >= deadline_;
}

}  // namespace cellguard

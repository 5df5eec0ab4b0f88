// Long loops look at the clock themselves, and listen to Ctrl-C.
#pragma once

#include <chrono>

namespace cellguard {

/// A time limit, to be asked now and then; asking takes some 30 ns.
class Watch {
  public:
    /// @param time_left_s seconds from now on; infinite for no limit
    explicit Watch(double time_left_s);

    /// Whether the time is up. Throws what a signal handler of Python raises, such as KeyboardInterrupt.
    bool over();

  private:
    using Clock = std::chrono::steady_clock;

    Clock::time_point deadline_;
    Clock::time_point next_look_;
};

}  // namespace cellguard

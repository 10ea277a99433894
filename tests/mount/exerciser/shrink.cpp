// SPDX-License-Identifier: Apache-2.0
// First the shortest end that fails, then halves, quarters and so on left out, then simpler calls.
#include "tests/mount/exerciser/shrink.h"

#include <algorithm>
#include <array>
#include <utility>

namespace nacre::tests {

namespace {

constexpr std::size_t shortest_end = 32;
constexpr int tries_of_the_whole = 3;
constexpr std::uint64_t whole_replays_max = 8;

// Each makes one thing simpler, and does not change an operation that is simple already.
constexpr std::array<void (*)(Operation&), 9> simplifications = {
    [](Operation& operation) { operation.file = operation.to_file = 0; },
    [](Operation& operation) { operation.piece_count = 1; },
    [](Operation& operation) {
      if (operation.kind == Kind::mapped_write) operation.kind = Kind::write;
      if (operation.kind == Kind::mapped_read) operation.kind = Kind::read;
      if (operation.kind == Kind::fdatasync) operation.kind = Kind::fsync;
    },
    [](Operation& operation) {
      operation.channel = is_direct(operation.channel) ? Channel::direct : Channel::plain;
    },
    [](Operation& operation) { operation.channel = Channel::plain; },
    [](Operation& operation) { operation.filling = Filling::text; },
    [](Operation& operation) { operation.sync = operation.keep_size = false; },
    [](Operation& operation) {
      if (writes_bytes(operation.kind)) operation.offset = 0;
    },
    [](Operation& operation) { operation.size = std::min<std::uint64_t>(operation.size, 4096); }};

class Shrinker {
 public:
  Shrinker(const std::function<bool(const History&)>& fails, const ShrinkBounds& bounds)
      : fails_(fails), bounds_(bounds) {}

  Shrunk run(History history) {
    bounds_.operation_count_max += whole_replays_max * history.size();
    shrunk_.history = std::move(history);
    shrunk_.fails = take_end();
    if (!shrunk_.fails) return shrunk_;
    std::size_t size_before = 0;
    do {
      size_before = shrunk_.history.size();
      leave_out();
      simplify();
    } while (shrunk_.history.size() < size_before && may_go_on());
    return shrunk_;
  }

 private:
  bool may_go_on() const {
    return shrunk_.replay_count < bounds_.replay_count_max &&
           operation_count_ < bounds_.operation_count_max;
  }
  bool replay(const History& history) {
    if (!may_go_on()) return false;
    ++shrunk_.replay_count;
    operation_count_ += history.size();
    return fails_(history);
  }
  bool take_if_it_fails(History candidate) {
    if (candidate == shrunk_.history || !replay(candidate)) return false;
    shrunk_.history = std::move(candidate);
    return true;
  }

  bool take_end() {
    const History whole = shrunk_.history;
    for (std::size_t size = shortest_end; size < whole.size(); size *= 2) {
      if (take_if_it_fails(History(whole.end() - static_cast<std::ptrdiff_t>(size), whole.end()))) {
        return true;
      }
    }
    for (int i = 0; i < tries_of_the_whole; ++i) {
      if (replay(whole)) return true;
    }
    return false;
  }

  void leave_out() {
    std::size_t size = std::max<std::size_t>(1, shrunk_.history.size() / 2);
    while (may_go_on()) {
      bool any = false;
      for (std::size_t at = 0; at < shrunk_.history.size() && may_go_on();) {
        History candidate = shrunk_.history;
        const auto first = candidate.begin() + static_cast<std::ptrdiff_t>(at);
        candidate.erase(first,
                        first + static_cast<std::ptrdiff_t>(std::min(size, candidate.size() - at)));
        const bool taken = take_if_it_fails(std::move(candidate));
        any = any || taken;
        if (!taken) at += size;
      }
      if (size == 1 && !any) return;
      if (!any || size > shrunk_.history.size()) size = std::max<std::size_t>(1, size / 2);
    }
  }

  // Simplifies all operations at once if the history still fails then, and otherwise each alone.
  void simplify() {
    for (const auto simpler : simplifications) {
      History candidate = shrunk_.history;
      std::for_each(candidate.begin(), candidate.end(), simpler);
      if (candidate == shrunk_.history || take_if_it_fails(std::move(candidate))) continue;
      for (std::size_t i = 0; i < shrunk_.history.size() && may_go_on(); ++i) {
        candidate = shrunk_.history;
        simpler(candidate[i]);
        take_if_it_fails(std::move(candidate));
      }
    }
  }

  const std::function<bool(const History&)>& fails_;
  ShrinkBounds bounds_;
  std::uint64_t operation_count_ = 0;
  Shrunk shrunk_;
};

}  // namespace

Shrunk shrink(History history, const std::function<bool(const History&)>& fails,
              const ShrinkBounds& bounds) {
  return Shrinker(fails, bounds).run(std::move(history));
}

}  // namespace nacre::tests

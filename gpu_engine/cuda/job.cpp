// SPDX-License-Identifier: Apache-2.0
#include "gpu_engine/cuda/job.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "gpu_engine/cuda/runtime.h"

namespace nacre::engine::cuda {
namespace {

bool overlap(const Byte* a, std::uint64_t a_size, const Byte* b, std::uint64_t b_size) {
  return a < b + b_size && b < a + a_size;
}

}  // namespace

// If a device fails while it copies outputs, the cpu runs the batch again, so the inputs must still
// be intact. Hence outputs that overlap the inputs are not written directly.
Job::Job(Payload& of)
    : payload(of),
      input_pinned(is_pinned(of.input, of.input_size)),
      output_pinned(is_pinned(of.output, of.output_size) &&
                    !overlap(of.input, of.input_size, of.output, of.output_size)) {}

// done() is the caller's code. If it throws, the thread must not end.
void Job::say_ended() const {
  try {
    if (counted != nullptr)
      counted(counts);
    else
      done();
  } catch (...) {
  }
}

MessageCounts count_messages(const Payload& payload, const Stretch& stretch) {
  MessageCounts counts;
  for (std::size_t i = stretch.first; i < std::size_t{stretch.first} + stretch.count; ++i) {
    counts.failed += !payload.results[i].ok;
    counts.output_bytes += payload.results[i].output_size;
    counts.input_bytes += payload.messages[i].input_size;
  }
  return counts;
}

void run_on(Backend& backend, Payload& payload, const Stretch& stretch) {
  std::array<std::uint32_t, 256> indexes;
  for (std::uint32_t at = 0; at < stretch.count;) {
    const std::uint32_t count =
        std::min(static_cast<std::uint32_t>(indexes.size()), stretch.count - at);
    std::iota(indexes.begin(), indexes.begin() + count, stretch.first + at);
    backend.run(payload, MessageIndexes(indexes).first(count));
    at += count;
  }
}

MessageCounts run_on(Backend& backend, Payload& payload) {
  const Stretch all = {.first = 0, .count = static_cast<std::uint32_t>(payload.messages.size())};
  run_on(backend, payload, all);
  return count_messages(payload, all);
}

}  // namespace nacre::engine::cuda

// SPDX-License-Identifier: Apache-2.0
// Verifies the CRC of every record of a segment with the engine: stretches of 8 MiB are read in
// order, each becomes one payload of checksum messages, and several are under way at a time. Where
// one does not verify, the plain walk (fs/store/segment_walk.h) says what is wrong there, and finds
// the next good record.
//
// Bytes that the system has in memory say nothing about the medium, so they are given up before a
// stretch is read, and again behind it: what users read often stays in the caches above.
#pragma once

#include <array>
#include <cstdint>
#include <latch>
#include <memory>
#include <optional>
#include <vector>

#include "fs/store/segment_walk.h"
#include "gpu_engine/engine.h"

namespace nacre::fs {

class SegmentScrubVisitor {
 public:
  virtual ~SegmentScrubVisitor() = default;
  // All up to end is read and judged; size bytes, with so many good records, since the last call.
  // Called in order. An error ends the scrub there and becomes its result.
  virtual Result<> verified(std::uint64_t end, std::uint64_t size, std::uint64_t record_count) = 0;
  // [offset, offset + size) holds no good record; before the verified() that covers it.
  virtual void damage(std::uint64_t offset, std::uint64_t size, const Error& error) = 0;
};

// Not thread-safe.
class SegmentScrub {
 public:
  static constexpr std::size_t stretch_size_bytes = 8u << 20;

  // The engine outlives it. out_of_memory.
  static Result<std::unique_ptr<SegmentScrub>> create(engine::Engine& engine);
  ~SegmentScrub();

  // Returns where the good records end, as walk_segment() does. Errors are the visitor's, or
  // out_of_memory; what cannot be read is damage.
  Result<std::uint64_t> run(metadata::BackingFile& file, const SegmentBounds& bounds,
                            SegmentScrubVisitor& visitor);

 private:
  // A stretch that is with the engine.
  struct Stretch {
    engine::Arena input;
    engine::Payload payload;
    std::vector<std::uint32_t> expected;  // the CRC that each record names
    std::uint64_t begin = 0;
    std::uint64_t size = 0;  // of the records in it
    std::optional<std::latch> ended;
  };
  explicit SegmentScrub(engine::Engine& engine) : engine_(engine) {}
  void load(metadata::BackingFile& file, std::uint64_t begin, std::uint64_t end, Stretch& stretch);
  void submit(Stretch& stretch);
  // Waits for the engine, then: how many records from the front are good.
  static std::size_t collect(Stretch& stretch);
  // Through good records from at on, up to end or to the first that is not good.
  Result<std::uint64_t> run_fast(metadata::BackingFile& file, std::uint64_t at, std::uint64_t end,
                                 SegmentScrubVisitor& visitor);

  engine::Engine& engine_;
  std::array<Stretch, 3> stretches_;  // used in turn
};

}  // namespace nacre::fs

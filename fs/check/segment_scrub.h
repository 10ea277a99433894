// SPDX-License-Identifier: Apache-2.0
// Verifies the CRC of every record of a segment with the engine. Stretches of 8 MiB are read in
// order, each becomes one payload of checksum messages, and several are with the engine at a time.
// If a CRC is wrong, the plain walk (fs/store/segment_walk.h) finds out what is wrong there, and
// where the next good record begins.
//
// Pages in the system's cache tell nothing about the medium, so the scrub drops them before it
// reads a stretch, and again afterwards. Data that users read often stays in the volume's own
// caches.
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
  // All bytes up to end have been checked. size: bytes passed since the last call, damaged ones
  // included; record_count: the good records among them. Calls come in order, on run()'s thread. An
  // error ends the scrub there and becomes its result.
  virtual Result<> verified(std::uint64_t end, std::uint64_t size, std::uint64_t record_count) = 0;
  // [offset, offset + size) holds no good record. Called before the verified() that covers the
  // range.
  virtual void damage(std::uint64_t offset, std::uint64_t size, const Error& error) = 0;
};

// Not thread-safe.
class SegmentScrub {
 public:
  static constexpr std::size_t stretch_size_bytes = 8u << 20;

  // The engine outlives it. Error: out_of_memory.
  static Result<std::unique_ptr<SegmentScrub>> create(engine::Engine& engine);
  ~SegmentScrub();

  // Returns the end of the good records, as walk_segment() does. Bytes that cannot be read are
  // damage. Errors: those of the visitor; out_of_memory.
  Result<std::uint64_t> run(metadata::BackingFile& file, const SegmentBounds& bounds,
                            SegmentScrubVisitor& visitor);

 private:
  // A stretch that the engine works on.
  struct Stretch {
    engine::Arena input;
    engine::Payload payload;
    std::vector<std::uint32_t> expected;  // the CRC in each record's header
    std::uint64_t begin = 0;
    std::uint64_t size = 0;  // bytes of the records in it
    std::optional<std::latch> ended;
  };
  explicit SegmentScrub(engine::Engine& engine) : engine_(engine) {}
  void load(metadata::BackingFile& file, std::uint64_t begin, std::uint64_t end, Stretch& stretch);
  void submit(Stretch& stretch);
  // Waits for the engine. Returns the number of good records before the first bad one.
  static std::size_t collect(Stretch& stretch);
  // Goes through good records from at on, up to end or to the first bad one.
  Result<std::uint64_t> run_fast(metadata::BackingFile& file, std::uint64_t at, std::uint64_t end,
                                 SegmentScrubVisitor& visitor);

  engine::Engine& engine_;
  std::array<Stretch, 3> stretches_;  // used in turn
};

}  // namespace nacre::fs

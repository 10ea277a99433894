// SPDX-License-Identifier: Apache-2.0
// The visitor of the deep check. It opens every record that a row names, and compares its tag,
// identity, codec stream and size with the row. It also reports damaged and misplaced records, so a
// walk with this visitor covers all bytes of the segments that are in use. The structure check,
// which runs first, looks at the segment files as such.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <latch>
#include <memory>
#include <optional>
#include <vector>

#include "fs/check/chunk_walker.h"
#include "fs/store/record_keys.h"
#include "fs/store/segment_store.h"
#include "gpu_engine/engine.h"

namespace nacre::fs {

enum class DeepCheckMode : std::uint8_t {
  checksum,  // verifies only CRCs and places
  open,      // opens also every record that a row names
};

struct DeepCheckCounts {
  std::uint64_t segment_count = 0;
  std::uint64_t record_count = 0;  // records with a right CRC
  std::uint64_t opened_count = 0;  // records that rows name, authenticated and decompressed
  std::uint64_t stored_bytes = 0;
  std::uint64_t plain_bytes = 0;
  std::array<CodecStats, codec_count> codecs = {};  // of the opened records of files
};

// Everything passed by reference outlives it. The calls come from one thread; the engine works on
// up to three payloads meanwhile, so a record's finding may come after those of later records. If
// the visitor is destroyed without finish(), records that still wait are not reported.
class DeepCheck final : public ChunkVisitor {
 public:
  // Error: out_of_memory.
  static Result<std::unique_ptr<DeepCheck>> create(engine::Engine& engine, const RecordKeys& keys,
                                                   DeepCheckMode mode, FindingList& findings);

  Result<> begin_segment(metadata::SegmentNumber number, const metadata::SegmentRow& row) override;
  Result<> record(metadata::SegmentNumber segment, std::uint64_t offset,
                  const engine::RecordHeader& header, ByteView bytes,
                  std::span<const NamedRecord> named) override;
  Result<> damage(metadata::SegmentNumber segment, std::uint64_t offset, std::uint64_t size,
                  const Error& error, std::span<const NamedRecord> named) override;
  Result<> misplaced(const NamedRecord& named, const Error& error) override;
  Result<> unusable_segment(metadata::SegmentNumber number, const Error& error) override;

  // Called, in addition to the finding, for each bad record that a row names.
  using OnBadRecord = std::function<void(const NamedRecord&, Verdict, std::string_view what)>;
  void on_bad_record(OnBadRecord on_bad_record) { on_bad_record_ = std::move(on_bad_record); }

  ~DeepCheck() override;
  // Opens the records that are still waiting. Called after the walk.
  void finish();
  const DeepCheckCounts& counts() const { return counts_; }

 private:
  DeepCheck(engine::Engine& engine, const RecordKeys& keys, DeepCheckMode mode,
            FindingList& findings)
      : engine_(engine), keys_(keys), mode_(mode), findings_(findings) {}
  // A payload that is being filled, or that the engine works on while the walk goes on.
  struct Stage {
    engine::Arena input, output;
    engine::Payload payload;
    std::vector<NamedRecord> waiting;  // one for each message
    std::size_t input_used = 0;
    std::size_t output_used = 0;
    std::optional<std::latch> ended;  // set while the engine has the payload
  };
  Result<> allocate(Stage& stage);
  void open(const NamedRecord& named, const engine::RecordHeader& header, ByteView bytes);
  void submit(Stage& stage);
  // Waits for the engine and evaluates the results. The stage is empty afterwards.
  void collect(Stage& stage);
  void report(const NamedRecord& named, Verdict verdict, std::string what);

  engine::Engine& engine_;
  const RecordKeys& keys_;
  const DeepCheckMode mode_;
  FindingList& findings_;
  OnBadRecord on_bad_record_;
  std::array<Stage, 4> stages_;  // used in turn
  std::size_t filling_ = 0;
  DeepCheckCounts counts_;
};

// "chunk 3 of inode 17" or "patch at 512 of chunk 3 of inode 17".
std::string describe(const metadata::RecordName& name);

}  // namespace nacre::fs

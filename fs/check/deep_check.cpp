// SPDX-License-Identifier: Apache-2.0
#include "fs/check/deep_check.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "fs/store/record_batch.h"
#include "fs/store/segment_table.h"
#include "gpu_engine/base/limits.h"

namespace nacre::fs {

namespace {

// The size of one payload, which keeps all cores busy.
constexpr std::size_t stage_size_bytes = 16u << 20;

std::string file_of(metadata::SegmentNumber number) {
  return segment_path(number);
}

}  // namespace

std::string describe(const metadata::RecordName& name) {
  if (name.kind == metadata::RecordKind::checkpoint_root) {
    return fmt::format("the root of checkpoint {:#x}", name.inode.value);
  }
  if (name.kind == metadata::RecordKind::checkpoint_part) {
    return fmt::format("part {} of checkpoint {:#x}", name.chunk.value, name.inode.value);
  }
  const auto chunk = fmt::format("chunk {} of inode {}", name.chunk.value, name.inode.value);
  if (name.kind == metadata::RecordKind::chunk) return chunk;
  return fmt::format("patch at {} of {}", name.offset, chunk);
}

Result<std::unique_ptr<DeepCheck>> DeepCheck::create(engine::Engine& engine, const RecordKeys& keys,
                                                     DeepCheckMode mode, FindingList& findings) {
  std::unique_ptr<DeepCheck> check(new DeepCheck(engine, keys, mode, findings));
  for (Stage& stage : check->stages_)
    NACRE_TRY(check->allocate(stage));
  return check;
}

// Payloads that the engine still works on point into this object.
DeepCheck::~DeepCheck() {
  for (Stage& stage : stages_) {
    if (stage.ended) stage.ended->wait();
  }
}

Result<> DeepCheck::allocate(Stage& stage) {
  NACRE_ASSIGN(stage.input, engine_.allocate(stage_size_bytes));
  NACRE_ASSIGN(stage.output, engine_.allocate(stage_size_bytes));
  stage.payload.input = stage.input.data();
  stage.payload.input_size = stage.input.size();
  stage.payload.output = stage.output.data();
  stage.payload.output_size = stage.output.size();
  stage.payload.volume_id = keys_.volume_id();
  return {};
}

Result<> DeepCheck::begin_segment(metadata::SegmentNumber, const metadata::SegmentRow&) {
  ++counts_.segment_count;
  return {};
}

Result<> DeepCheck::record(metadata::SegmentNumber, std::uint64_t,
                           const engine::RecordHeader& header, ByteView bytes,
                           std::span<const NamedRecord> named) {
  ++counts_.record_count;
  counts_.stored_bytes += bytes.size();
  if (mode_ == DeepCheckMode::checksum) return {};
  // More than one row is damage, because the record can match only one of them.
  for (const NamedRecord& one : named)
    open(one, header, bytes);
  return {};
}

void DeepCheck::open(const NamedRecord& named, const engine::RecordHeader& header, ByteView bytes) {
  if (named.plain_size > chunk_size_bytes_max) {
    report(named, Verdict::structure,
           fmt::format("the row says that the record holds {} bytes, more than any chunk",
                       named.plain_size));
    return;
  }
  const auto key = keys_.find(header, bytes);
  if (!key) {
    report(named, Verdict::tampered, key.error().message);
    return;
  }
  if (stages_[filling_].input_used + bytes.size() > stage_size_bytes ||
      stages_[filling_].output_used + named.plain_size > stage_size_bytes) {
    submit(stages_[filling_]);
    filling_ = (filling_ + 1) % stages_.size();
    collect(stages_[filling_]);
  }
  Stage& stage = stages_[filling_];
  std::copy(bytes.begin(), bytes.end(), stage.input.data() + stage.input_used);
  add_unseal(stage.payload, **key,
             {.input_offset = stage.input_used,
              .input_size = bytes.size(),
              .output_offset = stage.output_used,
              .output_capacity = named.plain_size},
             named.name);
  stage.waiting.push_back(named);
  stage.input_used += bytes.size();
  stage.output_used += named.plain_size;
}

void DeepCheck::submit(Stage& stage) {
  if (stage.waiting.empty()) return;
  stage.ended.emplace(1);
  engine_.submit(stage.payload, [&stage] { stage.ended->count_down(); });
}

void DeepCheck::collect(Stage& stage) {
  if (!stage.ended) return;
  stage.ended->wait();
  stage.ended.reset();
  const engine::Payload& payload = stage.payload;
  for (std::size_t i = 0; i < stage.waiting.size(); ++i) {
    const auto& named = stage.waiting[i];
    const auto& result = payload.results[i];
    if (!result.ok) {
      report(named, verdict_of(result.error), result.detail);
    } else if (result.output_size != named.plain_size) {
      report(named, Verdict::tampered,
             fmt::format("the record holds {} bytes, but its row says {}", result.output_size,
                         named.plain_size));
    } else {
      ++counts_.opened_count;
      counts_.plain_bytes += result.output_size;
      if (!is_of_file(named.name.kind)) continue;
      CodecStats& codec = counts_.codecs[static_cast<std::size_t>(result.codec)];
      ++codec.record_count;
      codec.plain_bytes += result.output_size;
      codec.stored_bytes += payload.messages[i].input_size;
    }
  }
  stage.payload.clear();
  stage.waiting.clear();
  stage.input_used = 0;
  stage.output_used = 0;
}

void DeepCheck::finish() {
  submit(stages_[filling_]);
  // In the order of the walk, so that findings are in the order of offsets.
  for (std::size_t i = 1; i <= stages_.size(); ++i)
    collect(stages_[(filling_ + i) % stages_.size()]);
}

Result<> DeepCheck::damage(metadata::SegmentNumber segment, std::uint64_t offset,
                           std::uint64_t size, const Error& error,
                           std::span<const NamedRecord> named) {
  for (const auto& record : named)
    report(record, verdict_of(error.code), error.message);
  if (named.empty()) {
    findings_.add(
        {.verdict = verdict_of(error.code),
         .what = fmt::format("{} bytes are damaged ({}); no file uses them", size, error.message),
         .file = file_of(segment),
         .offset = offset});
  }
  return {};
}

Result<> DeepCheck::misplaced(const NamedRecord& named, const Error& error) {
  report(named, verdict_of(error.code), error.message);
  return {};
}

// The structure check has reported the segment. Here only the files with data in it are reported.
Result<> DeepCheck::unusable_segment(metadata::SegmentNumber, const Error&) {
  return {};
}

void DeepCheck::report(const NamedRecord& named, Verdict verdict, std::string what) {
  if (on_bad_record_) on_bad_record_(named, verdict, what);
  findings_.add(
      {.verdict = verdict,
       .what = fmt::format("{}: {}", describe(named.name), what),
       .file = file_of(named.location.segment),
       .offset = named.location.offset,
       .inode = is_of_file(named.name.kind) ? std::optional(named.name.inode) : std::nullopt});
}

}  // namespace nacre::fs

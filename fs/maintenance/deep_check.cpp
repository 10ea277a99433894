// SPDX-License-Identifier: Apache-2.0
// See deep_check.h.
#include "fs/maintenance/deep_check.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "fs/store/segment_table.h"
#include "gpu_engine/base/limits.h"

namespace nacre::fs {

namespace {

// One payload: enough to keep all cores busy.
constexpr std::size_t arena_size_bytes = 16u << 20;

std::string file_of(metadata::SegmentNumber number) {
  return segment_path(number);
}

}  // namespace

std::string describe(const metadata::RecordName& name) {
  const auto chunk = fmt::format("chunk {} of inode {}", name.chunk.value, name.inode.value);
  if (name.kind == metadata::RecordKind::chunk) return chunk;
  return fmt::format("patch at {} of {}", name.offset, chunk);
}

Result<std::unique_ptr<DeepCheck>> DeepCheck::create(engine::Engine& engine,
                                                     std::shared_ptr<const metadata::KeyTree> keys,
                                                     DeepCheckMode mode, FindingList& findings) {
  std::unique_ptr<DeepCheck> check(new DeepCheck(engine, std::move(keys), mode, findings));
  NACRE_ASSIGN(check->input_, engine.allocate(arena_size_bytes));
  NACRE_ASSIGN(check->output_, engine.allocate(arena_size_bytes));
  check->payload_.input = check->input_.data();
  check->payload_.input_size = check->input_.size();
  check->payload_.output = check->output_.data();
  check->payload_.output_size = check->output_.size();
  check->payload_.volume_id = check->keys_->volume_id();
  return check;
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
  if (named.empty() || mode_ == DeepCheckMode::checksum) return {};
  const NamedRecord& first = named.front();
  if (first.plain_size > chunk_size_bytes_max) {
    report(
        first, Verdict::structure,
        fmt::format("the row says that it holds {} bytes, more than any chunk", first.plain_size));
    return {};
  }
  const auto key = keys_->session_key(header.epoch, header.salt);
  if (!key) {
    report(first, Verdict::tampered, key.error().message);
    return {};
  }
  if (input_used_ + bytes.size() > input_.size() ||
      output_used_ + first.plain_size > output_.size()) {
    run_payload();
  }
  std::copy(bytes.begin(), bytes.end(), input_.data() + input_used_);
  payload_.messages.push_back({.operation = engine::Operation::unseal,
                               .check_identity = true,
                               .key_index = payload_.add_key((*key)->suite, (*key)->key.view()),
                               .input_offset = input_used_,
                               .input_size = bytes.size(),
                               .output_offset = output_used_,
                               .output_capacity = first.plain_size,
                               .identity = metadata::encode(first.name)});
  waiting_.push_back(first);
  input_used_ += bytes.size();
  output_used_ += first.plain_size;
  return {};
}

void DeepCheck::run_payload() {
  if (!waiting_.empty()) engine_.run(payload_);
  if (payload_.results.size() < payload_.messages.size()) {
    for (const auto& named : waiting_)
      report(named, verdict_of(ErrorCode::out_of_memory), "no memory to check it");
    waiting_.clear();
  }
  for (std::size_t i = 0; i < waiting_.size(); ++i) {
    const auto& result = payload_.results[i];
    const auto& named = waiting_[i];
    if (!result.ok) {
      report(named, verdict_of(result.error), result.detail);
    } else if (result.output_size != named.plain_size) {
      report(
          named, Verdict::tampered,
          fmt::format("it holds {} bytes, its row says {}", result.output_size, named.plain_size));
    } else {
      ++counts_.opened_count;
      counts_.plain_bytes += result.output_size;
    }
  }
  payload_.clear();
  waiting_.clear();
  input_used_ = 0;
  output_used_ = 0;
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

// The structure check has said so once; what counts here is which files are hit.
Result<> DeepCheck::unusable_segment(metadata::SegmentNumber, const Error&) {
  return {};
}

void DeepCheck::report(const NamedRecord& named, Verdict verdict, std::string what) {
  findings_.add({.verdict = verdict,
                 .what = fmt::format("{}: {}", describe(named.name), what),
                 .file = file_of(named.location.segment),
                 .offset = named.location.offset,
                 .inode = named.name.inode});
}

}  // namespace nacre::fs

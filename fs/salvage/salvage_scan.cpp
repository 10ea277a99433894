// SPDX-License-Identifier: Apache-2.0
#include "fs/salvage/salvage_scan.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "fs/store/record_batch.h"
#include "fs/store/segment_table.h"
#include "fs/store/segment_walk.h"
#include "gpu_engine/base/limits.h"

namespace nacre::fs {

using metadata::RecordName;

namespace {

// The size of one payload, which keeps all cores busy.
constexpr std::size_t arena_size_bytes = 16u << 20;

class Scan final : public SegmentVisitor {
 public:
  Scan(metadata::BackingDirectory& directory, const metadata::KeyTree& keys, engine::Engine& engine,
       std::uint32_t chunk_size_bytes, FindingList& findings, const ProgressFunction& progress)
      : directory_(directory),
        keys_(keys),
        engine_(engine),
        chunk_size_bytes_(chunk_size_bytes),
        findings_(findings),
        progress_(progress) {}

  Result<FoundRecords> run() {
    NACRE_ASSIGN(input_, engine_.allocate(arena_size_bytes));
    NACRE_ASSIGN(output_, engine_.allocate(arena_size_bytes));
    payload_.input = input_.data();
    payload_.input_size = input_.size();
    payload_.output = output_.data();
    payload_.output_size = output_.size();
    payload_.volume_id = keys_.volume_id();
    NACRE_TRY(list_files());
    for (std::uint32_t file = 0; file < found_.files.size(); ++file)
      NACRE_TRY(scan(file));
    NACRE_TRY(open_waiting());
    std::sort(found_.all.begin(), found_.all.end(), [](const FoundRecord& a, const FoundRecord& b) {
      return std::tuple(a.version, a.file, a.offset) < std::tuple(b.version, b.file, b.offset);
    });
    return std::move(found_);
  }

  Result<> record(std::uint64_t offset, const engine::RecordHeader& header,
                  ByteView bytes) override {
    const auto key = keys_.session_key(header.epoch, header.salt);
    if (!key) {
      note(offset, key.error());
      return {};
    }
    if (input_used_ + bytes.size() > arena_size_bytes ||
        (waiting_.size() + 1) * chunk_size_bytes_ > arena_size_bytes) {
      NACRE_TRY(open_waiting());
    }
    std::copy(bytes.begin(), bytes.end(), input_.data() + input_used_);
    add_unseal(payload_, **key,
               {.input_offset = input_used_,
                .input_size = bytes.size(),
                .output_offset = waiting_.size() * chunk_size_bytes_,
                .output_capacity = chunk_size_bytes_});
    input_used_ += bytes.size();
    waiting_.push_back({.offset = offset,
                        .file = file_,
                        .session = session_of(header.salt, header.epoch),
                        .stored_size = static_cast<std::uint32_t>(bytes.size())});
    return {};
  }
  Result<> damage(std::uint64_t offset, std::uint64_t size, const Error& error) override {
    const bool is_read = verdict_of(error.code) != Verdict::unreadable;
    note(offset,
         {error.code, fmt::format("{} bytes {}: {}", size,
                                  is_read ? "are damaged" : "cannot be read", error.message)});
    return {};
  }
  void passed(std::uint64_t size) override {
    state_.done += size;
    if (progress_) progress_(state_);
  }

 private:
  // The number of a segment's file, also of one that an interrupted backup has copied.
  static std::optional<metadata::SegmentNumber> number_of(std::string_view name) {
    if (name.ends_with(arriving_suffix)) name.remove_suffix(std::string_view(".new").size());
    return segment_number_of(name);
  }

  Result<> list_files() {
    NACRE_ASSIGN(const auto names, directory_.list("segments"));
    for (const std::string& name : names) {
      const auto number = number_of(name);
      if (!number) continue;
      found_.files.push_back("segments/" + name);
      found_.segment_number_max = std::max(found_.segment_number_max, number->value);
      state_.total += directory_.file_size(found_.files.back()).value_or(0);
    }
    found_.scanned_bytes = state_.total;
    return {};
  }

  Result<> scan(std::uint32_t index) {
    file_ = index;
    const auto opened = directory_.open(found_.files[index], metadata::OpenMode::read);
    if (!opened) {
      note(0, opened.error());
      return {};
    }
    const auto size = (*opened)->size();
    if (!size) {
      note(0, size.error());
      return {};
    }
    // Records have headers of their own, so a damaged header of the file hides none of them.
    const auto header = read_segment_header(**opened, keys_.volume_id(),
                                            number_of(found_.files[index].substr(9)).value());
    if (!header) note(0, header.error());
    NACRE_ASSIGN(const std::uint64_t end, walk_segment(**opened, {.file_size = *size}, *this));
    found_.tail_bytes += *size - std::min(*size, end);
    return {};
  }

  Result<> open_waiting() {
    if (waiting_.empty()) return {};
    engine_.run(payload_);
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      engine::MessageResult result = payload_.results[i];
      if (!result.ok && result.error == ErrorCode::out_of_memory) {
        return fail(result.error, result.detail);
      }
      // Parts of checkpoints may be larger than a chunk of this volume.
      if (!result.ok && result.error == ErrorCode::corrupt) {
        result = open_alone(payload_.messages[i]);
      }
      take(waiting_[i], result);
    }
    payload_.clear();
    waiting_.clear();
    input_used_ = 0;
    return {};
  }

  engine::MessageResult open_alone(engine::Message message) {
    Bytes plain(chunk_size_bytes_max);
    engine::Payload payload;
    payload.input = payload_.input;
    payload.input_size = payload_.input_size;
    payload.output = plain.data();
    payload.output_size = plain.size();
    payload.volume_id = payload_.volume_id;
    const auto& key = payload_.key_table[message.key_index];
    message.key_index =
        payload.add_key(key.use, payload_.keys.view().subspan(key.offset, key.size));
    message.output_offset = 0;
    message.output_capacity = plain.size();
    payload.add(message);
    engine_.run(payload);
    return payload.results.front();
  }

  void take(FoundRecord record, const engine::MessageResult& result) {
    const auto name = name_in(result);
    if (!name) return note(record.file, record.offset, name.error());
    record.version = name->version;
    record.inode = name->inode;
    record.chunk = name->chunk;
    record.patch_offset = name->offset;
    record.kind = name->kind;
    record.plain_size = static_cast<std::uint32_t>(result.output_size);
    if (is_of_file(record.kind)) found_.inode_max = std::max(found_.inode_max, record.inode.value);
    found_.session_ordinal_max = std::max(
        found_.session_ordinal_max, record.version.value >> metadata::record_version_session_shift);
    found_.all.push_back(record);
  }

  // A genuine session has one epoch. An attacker with an older key can use the session's salt
  // again.
  std::uint32_t session_of(const engine::SessionSalt& salt, std::uint32_t epoch) {
    const auto [place, is_new] =
        sessions_.emplace(std::pair(salt, epoch), static_cast<std::uint32_t>(sessions_.size()));
    if (is_new) {
      found_.sessions.push_back(salt);
      found_.session_epochs.push_back(epoch);
    }
    return place->second;
  }

  void note(std::uint64_t offset, const Error& error) { note(file_, offset, error); }
  // Bytes that cannot be read are an error, because the disk may still hold them. Damaged bytes are
  // a note: it is not known yet whether they hit records that rows name.
  void note(std::uint32_t file, std::uint64_t offset, const Error& error) {
    ++found_.damaged_count;
    const bool is_unreadable = verdict_of(error.code) == Verdict::unreadable;
    findings_.add_error(error, found_.files[file], offset,
                        is_unreadable ? Severity::error : Severity::note);
  }

  metadata::BackingDirectory& directory_;
  const metadata::KeyTree& keys_;
  engine::Engine& engine_;
  const std::uint32_t chunk_size_bytes_;
  FindingList& findings_;
  const ProgressFunction& progress_;
  Progress state_{.stage = "segments"};
  FoundRecords found_;
  std::map<std::pair<engine::SessionSalt, std::uint32_t>, std::uint32_t> sessions_;
  std::uint32_t file_ = 0;
  engine::Arena input_, output_;
  engine::Payload payload_;
  std::vector<FoundRecord> waiting_;  // one for each message
  std::size_t input_used_ = 0;
};

}  // namespace

std::span<FoundRecord> FoundRecords::with_version(metadata::RecordVersion version) {
  const auto range = std::equal_range(
      all.begin(), all.end(), FoundRecord{.version = version},
      [](const FoundRecord& a, const FoundRecord& b) { return a.version < b.version; });
  return {range.first, range.second};
}

Result<FoundRecords> scan_records(metadata::BackingDirectory& directory,
                                  const metadata::KeyTree& keys, engine::Engine& engine,
                                  std::uint32_t chunk_size_bytes, FindingList& findings,
                                  const ProgressFunction& progress) {
  return Scan(directory, keys, engine, chunk_size_bytes, findings, progress).run();
}

Result<Bytes> RecordOpener::read(const FoundRecord& record) {
  if (open_file_ != record.file) {
    NACRE_ASSIGN(file_, directory_.open(records_.files[record.file], metadata::OpenMode::read));
    open_file_ = record.file;
  }
  Bytes bytes(record.stored_size);
  NACRE_ASSIGN(const std::size_t got, file_->read(record.offset, bytes));
  bytes.resize(got);
  NACRE_ASSIGN(const auto header, engine::verify_record_crc(bytes));
  if (header.stored_size != record.stored_size) {
    return fail(ErrorCode::corrupt, "the record has changed since it was found");
  }
  return bytes;
}

Result<Bytes> RecordOpener::open(const FoundRecord& record) {
  NACRE_ASSIGN(const Bytes sealed, read(record));
  NACRE_ASSIGN(const auto header, engine::parse_record_header(sealed));
  NACRE_ASSIGN(const auto key, keys_.session_key(header.epoch, header.salt));
  Bytes plain(record.plain_size);
  engine::Payload payload;
  payload.input = sealed.data();
  payload.input_size = sealed.size();
  payload.output = plain.data();
  payload.output_size = plain.size();
  payload.volume_id = keys_.volume_id();
  add_unseal(payload, *key, {.input_size = sealed.size(), .output_capacity = plain.size()},
             record.name());
  engine_.run(payload);
  const engine::MessageResult& result = payload.results.front();
  if (!result.ok) return fail(result.error, result.detail);
  if (result.output_size != plain.size()) {
    return fail(ErrorCode::corrupt, "the record has changed since it was found");
  }
  return plain;
}

}  // namespace nacre::fs

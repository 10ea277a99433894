// SPDX-License-Identifier: Apache-2.0
#include "metadata/rescue/log_rescue.h"

#include <algorithm>

#include <fmt/format.h>

#include "metadata/rescue/log_records.h"
#include "metadata/sealed_fs/file_seal.h"
#include "metadata/sealed_fs/frame_file.h"

namespace nacre::metadata {

namespace {

class LogRescue {
 public:
  LogRescue(const FileSeal& seal, FrameBytes& stored) : seal_(seal), stored_(stored) {}

  RescuedLog run() {
    std::uint64_t at = file_header_size_bytes;
    while (at < stored_.size()) {
      if (take(at)) continue;
      const std::uint64_t next = find_next(at + 1);
      if (next == stored_.size()) break;  // torn by a crash, or damaged
      pass_over(at, next);
      at = next;
    }
    log_.records = records_.take();
    return std::move(log_);
  }

 private:
  struct Opened {
    FrameView frame;
    Bytes plain;
    std::optional<std::uint64_t> position;  // in the stream, of a padded frame
  };
  std::optional<Opened> open(std::uint64_t at) {
    const auto frame = parse_frame(seal_.header(), stored_.frame_at(at));
    if (!frame || frame->header.sequence < log_.frame_count) return std::nullopt;
    Opened opened{.frame = *frame, .plain = {}, .position = {}};
    if (!open_frame(seal_, *frame, opened.plain, &opened.position)) return std::nullopt;
    return opened;
  }

  // Takes the next frame in order, and moves past it.
  bool take(std::uint64_t& at) {
    const auto opened = open(at);
    if (!opened || opened->frame.header.sequence != log_.frame_count) return false;
    ++log_.frame_count;
    at += opened->frame.stored_size;
    if ((opened->frame.header.flags & frame_flag_witness) != 0) {
      const auto witness = decode_log_witness(opened->plain, seal_.header().format);
      if (witness) log_.witness = witness;
      const auto link = decode_manifest_link(opened->plain);
      if (link) log_.link = link;
      return true;
    }
    is_whole_ = is_whole_ || begins_record_;
    if (is_whole_) {
      records_.add(as_text(opened->plain));
    } else {
      records_.skip(opened->plain.size());
    }
    begins_record_ = is_short(opened->plain.size());
    position_ += opened->plain.size();
    return true;
  }

  // A frame that is not full of content ends where RocksDB flushed.
  bool is_short(std::uint64_t content_size) const {
    return content_size <
           frame_plain_bytes_max - (seal_.header().is_padded ? padded_head_bytes : 0);
  }

  std::uint64_t find_next(std::uint64_t from) {
    for (std::uint64_t at = stored_.find_magic(from); at < stored_.size();
         at = stored_.find_magic(at + 1)) {
      if (!budget_.take(stored_.frame_at(at))) break;
      if (open(at)) return at;
    }
    return stored_.size();
  }

  // Skips the bad frames from at to next. They held all bytes except their own headers and tags.
  void pass_over(std::uint64_t at, std::uint64_t next) {
    const auto frame = open(next);
    const std::uint64_t count = frame->frame.header.sequence - log_.frame_count;
    const std::uint64_t size = next - at;
    const std::uint64_t overhead = count * frame_overhead_bytes;
    log_.frame_count = frame->frame.header.sequence;
    std::uint64_t plain_size = size < overhead ? 0 : size - overhead;
    if (frame->position) {
      // The position tells exactly how much of the stream is missing, whatever the padding was.
      plain_size = *frame->position - std::min(*frame->position, position_);
      if (plain_size == 0) return;  // only witnesses or padding are missing
    }
    const auto header = stored_.view(at, std::min<std::size_t>(size, frame_header_size_bytes));
    const bool says_witness = header.size() == frame_header_size_bytes &&
                              (load_le<std::uint32_t>(&header[24]) & frame_flag_witness) != 0;
    // The first frame is always a witness.
    const std::size_t witness_size = seal_.header().format == EpochFormat::one
                                         ? log_witness_size_bytes_1
                                         : log_witness_size_bytes_2;
    if (count == 1 && plain_size == witness_size && (says_witness || log_.frame_count == 1)) {
      return;  // a witness is no part of the stream
    }
    log_.lost_bytes += size;
    records_.skip(plain_size);
    position_ += plain_size;
    is_whole_ = false;
    begins_record_ = count == 1 && is_short(plain_size);
  }

  const FileSeal& seal_;
  FrameBytes& stored_;
  SearchBudget budget_;
  LogRecords records_;
  bool begins_record_ = true;   // whether the next frame begins a record
  bool is_whole_ = false;       // whether the stream is known up to here
  std::uint64_t position_ = 0;  // in the stream, up to here
  RescuedLog log_;
};

}  // namespace

Result<RescuedLog> rescue_log(BackingDirectory& directory, const std::string& path,
                              const KeyTree& keys) {
  RescuedLog log;
  auto stored = FrameBytes::open(directory, path);
  if (!stored) {
    if (stored.error().code == ErrorCode::not_found ||
        stored.error().code == ErrorCode::out_of_memory) {
      return tl::unexpected(stored.error());
    }
    log.damage.push_back(stored.error());
    return log;
  }
  if (is_unborn_log(path, *stored)) return log;
  const auto seal = FileSeal::open(keys, path, stored->view(0, file_header_size_bytes));
  if (!seal) {
    log.damage.push_back(seal.error());
    log.lost_bytes = stored->size();
    return log;
  }
  log = LogRescue(*seal, *stored).run();
  log.header = seal->header();
  Bytes plain;
  const auto walked = walk_frames(path, seal->header(), *stored, &*seal, &plain);
  if (!walked) log.damage.push_back(walked.error());
  if (walked && stored->error()) log.damage.push_back(*stored->error());
  return log;
}

std::vector<std::uint64_t> drop_logs_of_other_branches(std::vector<NumberedLog>& logs) {
  std::vector<std::uint64_t> dropped;
  for (std::size_t i = logs.size(); i-- > 1;) {
    const RescuedLog& newer = logs[i].content;
    const NumberedLog& older = logs[i - 1];
    if (!newer.witness || newer.header.format == EpochFormat::one) continue;
    if (newer.witness->previous_log != older.number || older.content.frame_count == 0) continue;
    if (newer.witness->previous_salt == older.content.header.salt) continue;
    dropped.push_back(older.number);
    logs.erase(logs.begin() + static_cast<std::ptrdiff_t>(i - 1));
  }
  return dropped;
}

bool is_of_their_branch(const RescuedLog& manifest, const std::vector<NumberedLog>& logs) {
  if (logs.empty() || manifest.header.format == EpochFormat::one) return true;
  const RescuedLog& newest = logs.back().content;
  if (!newest.witness || newest.header.format == EpochFormat::one ||
      newest.witness->manifest_salt == manifest.header.salt) {
    return true;
  }
  return manifest.link && std::any_of(logs.begin(), logs.end(), [&](const NumberedLog& log) {
           return log.number == manifest.link->log &&
                  log.content.header.salt == manifest.link->salt;
         });
}

}  // namespace nacre::metadata

// SPDX-License-Identifier: Apache-2.0
// The reading half of frame_file.h. The rule: a bad frame that a later frame vouches for is damage,
// and any other bad frame is the torn tail of a crash. If the CRC of a frame is right, but its tag
// or its place in the sequence is wrong, an attacker made it: no torn write looks like that.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "metadata/sealed_fs/frame_file.h"

namespace nacre::metadata {
namespace {

class Walker {
 public:
  Walker(std::string_view path, const FileHeader& header, FrameBytes& stored, const FileSeal* seal,
         Bytes* plain)
      : path_(path), header_(header), stored_(stored), seal_(seal), plain_(plain) {}

  Result<FrameWalk> run() {
    std::uint64_t offset = file_header_size_bytes;
    while (const auto frame = parse_frame(header_, stored_.frame_at(offset))) {
      if (frame->header.sequence != walk_.frame_count) {
        return fail_at(seal_ == nullptr ? ErrorCode::corrupt : ErrorCode::tampered, offset,
                       fmt::format("frame {} stands where frame {} belongs", frame->header.sequence,
                                   walk_.frame_count));
      }
      const bool is_witness = (frame->header.flags & frame_flag_witness) != 0;
      if (is_witness ? !open_witness(*frame) : !open(*frame)) {
        return fail_at(ErrorCode::tampered, offset, "the tag is wrong");
      }
      note_tag(frame->tag);
      walk_.frame_count++;
      note_begin(offset, frame->header.synced_up_to);
      walk_.is_complete = (frame->header.flags & frame_flag_complete) != 0;
      offset += frame->stored_size;
    }
    walk_.end = offset;
    NACRE_TRY(look_for_witness(offset));
    if (stored_.error()) return tl::unexpected(*stored_.error());
    return walk_;
  }

 private:
  bool is_manifest() const { return header_.file_class == FileClass::manifest; }
  void note_tag(ByteView tag) {
    std::copy(tag.begin(), tag.end(), walk_.last_tag.begin());
    if (is_manifest() && seal_ != nullptr) walk_.tags.push_back(walk_.last_tag);
  }

  // The frame of number synced is the first for which this one does not vouch. With keys, frames
  // are known to be genuine, and what they vouch for only grows: so the beginnings below are not
  // needed again.
  void note_begin(std::uint64_t offset, std::uint64_t synced) {
    if (seal_ == nullptr) return;
    begins_.push_back(offset);
    while (first_begin_ < synced) {
      begins_.pop_front();
      ++first_begin_;
    }
    walk_.vouched_end = synced == 0 || synced < first_begin_ ? 0 : begins_.front();
  }

  tl::unexpected<Error> fail_at(ErrorCode code, std::uint64_t offset, std::string_view what) const {
    return fail_in_file(code, path_,
                        fmt::format("frame {} at offset {}: {}", walk_.frame_count, offset, what));
  }

  bool open(const FrameView& frame) {
    if (seal_ == nullptr) {
      walk_.plain_size += frame.header.plain_size;
      return true;
    }
    const std::size_t begin = plain_->size();
    std::optional<std::uint64_t> position;
    if (!open_frame(*seal_, frame, *plain_, &position)) return false;
    if (position.value_or(walk_.plain_size) != walk_.plain_size) return false;
    walk_.plain_size += plain_->size() - begin;
    return true;
  }

  bool open_witness(const FrameView& frame) {
    if (seal_ == nullptr) return true;
    Bytes bytes;
    std::optional<std::uint64_t> position;
    if (!open_frame(*seal_, frame, bytes, &position)) return false;
    if (position.value_or(walk_.plain_size) != walk_.plain_size) return false;
    if (is_manifest()) {
      walk_.link = decode_manifest_link(bytes);
    } else {
      walk_.witness = decode_log_witness(bytes, header_.format);
    }
    return true;
  }

  // Looks after the end for a frame that says that frame_count was on the medium.
  Result<void> look_for_witness(std::uint64_t end) {
    SearchBudget budget;
    for (std::uint64_t at = stored_.find_magic(end); at < stored_.size();
         at = stored_.find_magic(at + 1)) {
      const ByteView bytes = stored_.frame_at(at);
      if (!budget.take(bytes)) {
        return fail_at(ErrorCode::corrupt, end,
                       "damaged, and more that looks like frames follows than a crash leaves");
      }
      const auto frame = parse_frame(header_, bytes);
      if (!frame) continue;
      if (seal_ != nullptr) {
        Bytes scratch;
        if (!open_frame(*seal_, *frame, scratch)) {
          return fail_in_file(ErrorCode::tampered, path_,
                              fmt::format("offset {}: the tag of a frame is wrong", at));
        }
      }
      if (frame->header.synced_up_to > walk_.frame_count) {
        return fail_at(ErrorCode::corrupt, end,
                       fmt::format("damaged, though frame {} was written after it was safe",
                                   frame->header.sequence));
      }
    }
    return {};
  }

  std::string_view path_;
  const FileHeader header_;
  FrameBytes& stored_;
  const FileSeal* seal_;
  Bytes* plain_;
  FrameWalk walk_;
  std::deque<std::uint64_t> begins_;  // of the frames from first_begin_ on
  std::uint64_t first_begin_ = 0;
};

}  // namespace

bool open_frame(const FileSeal& seal, const FrameView& frame, Bytes& out,
                std::optional<std::uint64_t>* position) {
  const std::size_t begin = out.size();
  out.resize(begin + frame.header.plain_size);
  const MutableByteView plain = MutableByteView(out).subspan(begin);
  const bool is_genuine =
      seal.open(frame.header.sequence, 0, frame.authenticated, frame.ciphertext, frame.tag, plain);
  if (is_genuine && !seal.header().is_padded) return true;
  std::size_t size = 0;
  const bool fits = [&] {
    if (!is_genuine || plain.size() < padded_head_bytes) return false;
    size = load_le<std::uint32_t>(&plain[0]);
    if (size > std::min(frame_plain_bytes_max, plain.size() - padded_head_bytes)) return false;
    if (position != nullptr) *position = load_le<std::uint64_t>(&plain[4]);
    const ByteView rest = plain.subspan(padded_head_bytes + size);
    return std::all_of(rest.begin(), rest.end(), [](Byte byte) { return byte == 0; });
  }();
  if (!fits) {
    out.resize(begin);
    return false;
  }
  const auto content = out.begin() + static_cast<std::ptrdiff_t>(begin);
  out.erase(content, content + padded_head_bytes);
  out.resize(begin + size);
  return true;
}

Result<FrameWalk> walk_frames(std::string_view path, const FileHeader& header, FrameBytes& stored,
                              const FileSeal* seal, Bytes* plain) {
  NACRE_ASSIGN(FrameWalk walk, Walker(path, header, stored, seal, plain).run());
  if (header.file_class == FileClass::other && !walk.is_complete) {
    return fail_in_file(
        ErrorCode::corrupt, path,
        fmt::format("the file was damaged or cut: no whole frame at offset {}", walk.end));
  }
  if (seal != nullptr && header.file_class == FileClass::manifest &&
      header.format != EpochFormat::one && !walk.link) {
    return fail_in_file(ErrorCode::corrupt, path, "the manifest does not begin with its link");
  }
  return walk;
}

bool is_unborn_log(std::string_view path, FrameBytes& stored) {
  return parse_file_name(path).file_class == FileClass::log && stored.is_unborn_log();
}

FramesEnd end_of(const FramesContent& content) {
  return {content.header.salt, content.walk.frame_count, content.walk.last_tag};
}

Result<FramesContent> read_frames(BackingDirectory& directory, std::string_view path,
                                  const KeyTree& keys) {
  NACRE_ASSIGN(FrameBytes stored, FrameBytes::open(directory, path));
  FramesContent content;
  const bool is_unborn = is_unborn_log(path, stored);
  const ByteView header = stored.view(0, file_header_size_bytes);
  if (stored.error()) return tl::unexpected(*stored.error());
  if (is_unborn) return content;
  NACRE_ASSIGN(const FileSeal seal, FileSeal::open(keys, path, header));
  content.header = seal.header();
  NACRE_ASSIGN(content.walk, walk_frames(path, seal.header(), stored, &seal, &content.plain));
  const std::uint64_t from = content.walk.vouched_end;
  content.unvouched.resize(content.walk.end - from);
  for (std::size_t done = 0; done < content.unvouched.size();) {
    const ByteView part =
        stored.view(from + done, std::min(frame_size_bytes_max, content.unvouched.size() - done));
    std::copy(part.begin(), part.end(),
              content.unvouched.begin() + static_cast<std::ptrdiff_t>(done));
    done += part.size();
  }
  if (stored.error()) return tl::unexpected(*stored.error());
  return content;
}

Result<void> trim_frames(BackingDirectory& directory, std::string_view path, const KeyTree& keys) {
  NACRE_ASSIGN(const FramesContent content, read_frames(directory, path, keys));
  if (content.walk.end == 0) return {};  // no header
  NACRE_ASSIGN(auto file, directory.open(path, OpenMode::read_write));
  return file->truncate(content.walk.end);
}

}  // namespace nacre::metadata

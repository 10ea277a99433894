// SPDX-License-Identifier: Apache-2.0
// The reading half of frame_file.h. The rule: a bad frame that a later frame vouches for is damage,
// any other one is the torn tail of a crash. A frame whose CRC is right but whose tag, or whose
// place in the sequence, is wrong was made by somebody: no torn write looks like that.
#include <fmt/format.h>

#include <utility>
#include <vector>

#include "metadata/sealed_fs/frame_file.h"

namespace nacre::metadata {
namespace {

class Walker {
 public:
  Walker(std::string_view path, const FileHeader& header, ByteView stored, const FileSeal* seal,
         Bytes* plain)
      : path_(path), salt_(header.salt), stored_(stored), seal_(seal), plain_(plain) {}

  Result<FrameWalk> run() {
    std::size_t offset = file_header_size_bytes;
    while (const auto frame = parse_frame(salt_, stored_.subspan(offset))) {
      if (frame->header.sequence != walk_.frame_count) {
        return fail_at(seal_ == nullptr ? ErrorCode::corrupt : ErrorCode::tampered, offset,
                       fmt::format("frame {} stands where frame {} belongs", frame->header.sequence,
                                   walk_.frame_count));
      }
      const bool is_witness = (frame->header.flags & frame_flag_witness) != 0;
      if (is_witness ? !open_witness(*frame) : !open(*frame)) {
        return fail_at(ErrorCode::tampered, offset, "the tag is wrong");
      }
      walk_.frame_count++;
      if (!is_witness) walk_.plain_size += frame->header.plain_size;
      begins_.push_back(offset);
      const std::uint64_t synced = frame->header.synced_up_to;
      walk_.vouched_end = synced == 0 ? 0 : begins_[synced];
      walk_.is_complete = (frame->header.flags & frame_flag_complete) != 0;
      offset += frame->stored_size;
    }
    walk_.end = offset;
    NACRE_TRY(look_for_witness(offset));
    return walk_;
  }

 private:
  tl::unexpected<Error> fail_at(ErrorCode code, std::size_t offset, std::string_view what) const {
    return fail_in_file(code, path_,
                        fmt::format("frame {} at offset {}: {}", walk_.frame_count, offset, what));
  }

  bool open(const FrameView& frame) {
    if (seal_ == nullptr) return true;
    const std::size_t begin = plain_->size();
    plain_->resize(begin + frame.header.plain_size);
    return seal_->open(frame.header.sequence, 0, frame.authenticated, frame.ciphertext, frame.tag,
                       MutableByteView(*plain_).subspan(begin));
  }

  bool open_witness(const FrameView& frame) {
    if (seal_ == nullptr) return true;
    Bytes bytes(frame.header.plain_size);
    if (!seal_->open(frame.header.sequence, 0, frame.authenticated, frame.ciphertext, frame.tag,
                     bytes)) {
      return false;
    }
    walk_.witness = decode_log_witness(bytes);
    return true;
  }

  // Behind the end: does any frame say that frame_count was on the medium?
  Result<void> look_for_witness(std::size_t end) {
    for (std::size_t at = find_frame_magic(stored_, end); at < stored_.size();
         at = find_frame_magic(stored_, at + 1)) {
      const auto frame = parse_frame(salt_, stored_.subspan(at));
      if (!frame) continue;
      if (seal_ != nullptr) {
        Bytes scratch(frame->header.plain_size);
        if (!seal_->open(frame->header.sequence, 0, frame->authenticated, frame->ciphertext,
                         frame->tag, scratch)) {
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
  const FileSalt salt_;
  ByteView stored_;
  const FileSeal* seal_;
  Bytes* plain_;
  FrameWalk walk_;
  std::vector<std::uint64_t> begins_;  // of the frames so far
};

Result<Bytes> read_whole(BackingDirectory& directory, std::string_view path) {
  NACRE_ASSIGN(auto file, directory.open(path, OpenMode::read));
  NACRE_ASSIGN(const std::uint64_t size, file->size());
  if (size > frames_file_size_bytes_max) {
    return fail_in_file(ErrorCode::corrupt, path,
                        fmt::format("{} bytes are more than such a file ever holds", size));
  }
  Bytes stored(size);
  NACRE_ASSIGN(const std::size_t got, file->read(0, stored));
  // Less would pass for a tail that was never written.
  if (got == size) return stored;
  return fail_in_file(ErrorCode::io, path,
                      fmt::format("only {} of its {} bytes could be read", got, size));
}

}  // namespace

Result<FrameWalk> walk_frames(std::string_view path, const FileHeader& header, ByteView stored,
                              const FileSeal* seal, Bytes* plain) {
  NACRE_ASSIGN(FrameWalk walk, Walker(path, header, stored, seal, plain).run());
  if (header.file_class == FileClass::other && !walk.is_complete) {
    return fail_in_file(
        ErrorCode::corrupt, path,
        fmt::format("the file was damaged or cut: no whole frame at offset {}", walk.end));
  }
  return walk;
}

bool is_unborn_log(std::string_view path, ByteView stored) {
  if (parse_file_name(path).file_class != FileClass::log) return false;
  if (decode_file_header(stored)) return false;
  return find_frame_magic(stored, 0) == stored.size();
}

Result<FramesContent> read_frames(BackingDirectory& directory, std::string_view path,
                                  const KeyTree& keys) {
  NACRE_ASSIGN(const Bytes stored, read_whole(directory, path));
  FramesContent content;
  if (is_unborn_log(path, stored)) return content;
  NACRE_ASSIGN(const FileSeal seal, FileSeal::open(keys, path, stored));
  content.plain.reserve(stored.size());
  NACRE_ASSIGN(content.walk, walk_frames(path, seal.header(), stored, &seal, &content.plain));
  const auto [from, to] = std::pair(content.walk.vouched_end, content.walk.end);
  content.unvouched.assign(stored.begin() + static_cast<std::ptrdiff_t>(from),
                           stored.begin() + static_cast<std::ptrdiff_t>(to));
  return content;
}

Result<void> trim_frames(BackingDirectory& directory, std::string_view path, const KeyTree& keys) {
  NACRE_ASSIGN(const FramesContent content, read_frames(directory, path, keys));
  if (content.walk.end == 0) return {};  // no header
  NACRE_ASSIGN(auto file, directory.open(path, OpenMode::read_write));
  return file->truncate(content.walk.end);
}

}  // namespace nacre::metadata

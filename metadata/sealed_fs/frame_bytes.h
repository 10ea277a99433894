// SPDX-License-Identifier: Apache-2.0
// The stored bytes of a frames file, seen through a window. The file's size is not authenticated,
// so memory does not grow with it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "metadata/backing/backing.h"
#include "metadata/sealed_fs/frame_layout.h"

namespace nacre::metadata {

class FrameBytes {
 public:
  // Opens the file at path for reading. Error: corrupt if it is larger than such a file ever is.
  static Result<FrameBytes> open(BackingDirectory& directory, std::string_view path);
  // The same for an open file.
  static Result<FrameBytes> of(std::unique_ptr<BackingFile> file, std::string_view path);
  // For bytes in memory, which must outlive this object.
  explicit FrameBytes(ByteView whole) : size_(whole.size()), memory_(whole) {}

  std::uint64_t size() const { return size_; }
  // Returns the bytes at offset: size of them, or fewer only at the end. They are valid until the
  // next call. Bytes that cannot be read are zeros, and error() says why: fewer bytes would pass
  // for a tail that was never written.
  ByteView view(std::uint64_t offset, std::size_t size);
  ByteView frame_at(std::uint64_t offset) { return view(offset, frame_size_bytes_max); }
  const std::optional<Error>& error() const { return error_; }

  // Returns the first place at or after offset that has a frame's magic, or size() if there is
  // none.
  std::uint64_t find_magic(std::uint64_t offset);
  // Whether a crash interrupted the creation of the log: then it has no header and never had a
  // frame.
  bool is_unborn_log();

 private:
  FrameBytes() = default;
  void load(std::uint64_t offset);

  std::string path_;
  std::unique_ptr<BackingFile> file_;  // if there is none, memory_ has all of it
  std::uint64_t size_ = 0;
  ByteView memory_;
  Bytes window_;
  std::uint64_t window_begin_ = 0;
  std::optional<Error> error_;
};

// Bounds the bytes whose checksums a search for frames computes. Without a bound a hostile file
// full of headers would cost the square of its size.
class SearchBudget {
 public:
  // Takes the candidate at the beginning of bytes from the budget. Returns false if nothing is
  // left.
  bool take(ByteView bytes);

 private:
  std::uint64_t left_bytes_ = 256u << 20;
};

}  // namespace nacre::metadata

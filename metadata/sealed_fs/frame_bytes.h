// SPDX-License-Identifier: Apache-2.0
// The stored bytes of a frames file, looked at through a window: nobody has authenticated its size,
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
  // The file at path, to be read: corrupt where it is larger than such a file ever is.
  static Result<FrameBytes> open(BackingDirectory& directory, std::string_view path);
  // The same of an open file.
  static Result<FrameBytes> of(std::unique_ptr<BackingFile> file, std::string_view path);
  // Bytes in memory, which outlive this.
  explicit FrameBytes(ByteView whole) : size_(whole.size()), memory_(whole) {}

  std::uint64_t size() const { return size_; }
  // The bytes at offset, at most size of them and fewer only at the end; until the next call. Where
  // they cannot be read they are zeros, and error() says why: less would pass for a tail that was
  // never written.
  ByteView view(std::uint64_t offset, std::size_t size);
  ByteView frame_at(std::uint64_t offset) { return view(offset, frame_size_bytes_max); }
  const std::optional<Error>& error() const { return error_; }

  // The first place at or after offset where a frame's magic stands; size() when there is none.
  std::uint64_t find_magic(std::uint64_t offset);
  // A log whose creation was cut short by a crash has no header: then it never had a frame.
  bool is_unborn_log();

 private:
  FrameBytes() = default;
  void load(std::uint64_t offset);

  std::string path_;
  std::unique_ptr<BackingFile> file_;  // none: memory_ is all of it
  std::uint64_t size_ = 0;
  ByteView memory_;
  Bytes window_;
  std::uint64_t window_begin_ = 0;
  std::optional<Error> error_;
};

// Bounds the bytes whose checksums a search for frames computes: a hostile file full of headers
// must not cost the square of its size.
class SearchBudget {
 public:
  // Of the candidate that stands at the beginning of bytes. False when there is nothing left.
  bool take(ByteView bytes);

 private:
  std::uint64_t left_bytes_ = 256u << 20;
};

}  // namespace nacre::metadata

// SPDX-License-Identifier: Apache-2.0
// Frames files: how they are read and appended to, and the walk that tells damage from a torn tail.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "metadata/backing/backing.h"
#include "metadata/sealed_fs/file_seal.h"
#include "metadata/sealed_fs/frame_bytes.h"
#include "metadata/sealed_fs/frame_layout.h"

namespace nacre::metadata {

// The parts from which a frame is made. Files that are not padded use neither position nor
// sealed_size.
struct FrameContent {
  ByteView bytes;
  std::uint64_t position = 0;   // bytes of the file's content before these
  std::size_t sealed_size = 0;  // n of a padded frame; at least bytes + padded_head_bytes
};
// Seals a frame and appends it to out. Sets header.plain_size. Returns the frame's tag.
FrameTag seal_frame(const FileSeal& seal, FrameHeader header, const FrameContent& content,
                    Bytes& out);
// n of a padded frame that is written alone.
std::size_t padded_frame_size(std::size_t content_size);
// Appends the frame's content to out. Returns false if the tag is wrong, or if the frame holds
// something that no writer makes; then out is as long as it was. position gets the position that a
// padded frame names.
bool open_frame(const FileSeal& seal, const FrameView& frame, Bytes& out,
                std::optional<std::uint64_t>* position = nullptr);

// What a walk over a frames file found.
struct FrameWalk {
  std::uint64_t frame_count = 0;
  // of the content; if there is no seal and the file is padded, with padding
  std::uint64_t plain_size = 0;
  std::uint64_t end = 0;  // stored offset after the last frame
  // The stored offset up to which the last frame vouches for the frames below: they were on the
  // medium when that frame was written. 0 if it vouches for none, or if there is no frame.
  std::uint64_t vouched_end = 0;
  // whether the last frame says that the content is whole up to it
  bool is_complete = false;
  std::optional<LogWitness> witness;  // the last one, if frames are opened
  std::optional<ManifestLink> link;   // of a manifest of format 2, if frames are opened
  FrameTag last_tag = {};             // of the last frame
  std::vector<FrameTag> tags;         // of a manifest: of all frames
};
// Walks over stored, which is a whole file, header included. With seal, opens the frames and
// appends their content to plain. Without seal, only CRC and structure decide. Errors: corrupt,
// tampered, io.
Result<FrameWalk> walk_frames(std::string_view path, const FileHeader& header, FrameBytes& stored,
                              const FileSeal* seal, Bytes* plain);
inline Result<FrameWalk> walk_frames(std::string_view path, const FileHeader& header,
                                     ByteView stored, const FileSeal* seal, Bytes* plain) {
  FrameBytes bytes(stored);
  return walk_frames(path, header, bytes, seal, plain);
}

// The state of a frames file at one moment: which file it is, of which branch of history, and how
// far it goes.
struct FramesEnd {
  FileSalt salt = {};
  std::uint64_t frame_count = 0;
  FrameTag last_tag = {};
  friend bool operator==(const FramesEnd&, const FramesEnd&) = default;
};

// Whether path is a log that never had a frame (FrameBytes::is_unborn_log()).
bool is_unborn_log(std::string_view path, FrameBytes& stored);

// The content of a frames file. Errors: corrupt (damage; a small file that is not complete),
// tampered.
struct FramesContent {
  FileHeader header;  // the default if the log is unborn
  Bytes plain;
  FrameWalk walk;
  Bytes unvouched;  // the stored bytes from walk.vouched_end to walk.end
};
FramesEnd end_of(const FramesContent& content);
Result<FramesContent> read_frames(BackingDirectory& directory, std::string_view path,
                                  const KeyTree& keys);

// Cuts off what follows the last frame of a log: space written ahead, or a torn tail.
Result<void> trim_frames(BackingDirectory& directory, std::string_view path, const KeyTree& keys);

// Appends to a new frames file. Not thread-safe. Until open() succeeds, nothing is written.
//
// Sealed frames stay in memory until they are written, so after an error the same bytes can be
// tried again at the same place: no nonce is ever used for a second plain text. A sync that failed
// is not tried again: the system may have dropped what it could not write.
class FrameWriter {
 public:
  FrameWriter(std::shared_ptr<BackingDirectory> directory, FileSeal seal);
  // Creates or empties the file. A log is durable then, name and all, with what was appended
  // before.
  Result<void> open();
  bool is_open() const { return file_ != nullptr; }

  // Takes the bytes in any case: an error says that they are not written yet.
  Result<void> append(ByteView bytes);
  // Appends a witness to a log, or the link to a new manifest. As after append(), it is not written
  // yet.
  void append_witness(const LogWitness& witness);
  void append_link(const ManifestLink& link);
  // Hands what was appended to the operating system, so that it survives the process. For a small
  // file this waits until the file is whole.
  Result<void> flush();
  // Makes what was appended durable. A small file is then whole.
  Result<void> sync();
  // Does what flush() does, and cuts off the space written ahead.
  Result<void> close();

  // Continues in a file with the same content, sealed otherwise, that has replaced this one. May be
  // called only while is_synced().
  struct Replacement {
    FileSeal seal;
    std::unique_ptr<BackingFile> file;
    std::uint64_t stored_bytes = 0;
    std::uint64_t frame_count = 0;
    std::uint64_t content_bytes = 0;
    FrameTag last_tag = {};
  };
  void continue_in(Replacement replacement);

  // Whether all that was appended is written, or durable.
  bool is_written() const { return pending_.empty() && output_.empty(); }
  bool is_synced() const { return is_written() && synced_up_to_ == next_sequence_; }
  std::uint64_t stored_bytes() const { return end_; }  // without the space written ahead
  std::uint64_t synced_frames() const { return synced_up_to_; }
  const FrameTag& synced_tag() const { return synced_tag_; }  // of the last of these frames
  FramesEnd synced_end() const { return {seal_.header().salt, synced_up_to_, synced_tag_}; }
  const FileHeader& header() const { return seal_.header(); }
  const std::string& path() const { return seal_.path(); }

 private:
  void add_frame(std::uint32_t flags, ByteView content, std::size_t sealed_size);
  void seal_full();
  void seal_pending(std::uint32_t flags);
  bool is_padded() const { return seal_.header().is_padded; }
  std::size_t content_bytes_max() const;  // of a frame
  Result<void> write_out();
  Result<void> extend(std::uint64_t end);
  bool is_small_file() const { return seal_.header().file_class == FileClass::other; }
  bool is_log() const { return seal_.header().file_class == FileClass::log; }

  const std::shared_ptr<BackingDirectory> directory_;
  FileSeal seal_;
  std::unique_ptr<BackingFile> file_;
  Bytes pending_;                    // plain bytes of the next frame
  std::uint64_t content_bytes_ = 0;  // of the frames that are sealed
  // if padded: bytes sealed since the last flush, before pending_
  std::uint64_t run_bytes_ = 0;
  Bytes output_;                 // sealed, not yet written
  std::uint64_t end_ = 0;        // where output_ goes
  std::uint64_t allocated_ = 0;  // the size of the file, which holds zeros past end_
  std::uint64_t next_sequence_ = 0;
  std::uint64_t synced_up_to_ = 0;
  FrameTag last_tag_ = {};
  FrameTag synced_tag_ = {};
  bool is_complete_ = false;  // whether the last frame is
  bool is_closed_ = false;    // then no more space is written ahead
  std::optional<Error> sync_error_;
};

}  // namespace nacre::metadata

// SPDX-License-Identifier: Apache-2.0
// Table files: random reads of authenticated pages, and the writer that makes them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "gpu_engine/base/mutex.h"
#include "metadata/backing/backing.h"
#include "metadata/sealed_fs/file_seal.h"

namespace nacre::metadata {

// Reads a finished table file. Thread-safe.
class PageReader {
 public:
  // The file has taken the place of another with the same content: goes on there. Errors: as
  // open(); then it reads the old one.
  Result<void> reopen(BackingDirectory& directory, const KeyTree& keys);
  // corrupt when the size or the last page show that the file was cut or grew.
  static Result<std::unique_ptr<PageReader>> open(BackingDirectory& directory,
                                                  std::string_view path, const KeyTree& keys);
  std::uint64_t size() const { return plain_size_; }
  // Reads up to out.size() bytes at offset, fewer only where the file ends. Opens exactly the pages
  // that the range touches. corrupt (checksum), tampered (tag).
  Result<std::size_t> read(std::uint64_t offset, MutableByteView out) const;

 private:
  PageReader(std::unique_ptr<BackingFile> file, FileSeal seal, std::uint64_t sealed_size);
  // Of a padded file: what its last page says of the size.
  Result<void> take_padded_size(ByteView last_page) NACRE_REQUIRES(mutex_);
  Result<void> check_last_page() NACRE_REQUIRES(mutex_);
  Result<std::size_t> read_locked(std::uint64_t offset, MutableByteView out) const
      NACRE_REQUIRES_SHARED(mutex_);
  // Opens pages [first, first + count) from their stored bytes into the part of out they cover.
  Result<void> open_pages(ByteView stored, std::uint64_t first, std::uint64_t offset,
                          MutableByteView out) const NACRE_REQUIRES_SHARED(mutex_);

  mutable SharedMutex mutex_;  // held while the file is read
  std::unique_ptr<BackingFile> file_ NACRE_GUARDED_BY(mutex_);
  FileSeal seal_ NACRE_GUARDED_BY(mutex_);
  std::uint64_t sealed_size_ NACRE_GUARDED_BY(mutex_);  // of what all pages hold
  std::uint64_t plain_size_;  // of the content, which is less in a padded file; never changes
};

// Checks one stored page but not its tag; none when CRC or final bit are wrong. Shared with the
// scrub, which has no key.
struct PageView {
  ByteView ciphertext;
  ByteView tag;
  std::uint32_t state = 0;
};
std::optional<PageView> parse_page(const FileSalt& salt, std::uint64_t page, bool is_last,
                                   ByteView stored);

// Writes a table file from front to back. Not thread-safe. After an error every later call gives
// that error: a page whose fate is unknown is never written again.
class PageWriter {
 public:
  // Creates or empties the file. padding: the volume's.
  static Result<std::unique_ptr<PageWriter>> create(BackingDirectory& directory,
                                                    std::string_view path, const KeyTree& keys,
                                                    engine::Padding padding);
  // Of a file that is to take the place of another: seal is of its lasting path.
  static Result<std::unique_ptr<PageWriter>> create_at(BackingDirectory& directory,
                                                       std::string_view path, FileSeal seal);
  Result<void> append(ByteView bytes);
  Result<void> flush() { return {}; }  // a table that is not finished is of no use to anybody
  // Makes what was appended a whole file and durable. More may be appended: the last page is then
  // sealed again, under a nonce of its own.
  Result<void> sync();
  // Makes what was appended a whole file; not durable.
  Result<void> close();
  // Begins writing to the medium what has left the buffer.
  void start_writeback();

 private:
  PageWriter(std::unique_ptr<BackingFile> file, FileSeal seal);
  void seal_page(std::uint64_t index, ByteView plain, bool is_final);
  void seal_padded_end();
  Result<void> write_out();
  Result<void> finish();
  Result<void> remember(Result<void> result);

  std::unique_ptr<BackingFile> file_;
  FileSeal seal_;
  Bytes page_;                    // plain bytes of the current page; may be full
  std::uint64_t page_index_ = 0;  // of the current page
  std::uint32_t generation_ = 0;  // the next one of the current page
  // That of pages behind it: above the one of what padding was sealed in their places.
  std::uint32_t next_page_generation_ = 0;
  bool finished_ = false;  // the current page is on its way, as the final one
  Bytes output_;           // stored bytes not yet written
  std::uint64_t output_offset_ = 0;
  std::uint64_t writeback_offset_ = 0;
  std::optional<Error> error_;
};

}  // namespace nacre::metadata

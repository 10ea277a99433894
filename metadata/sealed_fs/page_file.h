// SPDX-License-Identifier: Apache-2.0
// Table files: random reads of authenticated pages, and the writer that makes them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "gpu_engine/base/mutex.h"
#include "metadata/backing/backing.h"
#include "metadata/sealed_fs/file_seal.h"

namespace nacre::metadata {

// Reads a finished table file. Thread-safe.
class PageReader {
 public:
  // Continues in the file that now has the name, with the same content. Errors: as of open(); after
  // one, this object still reads the old file.
  Result<void> reopen(BackingDirectory& directory, const KeyTree& keys);
  // Error: corrupt if the size or the last page shows that the file was cut or grew.
  static Result<std::unique_ptr<PageReader>> open(BackingDirectory& directory,
                                                  std::string_view path, const KeyTree& keys);
  std::uint64_t size() const { return plain_size_; }
  std::string path() const {
    const SharedLock lock(mutex_);
    return seal_.path();
  }
  FileSalt salt() const {
    const SharedLock lock(mutex_);
    return seal_.header().salt;
  }
  // Reads up to out.size() bytes at offset, and fewer only if the file ends there. Opens exactly
  // the pages that the range touches. Errors: corrupt (checksum), tampered (tag).
  Result<std::size_t> read(std::uint64_t offset, MutableByteView out) const;

 private:
  PageReader(std::unique_ptr<BackingFile> file, FileSeal seal, std::uint64_t sealed_size);
  // In a padded file, takes the size from the last page.
  Result<void> take_padded_size(ByteView last_page) NACRE_REQUIRES(mutex_);
  Result<void> check_last_page() NACRE_REQUIRES(mutex_);
  Result<std::size_t> read_locked(std::uint64_t offset, MutableByteView out) const
      NACRE_REQUIRES_SHARED(mutex_);
  // Opens pages [first, first + count) from their stored bytes into the part of out that they
  // cover.
  Result<void> open_pages(ByteView stored, std::uint64_t first, std::uint64_t offset,
                          MutableByteView out) const NACRE_REQUIRES_SHARED(mutex_);

  mutable SharedMutex mutex_;  // guards what follows; held during a read
  std::unique_ptr<BackingFile> file_ NACRE_GUARDED_BY(mutex_);
  FileSeal seal_ NACRE_GUARDED_BY(mutex_);
  // Bytes in all pages.
  std::uint64_t sealed_size_ NACRE_GUARDED_BY(mutex_);
  std::uint64_t plain_size_;  // bytes of content, which are fewer in a padded file
};

// The size of the content of a table file. The file is opened only where tables can be padded.
// Errors: as of PageReader::open().
Result<std::uint64_t> table_content_size(BackingDirectory& directory, std::string_view path,
                                         const KeyTree& keys);

// Checks one stored page except its tag. Returns none if CRC or final bit is wrong. Shared with the
// scrub, which has no key.
struct PageView {
  ByteView ciphertext;
  ByteView tag;
  std::uint32_t state = 0;
};
std::optional<PageView> parse_page(const FileSalt& salt, std::uint64_t page, bool is_last,
                                   ByteView stored);

// Writes a table file from front to back. Not thread-safe. After an error every later call returns
// that error: a page that may or may not have been written is never written again.
class PageWriter {
 public:
  // Creates or empties the file. padding is the volume's.
  static Result<std::unique_ptr<PageWriter>> create(BackingDirectory& directory,
                                                    std::string_view path, const KeyTree& keys,
                                                    engine::Padding padding);
  // The same for a file that is to take the place of another: seal is that of its lasting path.
  static Result<std::unique_ptr<PageWriter>> create_at(BackingDirectory& directory,
                                                       std::string_view path, FileSeal seal);
  const FileHeader& header() const { return seal_.header(); }
  Result<void> append(ByteView bytes);
  Result<void> flush() { return {}; }  // a table that is not finished is of no use
  // Makes a whole, durable file of what was appended. If more is appended later, the last page is
  // sealed again, under a nonce of its own.
  Result<void> sync();
  // Makes a whole file of what was appended, which need not be durable.
  Result<void> close();
  // Begins to write to the medium what has left the buffer.
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
  std::uint32_t generation_ = 0;  // the next generation of the current page
  // The next generation of pages after the current one: above the generation of padding that was
  // sealed in their places.
  std::uint32_t next_page_generation_ = 0;
  bool finished_ = false;  // the current page is on its way, as the final one
  Bytes output_;           // stored bytes not yet written
  std::uint64_t output_offset_ = 0;
  std::uint64_t writeback_offset_ = 0;
  std::optional<Error> error_;
};

}  // namespace nacre::metadata

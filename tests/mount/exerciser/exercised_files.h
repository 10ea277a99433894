// SPDX-License-Identifier: Apache-2.0
// Files of a file system, and the plain arrays that say what they must hold. Each operation is done
// to both, and what is read is compared at once.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tests/mount/exerciser/kernel_calls.h"
#include "tests/mount/exerciser/operation.h"

namespace nacre::tests {

struct ExercisedOptions {
  std::uint64_t file_size_max = 600'000;  // what would make a file larger is cut off there
  std::uint64_t read_boundary = 1;        // offsets and sizes are multiples of these
  std::uint64_t write_boundary = 1;
  // A command of the shell, during which no file is open; empty: upkeep does nothing.
  std::string upkeep;
  bool drops_caches = false;  // check has the kernel drop the pages of every file (root)
};

class ExercisedFiles {
 public:
  // Makes empty files PATH.0, PATH.1, …, which go with the object, or stay, if asked.
  ExercisedFiles(std::string path, std::size_t count, ExercisedOptions options, KernelCalls& calls);
  ~ExercisedFiles();
  ExercisedFiles(const ExercisedFiles&) = delete;
  ExercisedFiles& operator=(const ExercisedFiles&) = delete;

  // Makes the call. Returns what went wrong: a failed call, or bytes or a size that differ from
  // what was written.
  std::optional<std::string> run(const Operation& operation);
  std::uint64_t size_of(std::size_t file) const { return files_[file]->expected.size(); }
  std::size_t count() const { return files_.size(); }
  // Closes the files, and leaves them where they are.
  void keep();

 private:
  struct File {
    std::string path;
    bool exists = false;
    int plain = -1, direct = -1;
    std::vector<std::byte> expected;
  };

  void open(File& file);
  void close(File& file);
  void read(File& file, const Operation& operation);
  void write(File& file, const Operation& operation);
  void mapped_read(File& file, const Operation& operation);
  void mapped_write(File& file, const Operation& operation);
  void truncate(File& file, std::uint64_t size);
  void allocate(File& file, const Operation& operation);
  void copy(File& from, File& to, const Operation& operation);
  void check(File& file, const Operation& operation);
  void upkeep();

  int descriptor(File& file, Channel channel);
  // In pieces. Returns how many bytes there were.
  std::size_t transfer(Transfer whole, const File& file, const Operation& operation,
                       std::uint64_t boundary);
  void set_expected(File& file, std::uint64_t offset, std::span<const std::byte> bytes);
  void expect_size(const File& file);
  void expect_bytes(const File& file, std::uint64_t offset, std::span<const std::byte> found);

  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  // Aligned as O_DIRECT wants it; what it held is gone.
  std::span<std::byte> buffer(std::size_t size);

  ExercisedOptions options_;
  KernelCalls& calls_;
  std::vector<std::unique_ptr<File>> files_;
  std::unique_ptr<std::byte, Free> buffer_;
  std::size_t buffer_size_ = 0;
  bool keeps_ = false;
};

}  // namespace nacre::tests

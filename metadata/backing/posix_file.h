// SPDX-License-Identifier: Apache-2.0
// File descriptors that close themselves, and open files of a volume's folder.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "metadata/backing/backing.h"

namespace nacre::metadata {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int number) : number_(number) {}
  FileDescriptor(FileDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    FileDescriptor taken(std::move(other));  // closes the descriptor that this object held
    std::swap(number_, taken.number_);
    return *this;
  }
  ~FileDescriptor();

  int get() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }

 private:
  int number_ = -1;
};

// open(2) relative to a folder, repeated if a signal interrupts it. It does not follow a symbolic
// link in the last part, the descriptor is not inherited by child processes, and it neither waits
// for a device nor becomes attached to a terminal. -1 sets errno.
FileDescriptor open_at(int folder, const std::string& path, int flags, unsigned mode = 0);

// Which files a program takes: the command line takes FIFOs too, for process substitution.
enum class FileKinds : std::uint8_t { all, regular };
// Opens a file for reading without waiting for the other end of a FIFO. Symbolic links are
// followed. Errors: is_directory; invalid_argument for other files that are not regular; the
// system's.
Result<FileDescriptor> open_regular_file(const std::string& path);

// Makes an open file of a descriptor. where is its path in messages.
std::unique_ptr<BackingFile> make_posix_file(FileDescriptor descriptor, std::string where);

}  // namespace nacre::metadata

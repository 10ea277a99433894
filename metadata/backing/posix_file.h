// SPDX-License-Identifier: Apache-2.0
// File descriptors that close themselves, and open files of a real volume directory.
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
    FileDescriptor taken(std::move(other));  // closes what this one held
    std::swap(number_, taken.number_);
    return *this;
  }
  ~FileDescriptor();

  int get() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }

 private:
  int number_ = -1;
};

// open(2) relative to a folder, tried again when a signal interrupts it. Follows no symbolic link
// in the last part, leaks into no child, and neither waits for nor becomes attached to a device.
// -1 sets errno.
FileDescriptor open_at(int folder, const std::string& path, int flags, unsigned mode = 0);

// where: for messages.
std::unique_ptr<BackingFile> make_posix_file(FileDescriptor descriptor, std::string where);

}  // namespace nacre::metadata

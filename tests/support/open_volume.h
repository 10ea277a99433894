// SPDX-License-Identifier: Apache-2.0
// A volume that is open, as tests hold it: -> calls the file system, mounted() has the parts
// beneath.
#pragma once

#include <memory>
#include <utility>

#include "fs/mount/mounted.h"

namespace nacre::tests {

class OpenVolume {
 public:
  OpenVolume() = default;
  OpenVolume(std::unique_ptr<fs::Mounted> mounted) : mounted_(std::move(mounted)) {}

  fs::Volume* operator->() const { return &mounted_->volume(); }
  fs::Volume& operator*() const { return mounted_->volume(); }
  explicit operator bool() const { return mounted_ != nullptr; }
  fs::Mounted& mounted() const { return *mounted_; }
  void reset() { mounted_.reset(); }  // without mounted().close(): as after a crash

 private:
  std::unique_ptr<fs::Mounted> mounted_;
};

}  // namespace nacre::tests

// SPDX-License-Identifier: Apache-2.0
// What the scrub of a mounted volume may touch: it reads beside everything else that goes on, and
// keeps one row.
#pragma once

#include <string>

#include "fs/store/segment_store.h"
#include "gpu_engine/engine.h"
#include "metadata/backing/backing.h"
#include "metadata/tables/database.h"

namespace nacre::fs {

// Thread-safe. Belongs to the volume.
class ScrubSubject {
 public:
  virtual metadata::BackingDirectory& directory() = 0;
  virtual const metadata::Database& database() = 0;
  virtual SegmentStore& segments() = 0;
  virtual engine::Engine& engine() = 0;
  // Puts the row "scrub" of the table system; durable with the next commit, or, where it must be so
  // at once, when this returns. Read-only it does nothing.
  virtual Result<> save_scrub(std::string row, bool at_once) = 0;

 protected:
  ~ScrubSubject() = default;
};

}  // namespace nacre::fs

// SPDX-License-Identifier: Apache-2.0
// Payloads with their memory, which are used again and again. The segment store hands them to the
// engine.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "gpu_engine/base/mutex.h"
#include "gpu_engine/engine.h"

namespace nacre::fs {

// One payload and its arenas. Batches are cut so that they fit into them.
struct Work {
  engine::Arena input, output;
  engine::Payload payload;
};

// Thread-safe. The engine outlives the pool.
class WorkPool {
 public:
  // size_bytes is the size of each arena. At most spare_count_max works wait for their next use,
  // since memory that devices reach is expensive to make and to keep.
  WorkPool(engine::Engine& engine, const engine::VolumeId& volume_id, std::size_t size_bytes,
           std::size_t spare_count_max)
      : engine_(engine),
        volume_id_(volume_id),
        size_bytes_(size_bytes),
        spare_count_max_(spare_count_max) {}

  std::size_t size_bytes() const { return size_bytes_; }
  Result<std::unique_ptr<Work>> take();  // error: out_of_memory
  void give_back(std::unique_ptr<Work> work);

 private:
  engine::Engine& engine_;
  const engine::VolumeId volume_id_;
  const std::size_t size_bytes_;
  const std::size_t spare_count_max_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Work>> spare_ NACRE_GUARDED_BY(mutex_);
};

}  // namespace nacre::fs

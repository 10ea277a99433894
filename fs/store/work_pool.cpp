// SPDX-License-Identifier: Apache-2.0
#include "fs/store/work_pool.h"

namespace nacre::fs {

Result<std::unique_ptr<Work>> WorkPool::take() {
  {
    LockGuard lock(mutex_);
    if (!spare_.empty()) {
      auto work = std::move(spare_.back());
      spare_.pop_back();
      return work;
    }
  }
  auto work = std::make_unique<Work>();
  NACRE_ASSIGN(work->input, engine_.allocate(size_bytes_));
  NACRE_ASSIGN(work->output, engine_.allocate(size_bytes_));
  work->payload.input = work->input.data();
  work->payload.input_size = work->input.size();
  work->payload.output = work->output.data();
  work->payload.output_size = work->output.size();
  work->payload.volume_id = volume_id_;
  return work;
}

void WorkPool::give_back(std::unique_ptr<Work> work) {
  work->payload.clear();
  work->payload.input = work->input.data();
  work->payload.input_size = work->input.size();
  work->payload.output = work->output.data();
  work->payload.output_size = work->output.size();
  LockGuard lock(mutex_);
  if (spare_.size() < spare_count_max_) spare_.push_back(std::move(work));
}

}  // namespace nacre::fs

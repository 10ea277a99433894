// SPDX-License-Identifier: Apache-2.0
#include "fs/crypt/batch_ring.h"

#include <algorithm>

namespace nacre::fs {

BatchRing::~BatchRing() {
  UniqueLock lock(mutex_);
  changed_.wait(lock, [&]() NACRE_REQUIRES(mutex_) {
    return std::all_of(sent_.begin(), sent_.end(), [](const Batch* b) { return b->is_done; });
  });
}

Result<Batch*> BatchRing::take() {
  Batch* batch = nullptr;
  UniqueLock lock(mutex_);
  changed_.wait(lock, [&]() NACRE_REQUIRES(mutex_) {
    return is_stopped_ || !free_.empty() || all_.size() < sizes_.count;
  });
  if (is_stopped_) return fail(ErrorCode::cancelled, "another part of the run failed");
  if (!free_.empty()) {
    batch = free_.back();
    free_.pop_back();
  } else {
    auto made = std::make_unique<Batch>();
    NACRE_ASSIGN(made->input, engine_.allocate(sizes_.input_bytes));
    NACRE_ASSIGN(made->output, engine_.allocate(sizes_.output_bytes));
    batch = made.get();
    all_.push_back(std::move(made));
  }
  batch->payload.clear();
  batch->payload.input = batch->input.data();
  batch->payload.input_size = batch->input.size();
  batch->payload.output = batch->output.data();
  batch->payload.output_size = batch->output.size();
  batch->pieces.clear();
  batch->input_used = batch->output_used = 0;
  batch->number = ++taken_count_;
  batch->is_done = false;
  return batch;
}

void BatchRing::send(Batch* batch) {
  const bool is_empty = batch->payload.messages.empty();
  {
    const LockGuard lock(mutex_);
    sent_.push_back(batch);
    batch->is_done = is_empty;
    if (is_empty) changed_.notify_all();
  }
  if (is_empty) return;
  engine_.submit(batch->payload, [this, batch] {
    // The lock is held to the end, because a waiting thread may destroy the ring as soon as it gets
    // it.
    const LockGuard lock(mutex_);
    batch->is_done = true;
    changed_.notify_all();
  });
}

void BatchRing::close() {
  const LockGuard lock(mutex_);
  is_closed_ = true;
  changed_.notify_all();
}

Batch* BatchRing::next() {
  UniqueLock lock(mutex_);
  changed_.wait(lock, [&]() NACRE_REQUIRES(mutex_) {
    return sent_.empty() ? is_closed_ : sent_.front()->is_done;
  });
  if (sent_.empty()) return nullptr;
  Batch* batch = sent_.front();
  sent_.pop_front();
  return batch;
}

void BatchRing::give_back(Batch* batch) {
  const LockGuard lock(mutex_);
  batch->pieces.clear();  // also drops the last references to tasks that are over
  free_.push_back(batch);
  changed_.notify_all();
}

void BatchRing::stop() {
  const LockGuard lock(mutex_);
  is_stopped_ = true;
  changed_.notify_all();
}

}  // namespace nacre::fs

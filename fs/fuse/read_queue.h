// SPDX-License-Identifier: Apache-2.0
// Keeps threads free for writers. Only a part of the threads serves reads (and copies, which read)
// at a time, since a read waits for as long as its disk does. Further reads wait here, and go to
// the next thread that has finished its read. The queue holds no more than the kernel has sent: one
// request for each waiting process, and its background requests.
//
// Thread-safe.
#pragma once

#include <deque>
#include <optional>

#include "fs/control/request_metrics.h"
#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/mutex.h"

namespace nacre::fs {

class ReadQueue {
 public:
  // At least a quarter of the threads, and at least one of two, serve no reads.
  explicit ReadQueue(unsigned thread_count);

  // If it returns true, the caller is to serve this request now, and then what next() returns,
  // until that returns none. If it returns false, the request is kept. Throws std::bad_alloc.
  bool begin(ByteView request, const RequestMark& mark);
  struct Waiting {
    Bytes request;
    RequestMark mark;
  };
  std::optional<Waiting> next();

 private:
  const unsigned count_max_;
  Mutex mutex_;
  unsigned count_ NACRE_GUARDED_BY(mutex_) = 0;
  std::deque<Waiting> waiting_ NACRE_GUARDED_BY(mutex_);
};

}  // namespace nacre::fs

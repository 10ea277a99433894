// SPDX-License-Identifier: Apache-2.0
// Keeps threads free for whoever writes: only so many serve reads (and copies, which read) at once,
// since a read waits for as long as its disk does. What comes beyond waits here, and goes to the
// next thread that is done with its read. A queue holds no more than the kernel has sent: a request
// a waiting process, and its background requests.
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
  // Of so many threads at least a quarter, and one where there are two, serve no reads.
  explicit ReadQueue(unsigned thread_count);

  // True: the caller is to serve this request now, then what next() gives, until it gives none.
  // False: the request is kept. Throws std::bad_alloc.
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

// SPDX-License-Identifier: Apache-2.0
// The kernel sets a time on a pipe of this process, and that time is read back. Pipes have plain
// times: reading one does not make the next one finer.
#include "fs/volume/kernel_clock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>

#include "gpu_engine/base/mutex.h"

namespace nacre::fs {

namespace {

using metadata::Timestamp;

Timestamp to_stamp(const timespec& time) {
  return {time.tv_sec, static_cast<std::uint32_t>(time.tv_nsec)};
}

Timestamp read_clock(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return to_stamp(time);
}

class StampedPipe {
 public:
  StampedPipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return;
    close(ends[1]);
    fd_ = ends[0];
  }
  // Returns false if the kernel sets no times on pipes.
  bool stamp(Timestamp& out) {
    const LockGuard lock(mutex_);  // seconds and nanoseconds are two words in the kernel
    struct stat status = {};
    if (fd_ < 0 || futimens(fd_, nullptr) != 0 || fstat(fd_, &status) != 0) return false;
    out = to_stamp(status.st_mtim);
    return true;
  }

 private:
  Mutex mutex_;
  int fd_ = -1;  // for the life of the process
};

}  // namespace

Timestamp kernel_now() {
  static StampedPipe pipe;
  const Timestamp least = read_clock(CLOCK_REALTIME_COARSE);
  Timestamp stamped;
  if (!pipe.stamp(stamped)) return least;
  // The time lies between the two clocks, unless this kernel takes the times of pipes from another
  // clock, or the date was set.
  if (stamped < least || stamped > read_clock(CLOCK_REALTIME)) return least;
  return stamped;
}

}  // namespace nacre::fs

// SPDX-License-Identifier: Apache-2.0
// For LD_PRELOAD: adds a number of seconds to the date. A test may change that number at any time,
// in the file that NACRE_CLOCK_STEP names (8 bytes, in the machine's byte order). Clocks that only
// go forward stay as they are.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <ctime>

namespace {

const volatile std::int64_t* map_step() {
  static const std::int64_t none = 0;
  const char* path = std::getenv("NACRE_CLOCK_STEP");
  const int file = path == nullptr ? -1 : ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return &none;
  void* mapped = ::mmap(nullptr, sizeof none, PROT_READ, MAP_SHARED, file, 0);
  ::close(file);
  return mapped == MAP_FAILED ? &none : static_cast<const std::int64_t*>(mapped);
}

std::int64_t step() {
  static const volatile std::int64_t* const place = map_step();
  return *place;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) {
  const long result = ::syscall(SYS_clock_gettime, clock, time);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    time->tv_sec += step();
  }
  return static_cast<int>(result);
}

int gettimeofday(timeval* time, void*) {
  timespec now{};
  const int result = clock_gettime(CLOCK_REALTIME, &now);
  *time = {now.tv_sec, now.tv_nsec / 1000};
  return result;
}

time_t time(time_t* out) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != nullptr) *out = now.tv_sec;
  return now.tv_sec;
}

}  // extern "C"

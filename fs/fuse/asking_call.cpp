// SPDX-License-Identifier: Apache-2.0
#include "fs/fuse/asking_call.h"

#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "fs/fuse/thread_folder.h"

namespace nacre::fs {

namespace {

// A thread that has just asked may not be asleep yet. It is then shown as running.
constexpr int look_count_max = 50;
constexpr std::chrono::microseconds look_pause{100};

// 32-bit programs have other numbers. None of their calls that write has a number of reading_calls.
constexpr std::array reading_calls = {SYS_read,   SYS_pread64, SYS_readv,
                                      SYS_preadv, SYS_preadv2, SYS_lseek};
constexpr std::array writing_calls = {SYS_write, SYS_pwrite64, SYS_writev, SYS_pwritev,
                                      SYS_pwritev2};

bool is_one_of(const auto& calls, long number) {
  return std::find(calls.begin(), calls.end(), number) != calls.end();
}

}  // namespace

AskingCall call_of(pid_t thread) {
  const ThreadFolder folder(thread);
  if (!folder.is_open()) return AskingCall::unknown;
  for (int count = 0; count < look_count_max; ++count) {
    const std::string text = folder.text_of("syscall");
    if (text.starts_with("running")) {
      std::this_thread::sleep_for(look_pause);
      continue;
    }
    char* end = nullptr;
    const long number = std::strtol(text.c_str(), &end, 10);
    if (end == text.c_str()) break;
    if (is_one_of(reading_calls, number)) return AskingCall::reads;
    if (is_one_of(writing_calls, number)) return AskingCall::writes;
    break;
  }
  return AskingCall::unknown;
}

}  // namespace nacre::fs

// SPDX-License-Identifier: Apache-2.0
#include "fs/fuse/asking_call.h"

#include <fcntl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>

#include <fmt/format.h>

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

// The number of a call and its arguments; none if /proc does not show them.
struct SystemCall {
  long number = 0;
  std::array<std::uint64_t, 6> arguments = {};
};

std::optional<SystemCall> system_call_of(const ThreadFolder& folder) {
  for (int count = 0; folder.is_open() && count < look_count_max; ++count) {
    const std::string text = folder.text_of("syscall");
    if (text.starts_with("running")) {
      std::this_thread::sleep_for(look_pause);
      continue;
    }
    SystemCall call;
    const char* at = text.c_str();
    char* end = nullptr;
    call.number = std::strtol(at, &end, 10);
    if (end == at) break;
    for (std::uint64_t& argument : call.arguments) {
      at = end;
      argument = std::strtoull(at, &end, 16);
    }
    return call;
  }
  return std::nullopt;
}

// The number after a word of /proc/PID/fdinfo/FD.
std::optional<std::uint64_t> number_after(const std::string& text, const std::string& word,
                                          int base) {
  const std::size_t at = text.find(word);
  if (at == std::string::npos) return std::nullopt;
  const char* const begin = text.c_str() + at + word.size();
  char* end = nullptr;
  const std::uint64_t number = std::strtoull(begin, &end, base);
  return end == begin ? std::nullopt : std::optional(number);
}

}  // namespace

AskingCall call_of(pid_t thread) {
  const auto call = system_call_of(ThreadFolder(thread));
  if (!call) return AskingCall::unknown;
  if (is_one_of(reading_calls, call->number)) return AskingCall::reads;
  if (is_one_of(writing_calls, call->number)) return AskingCall::writes;
  return AskingCall::unknown;
}

WrittenRange write_of(pid_t thread) {
  const ThreadFolder folder(thread);
  const auto call = system_call_of(folder);
  if (!call || !is_one_of(writing_calls, call->number)) return {};
  const std::string file = folder.text_of(fmt::format("fdinfo/{}", call->arguments[0]).c_str());
  const auto position = number_after(file, "pos:", 10);
  const auto flags = number_after(file, "flags:", 8);
  if (!position || !flags) return {};
  WrittenRange range{.is_known = true, .offset = position, .size = 1};
  const bool has_size = call->number == SYS_write || call->number == SYS_pwrite64;
  if (has_size) range.size = call->arguments[2];
  const bool has_place =
      call->number == SYS_pwrite64 || call->number == SYS_pwritev || call->number == SYS_pwritev2;
  const std::uint64_t place = call->arguments[3];
  if (has_place && place <= static_cast<std::uint64_t>(INT64_MAX)) range.offset = place;
  if ((*flags & O_APPEND) != 0) range.offset.reset();
  return range;
}

}  // namespace nacre::fs

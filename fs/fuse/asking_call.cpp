// SPDX-License-Identifier: Apache-2.0
#include "fs/fuse/asking_call.h"

#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

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
constexpr std::array vector_calls = {SYS_writev, SYS_pwritev, SYS_pwritev2};
constexpr std::array placed_calls = {SYS_pwrite64, SYS_pwritev, SYS_pwritev2};
// One call takes no more than this.
constexpr std::uint64_t call_size_bytes_max = 0x7fff'f000;
constexpr std::size_t part_count_max = 1024;  // of a vector
constexpr std::uint64_t offset_max = INT64_MAX;

bool is_one_of(const auto& calls, long number) {
  return std::find(calls.begin(), calls.end(), number) != calls.end();
}

// The arguments that stand behind the number of the call: the file, the bytes or their vector, how
// many there are, and their place.
std::array<std::uint64_t, 4> arguments_of(std::string_view text) {
  std::array<std::uint64_t, 4> arguments = {};
  for (std::uint64_t& argument : arguments) {
    const std::size_t at = text.find(" 0x");
    if (at == std::string_view::npos) break;
    text.remove_prefix(at + 3);
    std::from_chars(text.data(), text.data() + text.size(), argument, 16);
  }
  return arguments;
}

// The sum of the vector's sizes, which lies in the memory of the asking thread.
std::uint64_t size_of_vector(pid_t thread, std::uint64_t address, std::uint64_t count) {
  std::vector<iovec> parts(std::min<std::uint64_t>(count, part_count_max));
  const iovec here = {.iov_base = parts.data(), .iov_len = parts.size() * sizeof(iovec)};
  const iovec there = {.iov_base = reinterpret_cast<void*>(address), .iov_len = here.iov_len};
  if (process_vm_readv(thread, &here, 1, &there, 1, 0) != static_cast<ssize_t>(here.iov_len)) {
    return 0;
  }
  std::uint64_t size = 0;
  for (const iovec& part : parts)
    size += std::min<std::uint64_t>(part.iov_len, call_size_bytes_max);
  return size;
}

AskingCall writing_call(pid_t thread, long number, std::string_view text) {
  const auto [file, bytes, count, offset] = arguments_of(text);
  const std::uint64_t size =
      is_one_of(vector_calls, number) ? size_of_vector(thread, bytes, count) : count;
  AskingCall call = {.kind = AskingCall::Kind::writes,
                     .size_bytes = std::min(size, call_size_bytes_max)};
  // A place past the highest one stands for the file's position.
  if (is_one_of(placed_calls, number) && offset <= offset_max) call.offset = offset;
  return call;
}

}  // namespace

AskingCall call_of(pid_t thread) {
  const ThreadFolder folder(thread);
  if (!folder.is_open()) return {};
  for (int count = 0; count < look_count_max; ++count) {
    const std::string text = folder.text_of("syscall");
    if (text.starts_with("running")) {
      std::this_thread::sleep_for(look_pause);
      continue;
    }
    char* end = nullptr;
    const long number = std::strtol(text.c_str(), &end, 10);
    if (end == text.c_str()) break;
    if (is_one_of(reading_calls, number)) return {.kind = AskingCall::Kind::reads};
    if (is_one_of(writing_calls, number)) return writing_call(thread, number, {end});
    break;
  }
  return {};
}

}  // namespace nacre::fs

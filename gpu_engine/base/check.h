// SPDX-License-Identifier: Apache-2.0
// NACRE_CHECK: what must hold at a seam where a wrong state would become wrong data. Checks stay in
// release builds. Where one fails, the process says what and where, and ends.
//
//   NACRE_CHECK(size >= staged, "segment {} shrank from {} to {} bytes", number, staged, size);
//
// A check speaks of this process's own state alone. Bytes from a disk, from the kernel or from a
// caller outside never fail one: damage there is an error (corrupt, tampered, missing), which the
// user gets, and the process goes on.
//
// The words are a literal and the arguments are numbers, so that neither names of files nor keys
// nor content can get into a message. Arguments are evaluated only where the check fails.
#pragma once

#include <string_view>
#include <type_traits>

#include <fmt/core.h>

namespace nacre {

struct CheckPlace {
  const char* file;  // as __FILE__ has it
  int line;
  const char* condition;
};

// Receives the message of the check that failed: one line, after standard error has it, once in a
// process. The thread that failed calls it. That thread may hold any lock of the program except
// those that the sink takes. A sink that waits for longer than a few seconds ends the process by
// SIGALRM, so that nothing keeps a mount point hanging. A sink that fails a check itself ends the
// process at once.
using CheckSink = void (*)(std::string_view message) noexcept;
// null: standard error alone. Any thread.
void set_check_sink(CheckSink sink) noexcept;

// Says that the check failed and aborts. Allocates nothing and takes no lock of its own.
[[noreturn, gnu::cold, gnu::noinline]] void fail_check(const CheckPlace& place,
                                                       fmt::string_view words,
                                                       fmt::format_args arguments) noexcept;

template <typename... Arguments>
[[noreturn, gnu::cold, gnu::noinline]] void report_failed_check(
    const CheckPlace& place, fmt::format_string<const Arguments&...> words,
    const Arguments&... arguments) noexcept {
  static_assert((std::is_arithmetic_v<Arguments> && ...), "a check speaks of numbers alone");
  fail_check(place, words, fmt::make_format_args(arguments...));
}

}  // namespace nacre

#define NACRE_CHECK(condition, ...)                                                \
  do {                                                                             \
    if (!(condition)) [[unlikely]]                                                 \
      ::nacre::report_failed_check({__FILE__, __LINE__, #condition}, __VA_ARGS__); \
  } while (false)

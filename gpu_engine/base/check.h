// SPDX-License-Identifier: Apache-2.0
// NACRE_CHECK: a condition that is checked where a wrong state of the program would become wrong
// data. Checks stay in release builds. When a check fails, the process prints what failed and
// where, and ends.
//
//   NACRE_CHECK(size >= staged, "segment {} shrank from {} to {} bytes", number, staged, size);
//
// A check is about this process's own state alone. Bytes from a disk, from the kernel or from a
// caller outside never make a check fail: damage there is an error (corrupt, tampered, missing)
// that the user gets, and the process goes on.
//
// The message is a literal and the arguments are numbers, so that neither names of files nor keys
// nor content can get into a message. Arguments are evaluated only if the check fails.
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

// Receives the message of the failed check, one line, after it was written to standard error. The
// failed thread calls the sink, once in a process. That thread may hold any lock of the program
// except those that the sink takes. If the sink takes longer than a few seconds, SIGALRM ends the
// process, so that no mount point hangs. If a check fails within the sink, the process ends at
// once.
using CheckSink = void (*)(std::string_view message) noexcept;
// null: only standard error gets the message. Thread-safe.
void set_check_sink(CheckSink sink) noexcept;

// Reports the failed check and aborts. Allocates nothing and takes no lock of its own.
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

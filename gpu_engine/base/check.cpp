// SPDX-License-Identifier: Apache-2.0
#include "gpu_engine/base/check.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>

namespace nacre {

namespace {

// How long a sink may wait for something, for example for a log on a disk that does not answer.
constexpr unsigned sink_seconds_max = 5;

constexpr std::string_view advice =
    ". Nacre stops rather than write wrong data; nothing that was synced is lost. Unmount the "
    "volume if it is mounted, run 'fsck.nacre --deep' on it, and report this message with what "
    "'nacre version' says";

std::atomic<CheckSink> check_sink{nullptr};
std::atomic<long> failing_thread{0};  // the first thread that failed; 0: none

// The path without the folder that the sources were built in, which __FILE__ of this source shows.
std::string_view source_path(std::string_view file) {
  constexpr std::string_view mine = __FILE__;
  constexpr std::string_view within = "gpu_engine/base/check.cpp";
  static_assert(mine.ends_with(within));
  constexpr std::string_view root = mine.substr(0, mine.size() - within.size());
  return file.starts_with(root) ? file.substr(root.size()) : file;
}

void write_to_standard_error(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

// Works whatever the program made of SIGALRM, and whichever threads block it.
void end_after(unsigned seconds) {
  std::signal(SIGALRM, SIG_DFL);
  sigset_t alarms;
  sigemptyset(&alarms);
  sigaddset(&alarms, SIGALRM);
  pthread_sigmask(SIG_UNBLOCK, &alarms, nullptr);
  ::alarm(seconds);
}

// A text of bounded length, which allocates nothing: memory may be what is wrong.
class Line {
 public:
  void append(std::string_view text) { append("{}", fmt::make_format_args(text)); }
  void append(fmt::string_view words, fmt::format_args arguments) {
    const auto left = bytes_.size() - 1 - size_;
    const auto result = fmt::vformat_to_n(bytes_.data() + size_, left, words, arguments);
    size_ += result.size < left ? result.size : left;
  }
  std::string_view text() const { return {bytes_.data(), size_}; }
  std::string_view with_newline() {
    bytes_[size_] = '\n';
    return {bytes_.data(), size_ + 1};
  }

 private:
  std::array<char, 2048> bytes_ = {};
  std::size_t size_ = 0;
};

}  // namespace

void set_check_sink(CheckSink sink) noexcept {
  check_sink.store(sink);
}

void fail_check(const CheckPlace& place, fmt::string_view words,
                fmt::format_args arguments) noexcept {
  const long thread = ::syscall(SYS_gettid);
  long first = 0;
  if (!failing_thread.compare_exchange_strong(first, thread)) {
    if (first == thread) std::abort();  // a check failed within the sink
    while (true)
      ::pause();  // the thread that failed first ends the process
  }
  Line line;
  line.append("an internal check failed at ");
  line.append(source_path(place.file));
  line.append(":{}: ", fmt::make_format_args(place.line));
  line.append(words, arguments);
  line.append(" (");
  line.append(place.condition);
  line.append(")");
  line.append(advice);

  end_after(sink_seconds_max);
  Line shown;
  shown.append(program_invocation_short_name);
  shown.append(": ");
  shown.append(line.text());
  write_to_standard_error(shown.with_newline());
  if (const CheckSink sink = check_sink.load()) sink(line.text());
  std::abort();
}

}  // namespace nacre

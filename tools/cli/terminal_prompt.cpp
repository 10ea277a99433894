// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/terminal_prompt.h"

#include <fcntl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace nacre::tools {

namespace {

volatile std::sig_atomic_t caught_signal = 0;
extern "C" void catch_signal(int number) {
  caught_signal = number;
}

// While it lives, signals that would end the process only end the read() of the prompt.
class SignalCatcher {
 public:
  SignalCatcher() {
    caught_signal = 0;
    struct sigaction action {};
    action.sa_handler = catch_signal;  // without SA_RESTART
    sigset_t caught;
    sigemptyset(&caught);
    for (auto& [number, before] : before_) {
      ::sigaction(number, &action, &before);
      sigaddset(&caught, number);
    }
    // If the process blocks signals, it would also block those of the person who is asked.
    pthread_sigmask(SIG_UNBLOCK, &caught, &mask_before_);
  }
  ~SignalCatcher() {
    pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
    for (auto& [number, before] : before_)
      ::sigaction(number, &before, nullptr);
  }

 private:
  std::array<std::pair<int, struct sigaction>, 5> before_{
      {{SIGINT, {}}, {SIGTERM, {}}, {SIGHUP, {}}, {SIGQUIT, {}}, {SIGTSTP, {}}}};
  sigset_t mask_before_{};
};

void write_text(int terminal, std::string_view text) {
  // A terminal that takes no text gives no answer either; the read will fail.
  static_cast<void>(!::write(terminal, text.data(), text.size()));
}

Result<SecretBytes> read_line(int terminal, std::size_t size_max) {
  SecretBytes buffer(size_max + 1);
  std::size_t used = 0;
  while (true) {
    Byte byte = 0;
    const ssize_t got = ::read(terminal, &byte, 1);
    if (caught_signal != 0) return fail(ErrorCode::cancelled, "interrupted");
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(ErrorCode::io, fmt::format("/dev/tty: {}", strerror(errno)));
    if (got == 0 && used == 0) return fail(ErrorCode::cancelled, "no answer was given");
    if (got == 0 || byte == '\n') return SecretBytes(buffer.view().first(used));
    if (used == buffer.size())
      return fail(ErrorCode::too_big, "the line that was typed is too long");
    buffer.mutable_view()[used++] = byte;
  }
}

Result<SecretBytes> prompt_line(const std::string& prompt, std::size_t size_max, bool with_echo) {
  const int terminal = ::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
  termios before{};
  if (terminal < 0 || ::tcgetattr(terminal, &before) != 0) {
    const int error = errno;
    if (terminal >= 0) ::close(terminal);
    return fail(ErrorCode::io, fmt::format("/dev/tty: {}", strerror(error)));
  }
  Result<SecretBytes> line;
  {
    const SignalCatcher catcher;
    termios during = before;
    if (!with_echo) during.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    // The echo is off before the prompt appears, so what is typed after it is neither shown nor
    // lost.
    if (::tcsetattr(terminal, TCSAFLUSH, &during) != 0) {
      line = fail(ErrorCode::io, fmt::format("/dev/tty: {}", strerror(errno)));
    } else {
      write_text(terminal, prompt);
      line = read_line(terminal, size_max);
      ::tcsetattr(terminal, TCSADRAIN, &before);
    }
    if (!with_echo) write_text(terminal, "\n");
  }
  ::close(terminal);
  // The terminal is as it was, so the signal may now do what it normally does.
  if (caught_signal != 0 && caught_signal != SIGTSTP) ::raise(caught_signal);
  return line;
}

}  // namespace

bool can_prompt() {
  if (::isatty(STDIN_FILENO) == 0) return false;
  const int terminal = ::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
  if (terminal < 0) return false;
  ::close(terminal);
  return true;
}

Result<SecretBytes> prompt_secret(const std::string& prompt, std::size_t size_max) {
  return prompt_line(prompt, size_max, false);
}

Result<bool> prompt_yes(const std::string& question) {
  constexpr std::size_t answer_size_bytes_max = 256;
  NACRE_ASSIGN(const auto answer, prompt_line(question, answer_size_bytes_max, true));
  return as_text(answer.view()) == "yes";
}

}  // namespace nacre::tools

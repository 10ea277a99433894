// SPDX-License-Identifier: Apache-2.0
#include "tools/web/program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

#include <fmt/format.h>

#include "gpu_engine/base/printable.h"
#include "metadata/backing/posix_error.h"
#include "metadata/backing/posix_file.h"
#include "tools/cli/exit_code.h"
#include "tools/web/message_stream.h"
#include "tools/web/page_words.h"
#include "tools/web/path_text.h"

namespace nacre::tools::web {

namespace {

using metadata::FileDescriptor;

constexpr std::size_t output_size_max = 32u << 20;
constexpr std::size_t read_size = 16u << 10;

struct Pipe {
  FileDescriptor read_end, write_end;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return metadata::fail_errno(errno, "a pipe");
  return Pipe{.read_end = FileDescriptor(ends[0]), .write_end = FileDescriptor(ends[1])};
}

// A pipe that holds the secret. A secret has at most 4 KiB, and a pipe has room for 64 KiB.
Result<FileDescriptor> pipe_with(ByteView secret) {
  NACRE_ASSIGN(Pipe pipe, make_pipe());
  const ssize_t written = ::write(pipe.write_end.get(), secret.data(), secret.size());
  if (written != static_cast<ssize_t>(secret.size())) {
    return metadata::fail_errno(written < 0 ? errno : EIO, "a pipe");
  }
  return std::move(pipe.read_end);
}

// Programs of Nacre lie next to this one.
std::string find_program(const std::string& name) {
  if (name != "nacre" && !name.ends_with(".nacre")) return name;
  char self[PATH_MAX];
  const ssize_t size = ::readlink("/proc/self/exe", self, sizeof self);
  if (size <= 0 || size == static_cast<ssize_t>(sizeof self)) return name;
  const std::string_view path(self, static_cast<std::size_t>(size));
  const std::string sibling = std::string(path.substr(0, path.rfind('/') + 1)) + name;
  return ::access(sibling.c_str(), X_OK) == 0 ? sibling : name;
}

class SpawnSettings {
 public:
  SpawnSettings() {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
    // The server's signal mask and its handlers are its own. Without a session of its own the
    // program would find the server's terminal and ask there.
    sigset_t none, all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setflags(&attributes_,
                               POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
    ::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  }
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  // A descriptor that is duplicated onto itself stays open in the program.
  void give(int descriptor, int as) {
    ::posix_spawn_file_actions_adddup2(&actions_, descriptor, as);
  }
  Result<pid_t> spawn(const std::vector<std::string>& words) {
    std::vector<char*> pointers;
    for (const std::string& word : words)
      pointers.push_back(const_cast<char*>(word.c_str()));
    pointers.push_back(nullptr);
    const std::string program = find_program(words.front());
    pid_t child = 0;
    const int error =
        ::posix_spawnp(&child, program.c_str(), &actions_, &attributes_, pointers.data(), environ);
    if (error != 0) return metadata::fail_errno(error, words.front());
    return child;
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

// Standard error of a program. Nacre's programs print their progress only to a terminal, so it is
// one; without a controlling process it is nothing that a program could ask at. If the system gives
// no terminal, it is a pipe.
Result<Pipe> make_error_stream() {
  FileDescriptor master(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  char name[PATH_MAX];
  if (!master || ::grantpt(master.get()) != 0 || ::unlockpt(master.get()) != 0 ||
      ::ptsname_r(master.get(), name, sizeof name) != 0) {
    return make_pipe();
  }
  FileDescriptor terminal(::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC));
  termios settings{};
  if (!terminal || ::tcgetattr(terminal.get(), &settings) != 0) return make_pipe();
  ::cfmakeraw(&settings);
  if (::tcsetattr(terminal.get(), TCSANOW, &settings) != 0) return make_pipe();
  return Pipe{.read_end = std::move(master), .write_end = std::move(terminal)};
}

// Reads both until the program has closed them.
void read_streams(int output, int errors, std::string& printed, MessageStream& messages) {
  std::array<pollfd, 2> streams = {{{output, POLLIN, 0}, {errors, POLLIN, 0}}};
  std::array<char, read_size> buffer{};
  while (streams[0].fd >= 0 || streams[1].fd >= 0) {
    if (::poll(streams.data(), streams.size(), -1) < 0 && errno != EINTR) return;
    for (pollfd& stream : streams) {
      if (stream.fd < 0 || stream.revents == 0) continue;
      const ssize_t size = ::read(stream.fd, buffer.data(), buffer.size());
      if (size < 0 && errno == EINTR) continue;
      if (size <= 0) {  // the end of a terminal is the error EIO
        stream.fd = -1;
        continue;
      }
      const std::string_view more(buffer.data(), static_cast<std::size_t>(size));
      if (stream.fd == errors) {
        messages.take(more);
      } else {
        printed += more.substr(0, output_size_max - std::min(output_size_max, printed.size()));
      }
    }
  }
}

void show_progress(Job& job, const PrintedProgress& progress) {
  job.show_progress(progress.stage, progress.unit, progress.done, progress.total);
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Ends the child at the job's wish, never after it was waited for: then its number may be another
// process's.
class CancelledByJob {
 public:
  CancelledByJob(Job& job, pid_t child) : job_(job) {
    job_.on_cancel([child] { ::kill(child, SIGTERM); });
  }
  ~CancelledByJob() { job_.on_cancel({}); }
  CancelledByJob(const CancelledByJob&) = delete;
  CancelledByJob& operator=(const CancelledByJob&) = delete;

 private:
  Job& job_;
};

ErrorCode code_of_exit(int status) {
  switch (status) {
    case exit_usage:
      return ErrorCode::invalid_argument;
    case exit_damage:
      return ErrorCode::corrupt;
    case exit_wrong_key:
      return ErrorCode::wrong_key;
    case exit_busy:
      return ErrorCode::busy;
    default:
      return ErrorCode::io;
  }
}

// The messages without the program's name in front of each line.
std::string plain_message(const std::string& errors, const std::string& program) {
  std::string message;
  std::string_view rest(errors);
  const std::string prefix = program + ": ";
  while (!rest.empty()) {
    const auto end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (line.starts_with(prefix)) line.remove_prefix(prefix.size());
    if (line.empty()) continue;
    if (!message.empty()) message += '\n';
    message += line;
  }
  return message;
}

}  // namespace

std::string shell_line(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words)
    line += (line.empty() ? "" : " ") + shell_quote(word);
  return line;
}

Result<ProgramResult> run_program(const ProgramRun& run, Job& job) {
  NACRE_ASSIGN(Pipe output, make_pipe());
  NACRE_ASSIGN(Pipe errors, make_error_stream());
  std::vector<std::string> words = run.words;
  std::vector<FileDescriptor> secrets;
  ProgramResult result;
  pid_t child = 0;
  {
    SpawnSettings settings;
    settings.give(output.write_end.get(), STDOUT_FILENO);
    settings.give(errors.write_end.get(), STDERR_FILENO);
    for (const PipedSecret& one : run.secrets) {
      NACRE_ASSIGN(auto pipe, pipe_with(one.secret->view()));
      const bool is_input = one.option == standard_input;
      settings.give(pipe.get(), is_input ? STDIN_FILENO : pipe.get());
      if (!is_input) {
        words.push_back(one.option);
        words.push_back(std::to_string(pipe.get()));
      }
      secrets.push_back(std::move(pipe));
    }
    NACRE_ASSIGN(child, settings.spawn(words));
  }
  // The program has its own copies.
  output.write_end = {};
  errors.write_end = {};
  secrets.clear();
  MessageStream messages([&job](const PrintedProgress& shown) { show_progress(job, shown); });
  {
    const CancelledByJob cancelled(job, child);
    read_streams(output.read_end.get(), errors.read_end.get(), result.output, messages);
  }
  result.errors = messages.messages();
  result.exit_status = wait_for(child);
  job.set_messages(plain_message(result.errors, run.words.front()));
  if (job.is_cancelled() && !result.is_fine()) {
    return fail(ErrorCode::cancelled, "the job was cancelled");
  }
  return result;
}

Result<> launch_program(const std::vector<std::string>& words) {
  SpawnSettings settings;
  const FileDescriptor nothing = metadata::open_at(AT_FDCWD, "/dev/null", O_WRONLY);
  if (nothing) {
    settings.give(nothing.get(), STDOUT_FILENO);
    settings.give(nothing.get(), STDERR_FILENO);
  }
  NACRE_ASSIGN(const pid_t child, settings.spawn(words));
  // xdg-open may live as long as the browser that it becomes.
  std::thread([child] { wait_for(child); }).detach();
  return {};
}

WebError program_error(const ProgramRun& run, const ProgramResult& result) {
  std::string message = plain_message(result.errors, run.words.front());
  if (message.empty()) message = run.fixed_error;
  message = without_warnings(message);
  if (message.empty()) {
    message = fmt::format("{} ended with status {}", run.words.front(), result.exit_status);
  }
  const ErrorCode code = code_of_exit(result.exit_status);
  // The page shows the code by itself.
  const std::string prefix = std::string(to_string(code)) + ": ";
  if (message.starts_with(prefix)) message.erase(0, prefix.size());
  WebError error(Error{code, std::move(message)});
  if (error.command.empty()) error.command = shell_line(run.words);
  return error;
}

tl::expected<ProgramResult, WebError> run_to_success(const ProgramRun& run, Job& job,
                                                     std::vector<int> allowed) {
  auto result = run_program(run, job);
  if (!result) return tl::unexpected(WebError(result.error()));
  const bool is_allowed =
      std::find(allowed.begin(), allowed.end(), result->exit_status) != allowed.end();
  if (!is_allowed) return tl::unexpected(program_error(run, *result));
  return std::move(*result);
}

}  // namespace nacre::tools::web

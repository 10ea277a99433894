// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/secret_source.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "tools/cli/terminal_prompt.h"

extern char** environ;

namespace nacre::tools {

namespace {

ErrorCode code_of(int error) {
  switch (error) {
    case ENOENT:
      return ErrorCode::not_found;
    case EACCES:
    case EPERM:
      return ErrorCode::permission;
    case EISDIR:
      return ErrorCode::is_directory;
    default:
      return ErrorCode::io;
  }
}

tl::unexpected<Error> secret_failure(const std::string& what) {
  return fail(code_of(errno), fmt::format("{}: {}", what, strerror(errno)));
}

// Reads everything up to the end. Error: too_big past size_max.
Result<SecretBytes> read_to_end(int descriptor, std::size_t size_max, const std::string& what) {
  SecretBytes buffer(size_max + 1);
  std::size_t used = 0;
  while (used < buffer.size()) {
    const ssize_t got =
        ::read(descriptor, buffer.mutable_view().data() + used, buffer.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return secret_failure(what);
    if (got == 0) return SecretBytes(buffer.view().first(used));
    used += static_cast<std::size_t>(got);
  }
  return fail(ErrorCode::too_big, fmt::format("{} has more than {} bytes", what, size_max));
}

Result<SecretBytes> read_from_command(const std::string& command) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return secret_failure("pipe");
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  std::string shell = "sh", flag = "-c", script = command;
  char* arguments[] = {shell.data(), flag.data(), script.data(), nullptr};
  pid_t child = 0;
  const int error = ::posix_spawn(&child, "/bin/sh", &actions, nullptr, arguments, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (error != 0) {
    ::close(ends[0]);
    return fail(ErrorCode::io, fmt::format("/bin/sh: {}", strerror(error)));
  }
  auto secret =
      read_to_end(ends[0], passphrase_size_bytes_max + 1, "the output of the passphrase command");
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!secret) return secret;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    // The message leaves out the command's text, because that may hold the passphrase.
    return fail(
        ErrorCode::cancelled,
        WIFEXITED(status)
            ? fmt::format("the passphrase command ended with status {}", WEXITSTATUS(status))
            : fmt::format("the passphrase command was ended by signal {}", WTERMSIG(status)));
  }
  return secret;
}

Result<SecretBytes> read_raw(const SecretOptions& options, const PassphraseRequest& request) {
  if (!options.passphrase_file.empty()) {
    auto secret = read_secret_file(options.passphrase_file, passphrase_size_bytes_max + 1);
    if (!secret) return add_context(secret.error(), "the passphrase file");
    return secret;
  }
  if (options.passphrase_fd >= 0) {
    return read_to_end(options.passphrase_fd, passphrase_size_bytes_max + 1,
                       fmt::format("file descriptor {}", options.passphrase_fd));
  }
  if (!options.passphrase_command.empty()) return read_from_command(options.passphrase_command);
  if (!can_prompt()) {
    return fail(ErrorCode::invalid_argument,
                "there is no passphrase and no terminal to ask for one: give --passphrase-file "
                "FILE, --passphrase-fd N or --passphrase-command COMMAND");
  }
  NACRE_ASSIGN(auto first,
               prompt_secret(printable(request.prompt) + ": ", passphrase_size_bytes_max));
  if (request.confirm) {
    NACRE_ASSIGN(const auto second, prompt_secret("Once more: ", passphrase_size_bytes_max));
    if (!equal_constant_time(first.view(), second.view())) {
      return fail(ErrorCode::invalid_argument,
                  "the two passphrases differ: type the same one twice");
    }
  }
  return first;
}

}  // namespace

Result<SecretBytes> read_secret_file(const std::string& path, std::size_t size_max,
                                     metadata::FileKinds kinds) {
  if (kinds == metadata::FileKinds::regular) {
    NACRE_ASSIGN(const auto file, metadata::open_regular_file(path));
    return read_to_end(file.get(), size_max, path);
  }
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (descriptor < 0) return secret_failure(path);
  auto secret = read_to_end(descriptor, size_max, path);
  ::close(descriptor);
  return secret;
}

Result<SecretBytes> read_passphrase(const SecretOptions& options,
                                    const PassphraseRequest& request) {
  auto raw = read_raw(options, request);
  if (!raw && raw.error().code == ErrorCode::too_big) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("{}: a passphrase has at most {} bytes", raw.error().message,
                            passphrase_size_bytes_max));
  }
  if (!raw) return raw;
  ByteView view = raw->view();
  if (!view.empty() && view.back() == '\n') view = view.first(view.size() - 1);
  if (view.empty()) {
    return fail(ErrorCode::invalid_argument, "the passphrase is empty: give one that is not");
  }
  if (view.size() > passphrase_size_bytes_max) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("a passphrase has at most {} bytes", passphrase_size_bytes_max));
  }
  return SecretBytes(view);
}

}  // namespace nacre::tools

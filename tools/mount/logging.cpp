// SPDX-License-Identifier: Apache-2.0
#include "tools/mount/logging.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/dist_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/sinks/syslog_sink.h>
#include <spdlog/spdlog.h>

#include "gpu_engine/base/check.h"
#include "gpu_engine/base/folder_owner.h"
#include "tools/cli/terminal.h"
#include "tools/mount/structured_log.h"

namespace nacre::tools {

namespace {

// Escapes messages, because they quote names of files and text that others wrote.
class PrintableSink final : public spdlog::sinks::dist_sink_mt {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const std::string text = printable({message.payload.data(), message.payload.size()});
    spdlog::details::log_msg escaped = message;
    escaped.payload = text;
    spdlog::sinks::dist_sink_mt::sink_it_(escaped);
  }
};

fs::RecentMessages& kept_messages() {
  static fs::RecentMessages kept;
  return kept;
}

// Keeps messages for the control socket. RecentMessages has a lock of its own.
class KeepingSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const auto time =
        std::chrono::duration_cast<std::chrono::milliseconds>(message.time.time_since_epoch());
    const auto level = spdlog::level::to_string_view(message.level);
    kept_messages().add(time.count(), {level.data(), level.size()},
                        {message.payload.data(), message.payload.size()});
  }
  void flush_() override {}
};

struct Sinks {
  std::shared_ptr<spdlog::sinks::dist_sink_mt> all;
  std::shared_ptr<spdlog::sinks::sink> standard_error;
};
Sinks& sinks() {
  static Sinks made;
  return made;
}

// If root's mount begins a log in a folder of the volume's owner, the owner gets it, because the
// owner's next mount writes to it.
void share_with_owner(const std::string& path, int log, const std::string& volume) {
  const std::string parent = std::filesystem::path(path).parent_path();
  const int folder = ::open(parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  struct stat place = {};
  struct stat owned = {};
  if (folder >= 0 && ::fstat(folder, &place) == 0 && ::stat(volume.c_str(), &owned) == 0 &&
      place.st_uid == owned.st_uid) {
    give_to_folder_owner(folder, log);  // the log works without it, so errors do not count
  }
  if (folder >= 0) ::close(folder);
}

// Makes the file if it is missing, readable by its owner only, because messages name files. (spdlog
// would also make folders if a name is mistyped.) A link is refused, because it may lead to another
// user's file.
Result<> check_log_file(const std::string& path, const std::string& volume) {
  constexpr int flags = O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW;
  int descriptor = ::open(path.c_str(), flags);
  if (descriptor < 0 && errno == ENOENT) {
    descriptor = ::open(path.c_str(), flags | O_CREAT | O_EXCL, 0600);
    if (descriptor >= 0) share_with_owner(path, descriptor, volume);
  }
  if (descriptor < 0) {
    return fail(ErrorCode::io,
                fmt::format("the log file {} cannot be written: {}", path,
                            errno == ELOOP ? "it is a symbolic link" : std::strerror(errno)));
  }
  struct stat status = {};
  const bool is_linked =
      ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink != 1;
  ::close(descriptor);
  if (is_linked) {
    return fail(ErrorCode::io,
                fmt::format("the log file {} is not written: it has another name somewhere (a hard "
                            "link)",
                            path));
  }
  return {};
}

// Standard error has the message already. Nothing here is called with the sinks' locks held, so a
// thread that fails a check never waits for itself.
void log_failed_check(std::string_view message) noexcept {
  try {
    const auto& made = sinks();
    made.all->remove_sink(made.standard_error);
    spdlog::critical("{}", message);
  } catch (const std::exception&) {
    // The process ends in any case.
  }
}

}  // namespace

const fs::RecentMessages& recent_messages() {
  return kept_messages();
}

bool may_name_files(const LogOptions& options) {
  if (options.verbose) return true;
  return options.target != LogTarget::journal && (!options.file.empty() || options.foreground);
}

Result<> start_logging(const LogOptions& options) {
  try {
    auto& made = sinks();
    made.all = std::make_shared<PrintableSink>();
    made.standard_error = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    made.standard_error->set_pattern(fmt::format("{}: %l: %v", program_name()));
    made.standard_error->set_level(options.foreground || options.verbose ? spdlog::level::trace
                                                                         : spdlog::level::warn);
    if (!options.file.empty()) NACRE_TRY(check_log_file(options.file, options.volume));
    const std::string program(program_name());
    if (options.target == LogTarget::journal) {
      NACRE_ASSIGN(auto journal, make_journal_sink(program, options.volume));
      made.all->add_sink(std::move(journal));
    } else if (options.target == LogTarget::json) {
      made.all->add_sink(make_json_sink(options.file, program, options.volume));
    } else if (!options.file.empty()) {
      auto file = std::make_shared<spdlog::sinks::basic_file_sink_mt>(options.file);
      file->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %P %l: %v");
      made.all->add_sink(std::move(file));
    } else if (!options.foreground) {
      auto system =
          std::make_shared<spdlog::sinks::syslog_sink_mt>(program, LOG_PID, LOG_DAEMON, false);
      made.all->add_sink(std::move(system));
    }
    made.all->add_sink(made.standard_error);
    made.all->add_sink(std::make_shared<KeepingSink>());
    auto logger = std::make_shared<spdlog::logger>("nacre", made.all);
    logger->set_level(options.verbose ? spdlog::level::debug : spdlog::level::info);
    logger->flush_on(spdlog::level::info);
    spdlog::set_default_logger(std::move(logger));
    set_check_sink(log_failed_check);
  } catch (const spdlog::spdlog_ex& error) {
    return fail(ErrorCode::io, fmt::format("the log file cannot be written: {}", error.what()));
  }
  return {};
}

void leave_standard_error(const LogOptions& options) {
  if (!options.foreground) sinks().all->remove_sink(sinks().standard_error);
}

}  // namespace nacre::tools

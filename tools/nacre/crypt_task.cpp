// SPDX-License-Identifier: Apache-2.0
#include "tools/nacre/crypt_task.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "metadata/backing/posix_error.h"

namespace nacre::tools {

namespace {

constexpr mode_t mode_bits = 0777;

bool same_time(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

class CryptTask : public fs::ContainerTask {
 public:
  CryptTask(CryptFile& file, const CryptTaskOptions& options, OutputQueue& queue)
      : file_(file), options_(options), queue_(queue) {}

  Result<> open() override {
    NACRE_ASSIGN(source_, open_input(file_.input, options_.input_kinds));
    if (::fstat(source_.get(), &status_) != 0) {
      return metadata::fail_errno(errno, file_.input);
    }
    is_file_ = S_ISREG(status_.st_mode);
    if (is_file_) ::posix_fadvise(source_.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
    return check_output();
  }

  Result<std::size_t> read(MutableByteView out) override {
    auto got = read_full(source_.get(), out, input_name(file_.input));
    if (!got || *got < out.size()) end_source();
    if (got) source_bytes_ += *got;
    return got;
  }

  fs::ContainerAttributes attributes() override {
    if (!is_file_) return {};
    return {.name = std::filesystem::path(file_.input).filename().string(),
            .mode = static_cast<std::uint16_t>(status_.st_mode & mode_bits),
            .modified = fs::ContainerTime{
                .seconds = status_.st_mtim.tv_sec,
                .nanoseconds = static_cast<std::uint32_t>(status_.st_mtim.tv_nsec)}};
  }

  Result<> write(std::span<const ByteView> pieces) override {
    for (const ByteView piece : pieces)
      sink_bytes_ += piece.size();
    if (file_.output == standard_stream) {
      return write_all(STDOUT_FILENO, pieces, "standard output");
    }
    NACRE_TRY(make_output());
    return output_->write(pieces);
  }

  void finish(Result<fs::ContainerEnd> outcome) override {
    if (outcome) {
      if (auto completed = complete(*outcome); !completed) {
        outcome = tl::unexpected(completed.error());
      }
    }
    if (outcome) return;
    file_.error = std::move(outcome.error());
    file_.is_done = true;
    output_.reset();
  }

 private:
  // This check comes before the work; publishing repeats it.
  Result<> check_output() {
    if (file_.output == standard_stream) return {};
    struct stat there {};
    if (::lstat(file_.output.c_str(), &there) != 0) return {};
    if (there.st_dev == status_.st_dev && there.st_ino == status_.st_ino) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("{} would replace what is being read: give another name for it",
                              file_.output));
    }
    if (S_ISDIR(there.st_mode)) {
      return fail(ErrorCode::is_directory,
                  fmt::format("{} is a folder: to write into it, give -C", file_.output));
    }
    if (options_.replace) return {};
    return tl::unexpected(taken_name(file_));
  }

  static Error taken_name(const CryptFile& file) {
    return {
        ErrorCode::exists,
        fmt::format("{} exists already and was not changed: give -f to replace it", file.output)};
  }

  // Closed at the end of the source, because many files may wait for their last pieces.
  void end_source() {
    struct stat now {};
    if (is_file_ && ::fstat(source_.get(), &now) == 0) {
      has_changed_ = now.st_size != status_.st_size || !same_time(now.st_mtim, status_.st_mtim);
    }
    source_ = {};
  }

  Result<> make_output() {
    if (output_) return {};
    auto made = OutputFile::create(file_.output, options_.make_folders, options_.durability);
    if (!made) return tl::unexpected(made.error());
    output_ = std::move(*made);
    return {};
  }

  Result<> complete(const fs::ContainerEnd& end) {
    const bool encrypts = options_.direction == CryptDirection::encrypt;
    file_.plain_bytes = end.size_bytes;
    file_.stored_bytes = encrypts ? sink_bytes_ : source_bytes_;
    if (has_changed_) {
      file_.warning = fmt::format("{} changed while it was read{}", input_name(file_.input),
                                  options_.remove_input ? ", and was not removed" : "");
    }
    if (file_.output == standard_stream) {
      file_.is_done = true;
      return {};
    }
    NACRE_TRY(make_output());  // nothing was written of an empty file
    std::optional<mode_t> mode = end.attributes.mode;
    if (mode && !encrypts) mode = within_umask(*mode);  // a stranger may have chosen it
    std::optional<timespec> modified;
    if (const auto& time = end.attributes.modified; time && !encrypts) {
      modified = timespec{.tv_sec = static_cast<time_t>(time->seconds),
                          .tv_nsec = static_cast<long>(time->nanoseconds)};
    }
    NACRE_TRY(output_->set_attributes(mode, modified));
    const bool removes = options_.remove_input && is_file_ && !has_changed_;
    // This task may no longer exist when the output is published.
    queue_.add(std::move(*output_), [&file = file_, removes](Result<> published) {
      file.is_done = true;
      if (published && removes) published = remove_input(file);
      if (published) return;
      const bool is_taken = published.error().code == ErrorCode::exists;
      file.error = is_taken ? taken_name(file) : std::move(published.error());
    });
    output_.reset();
    return {};
  }

  static Result<> remove_input(const CryptFile& file) {
    if (::unlink(file.input.c_str()) != 0) {
      return add_context(metadata::fail_errno(errno, file.input).value(),
                         "the output is complete, but the input was not removed");
    }
    return {};
  }

  CryptFile& file_;
  const CryptTaskOptions& options_;
  OutputQueue& queue_;
  // Used by the reading thread. The writing thread reads has_changed_ and the status after that.
  metadata::FileDescriptor source_;
  struct stat status_ {};
  bool is_file_ = false;
  bool has_changed_ = false;
  std::uint64_t source_bytes_ = 0;
  // Used by the writing thread.
  std::optional<OutputFile> output_;
  std::uint64_t sink_bytes_ = 0;
};

}  // namespace

std::unique_ptr<fs::ContainerTask> make_crypt_task(CryptFile& file, const CryptTaskOptions& options,
                                                   OutputQueue& queue) {
  return std::make_unique<CryptTask>(file, options, queue);
}

Result<metadata::FileDescriptor> open_input(const std::string& path, metadata::FileKinds kinds) {
  if (kinds == metadata::FileKinds::regular) return metadata::open_regular_file(path);
  int number = -1;
  if (path == standard_stream) {
    number = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
  } else {
    do {
      number = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
    } while (number < 0 && errno == EINTR);
  }
  if (number < 0) return metadata::fail_errno(errno, input_name(path));
  metadata::FileDescriptor descriptor(number);
  struct stat status {};
  if (::fstat(number, &status) == 0 && S_ISDIR(status.st_mode)) {
    return fail(ErrorCode::is_directory,
                fmt::format("{} is a folder: give -r for the files in it", path));
  }
  return descriptor;
}

Result<std::size_t> read_full(int descriptor, MutableByteView out, const std::string& where) {
  std::size_t used = 0;
  while (used < out.size()) {
    const ssize_t got = ::read(descriptor, out.data() + used, out.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return metadata::fail_errno(errno, where);
    if (got == 0) break;
    used += static_cast<std::size_t>(got);
  }
  return used;
}

std::string input_name(const std::string& path) {
  return path == standard_stream ? "standard input" : path;
}

}  // namespace nacre::tools

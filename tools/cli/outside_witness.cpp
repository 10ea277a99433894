// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/outside_witness.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "metadata/backing/posix_error.h"
#include "metadata/backing/posix_file.h"
#include "tools/cli/bounded_command.h"
#include "tools/cli/help_text.h"
#include "tools/cli/own_files.h"
#include "tools/cli/sight_json.h"

namespace nacre::tools {

namespace {

using metadata::FileDescriptor;

constexpr unsigned text_version = 1;

// The folder is opened anew each time, so that its disk is not kept busy.
struct Place {
  FileDescriptor folder;
  std::string name;
};

Result<Place> place_of(const std::string& path) {
  const std::filesystem::path whole(path);
  Place place{
      FileDescriptor(::open(whole.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)),
      whole.filename()};
  if (!place.folder) return metadata::fail_errno(errno, whole.parent_path().string());
  return place;
}

struct OpenFile {
  FileDescriptor descriptor;
  struct stat status = {};
};

Result<OpenFile> open_file(const Place& place) {
  OpenFile file{metadata::open_at(place.folder.get(), place.name, O_RDONLY), {}};
  if (!file.descriptor && errno == ENOENT) {
    return fail(ErrorCode::not_found,
                "the file does not exist: is its disk missing? For the first use, make an empty "
                "file there (touch)");
  }
  if (!file.descriptor && errno == ELOOP) {
    return fail(ErrorCode::not_permitted,
                "the file is a symbolic link: give the path that the link leads to");
  }
  if (!file.descriptor || ::fstat(file.descriptor.get(), &file.status) != 0) {
    return metadata::fail_errno(errno, "open");
  }
  const auto& status = file.status;
  if (!S_ISREG(status.st_mode))
    return fail(ErrorCode::not_permitted,
                "the path leads to something that is not a regular file: give the path of a file");
  if (status.st_uid != ::geteuid() && status.st_uid != 0) {
    return fail(ErrorCode::not_permitted,
                fmt::format("the file belongs to user {}, who could change it: use a file that "
                            "belongs to you or to root",
                            status.st_uid));
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return fail(ErrorCode::not_permitted,
                fmt::format("other users may write to the file: its mode is {:04o}. Take that "
                            "right away (chmod go-w)",
                            status.st_mode & 07777));
  }
  return file;
}

Result<std::string> read_file(const std::string& path) {
  NACRE_ASSIGN(const auto place, place_of(path));
  NACRE_ASSIGN(const auto file, open_file(place));
  std::string text(outside_witness_size_bytes_max + 1, '\0');
  std::size_t used = 0;
  while (used < text.size()) {
    const ssize_t got = ::read(file.descriptor.get(), text.data() + used, text.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return metadata::fail_errno(errno, "read");
    if (got == 0) break;
    used += static_cast<std::size_t>(got);
  }
  if (used == text.size()) {
    return fail(
        ErrorCode::too_big,
        fmt::format("the file has more than {} bytes, so it is not a witness: give another file",
                    outside_witness_size_bytes_max));
  }
  text.resize(used);
  return text;
}

Result<> write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return metadata::fail_errno(errno, "write");
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

// The old file stays as it is until the new one is whole and durable: after a power cut, a file
// without its bytes would pass for one that has seen nothing.
Result<> replace_file(const std::string& path, std::string_view text) {
  NACRE_ASSIGN(const auto place, place_of(path));
  // A disk that is missing by now must not get the file in the folder where it was mounted.
  NACRE_ASSIGN(const auto old, open_file(place));
  const int folder = place.folder.get();
  const std::string fresh = place.name + ".new";
  if (::unlinkat(folder, fresh.c_str(), 0) != 0 && errno != ENOENT) {
    return metadata::fail_errno(errno, fresh);
  }
  const auto file = metadata::open_at(folder, fresh, O_WRONLY | O_CREAT | O_EXCL, 0600);
  if (!file) return metadata::fail_errno(errno, fresh);
  const auto done = [&]() -> Result<> {
    NACRE_TRY(write_all(file.get(), text));
    // A disk without modes refuses this, and needs none.
    static_cast<void>(::fchmod(file.get(), old.status.st_mode & 0644));
    if (::fsync(file.get()) != 0) return metadata::fail_errno(errno, "fsync");
    if (::renameat(folder, fresh.c_str(), folder, place.name.c_str()) != 0) {
      return metadata::fail_errno(errno, "rename");
    }
    if (::fsync(folder) != 0) return metadata::fail_errno(errno, "fsync");
    return {};
  }();
  if (!done) ::unlinkat(folder, fresh.c_str(), 0);
  return done;
}

Result<std::string> run(const std::string& command, std::string word, std::string_view input,
                        std::chrono::milliseconds limit) {
  auto output = run_bounded_command({.command = command,
                                     .argument = word,
                                     .input = input,
                                     .output_size_bytes_max = outside_witness_size_bytes_max,
                                     .limit = limit});
  if (!output)
    return fail(output.error().code, fmt::format("with '{}', {}", word, output.error().message));
  return output;
}

Result<std::optional<SeenCopy>> parse(const std::string& text, const std::string& volume_id) {
  if (text.find_first_not_of(" \n\t\r") == std::string::npos) return std::optional<SeenCopy>();
  SeenCopy copy;
  std::string of_volume;
  try {
    const auto all = nlohmann::json::parse(text);
    if (all.at("nacre_witness").get<unsigned>() != text_version) {
      return fail(ErrorCode::unsupported,
                  "a newer Nacre wrote this witness: open the volume with that version");
    }
    of_volume = all.at("volume").get<std::string>();
    copy.last = sight_from(all.at("last"));
    for (const auto& closing : all.at("closings"))
      copy.closings.push_back(sight_from(closing));
    if (copy.closings.size() > closings_max) throw std::length_error("too many closings");
  } catch (const std::exception& error) {
    return fail(ErrorCode::not_permitted,
                fmt::format("what is kept there is not a witness ({}). Only if you know why, make "
                            "the witness empty, to begin anew",
                            error.what()));
  }
  if (of_volume != volume_id) {
    return fail(ErrorCode::not_permitted,
                fmt::format("this is the witness of another volume: that volume has the id {}, "
                            "this one has the id {}. Give each volume a witness of its own",
                            of_volume, volume_id));
  }
  return std::optional(std::move(copy));
}

std::string text_of(const SeenCopy& copy, const std::string& volume_id) {
  nlohmann::json closings = nlohmann::json::array();
  for (const Sight& closing : copy.closings)
    closings.push_back(to_json(closing));
  const nlohmann::json all = {{"nacre_witness", text_version},
                              {"volume", volume_id},
                              {"last", to_json(copy.last)},
                              {"closings", std::move(closings)}};
  return all.dump(1) + "\n";
}

}  // namespace

void add_outside_witness_options(CLI::App& app, OutsideWitnessOptions& options) {
  app.add_option("--witness", options.file,
                 "Keep in this file, for example on another disk, how far the volume was seen, and "
                 "refuse a volume that is older. For the first use, make an empty file there")
      ->type_name("FILE");
  app.add_option("--witness-command", options.command,
                 "The same on a server: 'COMMAND read' prints what was kept, 'COMMAND write' keeps "
                 "what it reads")
      ->type_name("COMMAND");
  app.add_flag("--witness-may-fail", options.may_fail,
               "If the witness cannot be read, warn instead of refusing the volume");
  mark_seldom(app, {"--witness", "--witness-command", "--witness-may-fail"});
}

Result<> settle_outside_witness(OutsideWitnessOptions& options, const std::string& volume) {
  if (!options.file.empty() && !options.command.empty()) {
    return fail(ErrorCode::invalid_argument,
                "two options say where the witness is: give only one of --witness and "
                "--witness-command");
  }
  if (options.file.empty()) return {};
  std::error_code error;
  const auto absolute = std::filesystem::absolute(options.file, error);
  if (error) return fail(ErrorCode::invalid_argument, "--witness: " + error.message());
  options.file = absolute;
  const std::string resolved = std::filesystem::weakly_canonical(absolute.parent_path(), error);
  if (error || !lies_below(resolved, volume)) return {};
  return fail(ErrorCode::invalid_argument,
              fmt::format("the witness {} lies in the volume's directory {}: if an older state is "
                          "put back there, the older witness comes with it. Choose another disk",
                          options.file, volume));
}

OutsideWitness::OutsideWitness(const OutsideWitnessOptions& options, std::string volume_id,
                               std::chrono::milliseconds limit)
    : options_(options),
      volume_id_(std::move(volume_id)),
      limit_(limit),
      name_(options.file.empty() ? "the witness command" : "the witness " + options.file) {}

Result<OutsideWitness> OutsideWitness::read(const OutsideWitnessOptions& options,
                                            const std::string& volume_id,
                                            std::chrono::milliseconds limit) {
  OutsideWitness witness(options, volume_id, limit);
  const auto text =
      options.file.empty() ? run(options.command, "read", {}, limit) : read_file(options.file);
  auto seen = text ? parse(*text, volume_id) : tl::unexpected(text.error());
  if (!seen) return add_context(seen.error(), witness.name_);
  witness.seen_ = std::move(*seen);
  return witness;
}

Result<> OutsideWitness::note(const Sight& sight, Witness::Moment moment) {
  SeenCopy copy = seen_.value_or(SeenCopy());
  copy.last = sight;
  if (moment == Witness::Moment::closed) {
    copy.closings.insert(copy.closings.begin(), sight);
    copy.closings.resize(std::min(copy.closings.size(), closings_max));
  }
  const std::string text = text_of(copy, volume_id_);
  const auto noted = options_.file.empty()
                         ? run(options_.command, "write", text, limit_).map([](const auto&) {})
                         : replace_file(options_.file, text);
  if (!noted) return add_context(noted.error(), name_);
  seen_ = std::move(copy);
  return {};
}

}  // namespace nacre::tools

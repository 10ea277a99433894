// SPDX-License-Identifier: Apache-2.0
// nacre file PATH: shows how a file on a mounted volume is stored.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "fs/control/control_client.h"
#include "fs/control/mount_table.h"
#include "tools/cli/command_line.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/terminal.h"
#include "tools/nacre/commands.h"
#include "tools/nacre/scrub_report.h"
#include "tools/nacre/stats_text.h"

namespace nacre::tools {

namespace {

using nlohmann::json;

struct FileArguments {
  std::string path;
  bool chunks = false;
  bool json = false;
};

struct Sums {
  std::uint64_t record_count = 0, plain_bytes = 0, stored_bytes = 0;
};
struct Summary {
  std::uint64_t chunk_count = 0, hole_count = 0, lost_count = 0, lost_bytes = 0;
  std::uint64_t content_bytes = 0;
  Sums records, inlined;
  std::uint64_t damaged_count = 0;
  std::map<std::string, Sums> codecs;
  std::map<std::uint64_t, Sums> epochs;
};

json part_or_empty(const json& object, const char* name) {
  const auto at = object.is_object() ? object.find(name) : object.end();
  return at != object.end() && at->is_array() ? *at : json::array();
}

void add(Sums& sums, const json& piece) {
  ++sums.record_count;
  sums.plain_bytes += number_of(piece, "plain_bytes");
  sums.stored_bytes += number_of(piece, "stored_bytes");
}

void add_chunk(Summary& summary, const json& chunk) {
  const auto count = number_of(chunk, "chunk_count");
  summary.chunk_count += count;
  const std::string kind = text_of(chunk, "kind");
  if (kind == "hole") summary.hole_count += count;
  if (kind == "lost") summary.lost_count += count;
  summary.content_bytes += number_of(chunk, "content_bytes");
  summary.lost_bytes += number_of(chunk, "lost_bytes");
  for (const json& piece : part_or_empty(chunk, "pieces")) {
    if (piece.is_object() && piece.contains("inlined")) {
      add(summary.inlined, piece);
      continue;
    }
    add(summary.records, piece);
    if (piece.is_object() && piece.contains("damage")) {
      ++summary.damaged_count;
      continue;
    }
    add(summary.codecs[text_of(piece, "codec")], piece);
    add(summary.epochs[number_of(piece, "epoch")], piece);
  }
}

json to_json(const Sums& sums) {
  return {{"record_count", sums.record_count},
          {"plain_bytes", sums.plain_bytes},
          {"stored_bytes", sums.stored_bytes}};
}

json to_json(const Summary& summary, const struct stat& file, std::uint64_t chunk_size_bytes) {
  json result = {{"inode", file.st_ino},
                 {"size_bytes", file.st_size},
                 {"chunk_size_bytes", chunk_size_bytes},
                 {"chunk_count", summary.chunk_count},
                 {"hole_chunk_count", summary.hole_count},
                 {"lost_chunk_count", summary.lost_count},
                 {"lost_bytes", summary.lost_bytes},
                 {"content_bytes", summary.content_bytes},
                 {"stored_bytes", summary.records.stored_bytes},
                 {"record_count", summary.records.record_count},
                 {"damaged_record_count", summary.damaged_count},
                 {"inlined_count", summary.inlined.record_count},
                 {"inlined_bytes", summary.inlined.plain_bytes},
                 {"ratio", nullptr},
                 {"codecs", json::object()},
                 {"epochs", json::object()}};
  if (summary.records.stored_bytes > 0) {
    result["ratio"] = static_cast<double>(summary.content_bytes) /
                      static_cast<double>(summary.records.stored_bytes);
  }
  for (const auto& [codec, sums] : summary.codecs)
    result["codecs"][codec] = to_json(sums);
  for (const auto& [epoch, sums] : summary.epochs)
    result["epochs"][std::to_string(epoch)] = to_json(sums);
  return result;
}

std::string ratio_text(std::uint64_t plain_bytes, std::uint64_t stored_bytes) {
  if (stored_bytes == 0) return "";
  return fmt::format(", ratio {:.2f}",
                     static_cast<double>(plain_bytes) / static_cast<double>(stored_bytes));
}

void print_summary(const std::string& path, const Summary& summary, const struct stat& file,
                   std::uint64_t chunk_size_bytes) {
  print_safely("{}\n", printable(path));
  print_stats_line("inode", fmt::format("{}", file.st_ino));
  print_stats_line(
      "size", fmt::format("{} ({} bytes)", format_bytes(static_cast<std::uint64_t>(file.st_size)),
                          file.st_size));
  print_stats_line("chunks", fmt::format("{} of up to {}, {} of them holes", summary.chunk_count,
                                         format_bytes(chunk_size_bytes), summary.hole_count));
  print_stats_line(
      "stored",
      fmt::format("{} of data in {}, {} records{}", format_bytes(summary.content_bytes),
                  format_bytes(summary.records.stored_bytes), summary.records.record_count,
                  ratio_text(summary.content_bytes, summary.records.stored_bytes)));
  for (const auto& [codec, sums] : summary.codecs) {
    print_stats_line("codec " + codec,
                     fmt::format("{} records, {} in {}{}", sums.record_count,
                                 format_bytes(sums.plain_bytes), format_bytes(sums.stored_bytes),
                                 ratio_text(sums.plain_bytes, sums.stored_bytes)));
  }
  for (const auto& [epoch, sums] : summary.epochs) {
    print_stats_line(
        fmt::format("epoch {}", epoch),
        fmt::format("{} records, {}", sums.record_count, format_bytes(sums.stored_bytes)));
  }
  if (summary.inlined.record_count > 0) {
    print_stats_line("inlined", fmt::format("{} pieces with {} are rows of the database",
                                            summary.inlined.record_count,
                                            format_bytes(summary.inlined.plain_bytes)));
  }
  if (summary.lost_count > 0 || summary.lost_bytes > 0) {
    print_stats_line("lost", fmt::format("{} chunks, and {} of others", summary.lost_count,
                                         format_bytes(summary.lost_bytes)));
  }
  if (summary.damaged_count > 0) {
    print_stats_line("damaged", fmt::format("{} records cannot be opened: fsck.nacre --deep says "
                                            "what is wrong with them",
                                            summary.damaged_count));
  }
}

void print_chunk_head() {
  print_safely("\n  {:>10} {:>8} {:>9} {:>9}  {:<9} {:>5}  {}\n", "chunk", "at", "plain", "stored",
               "codec", "epoch", "segment offset");
}

void print_chunk(const json& chunk) {
  const auto first = number_of(chunk, "chunk");
  if (const auto kind = text_of(chunk, "kind"); kind != "stored") {
    print_safely("  {:>10} {}, {} chunks\n", first, kind, number_of(chunk, "chunk_count"));
    return;
  }
  for (const json& piece : part_or_empty(chunk, "pieces")) {
    const bool inlined = piece.is_object() && piece.contains("inlined");
    const bool damaged = piece.is_object() && piece.contains("damage");
    print_safely("  {:>10} {:>8} {:>9} {:>9}  {:<9} {:>5}  {}\n", first, number_of(piece, "offset"),
                 number_of(piece, "plain_bytes"), inlined ? 0 : number_of(piece, "stored_bytes"),
                 inlined   ? "inlined"
                 : damaged ? text_of(piece, "damage")
                           : text_of(piece, "codec"),
                 inlined || damaged ? "-" : fmt::format("{}", number_of(piece, "epoch")),
                 inlined ? "-"
                         : fmt::format("{} {}", number_of(piece, "segment"),
                                       number_of(piece, "segment_offset")));
  }
}

// Finds the mount that has the device number of a file.
Result<fs::MountEntry> mount_of(const std::string& path, const struct stat& file) {
  NACRE_ASSIGN(const auto table, fs::read_mount_table());
  for (auto entry = table.rbegin(); entry != table.rend(); ++entry) {
    if (entry->type == fs::nacre_mount_type && entry->device_major == major(file.st_dev) &&
        entry->device_minor == minor(file.st_dev)) {
      return *entry;
    }
  }
  return fail(ErrorCode::not_found, fmt::format("{} lies on no mounted Nacre volume", path));
}

// Opens the file and syncs it. A user who may not read the file still sees how it is stored so far.
Result<struct stat> settle(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) {
    return fail(errno == ENOENT ? ErrorCode::not_found : ErrorCode::io,
                fmt::format("{}: {}", path, std::strerror(errno)));
  }
  if (!S_ISREG(found.st_mode)) {
    return fail(ErrorCode::invalid_argument, fmt::format("{} is no regular file", path));
  }
  if (const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); file >= 0) {
    static_cast<void>(::fsync(file));
    ::close(file);
  }
  return found;
}

Result<int> look(const FileArguments& arguments) {
  NACRE_ASSIGN(const auto file, settle(arguments.path));
  NACRE_ASSIGN(const auto mount, mount_of(arguments.path, file));
  Summary summary;
  auto chunks = json::array();
  std::uint64_t next = 0;
  std::uint64_t chunk_size_bytes = 0;
  for (bool more = true; more;) {
    NACRE_ASSIGN(auto client, fs::ControlClient::connect(mount));
    NACRE_ASSIGN(const auto reply,
                 client.request_with(
                     {{"command", "file"}, {"inode", file.st_ino}, {"first_chunk", next}}, {}));
    const json page = part_of_stats(reply, "file");
    chunk_size_bytes = number_of(page, "chunk_size_bytes");
    for (const json& chunk : part_or_empty(page, "chunks")) {
      add_chunk(summary, chunk);
      if (arguments.chunks) chunks.push_back(chunk);
    }
    more = number_of(page, "next_chunk") > next;
    next = number_of(page, "next_chunk");
  }
  if (arguments.json) {
    json result = to_json(summary, file, chunk_size_bytes);
    if (arguments.chunks) result["chunks"] = std::move(chunks);
    print_as_json(result);
  } else {
    print_summary(arguments.path, summary, file, chunk_size_bytes);
    if (arguments.chunks && !chunks.empty()) print_chunk_head();
    for (const json& chunk : chunks)
      print_chunk(chunk);
  }
  return summary.damaged_count > 0 || summary.lost_count > 0 || summary.lost_bytes > 0 ? exit_damage
                                                                                       : exit_fine;
}

}  // namespace

void add_file_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("file", "Show how a file on a mounted volume is stored");
  auto arguments = std::make_shared<FileArguments>();
  command->add_option("PATH", arguments->path, "A file on a mounted volume; all of it is read")
      ->required();
  command->add_flag("--chunks", arguments->chunks, "Also show each chunk and where it is stored");
  command->add_flag("--json", arguments->json, "As JSON");
  command->footer(
      "Examples:\n"
      "  nacre file ~/private/letter.odt\n"
      "  nacre file --chunks --json ~/private/disk.img");
  command->callback([&action, arguments] {
    action = [arguments] {
      const auto status = look(*arguments);
      return status ? *status : report(status.error());
    };
  });
}

}  // namespace nacre::tools

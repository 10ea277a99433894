// SPDX-License-Identifier: Apache-2.0
// nacre stats VOLUME|MOUNTPOINT: of a mounted volume the daemon's counters; of any other what its
// files say, with a key also what its tables say.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "fs/control/control_client.h"
#include "fs/control/mount_table.h"
#include "fs/control/stats_json.h"
#include "fs/store/segment_store.h"
#include "metadata/backing/volume_lock.h"
#include "metadata/format/rows.h"
#include "metadata/format/scrub_row.h"
#include "metadata/tables/database.h"
#include "tools/cli/command_line.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/hardening.h"
#include "tools/cli/terminal.h"
#include "tools/cli/volume_access.h"
#include "tools/nacre/commands.h"
#include "tools/nacre/scrub_report.h"

namespace nacre::tools {

namespace {

using nlohmann::json;

struct Arguments {
  std::string path;
  SecretOptions secret;
  bool json = false;
};

std::uint64_t number(const json& object, const char* name) {
  return number_of(object, name);
}
std::string text(const json& object, const char* name) {
  return text_of(object, name);
}
json part(const json& object, const char* name) {
  const auto at = object.is_object() ? object.find(name) : object.end();
  return at != object.end() && at->is_object() ? *at : json::object();
}

void line(std::string_view name, const std::string& value) {
  fmt::print("  {:<14} {}\n", name, value);
}

std::string share(std::uint64_t part_bytes, std::uint64_t whole_bytes) {
  if (whole_bytes == 0) return "";
  return fmt::format(" ({:.1f} %)",
                     100.0 * static_cast<double>(part_bytes) / static_cast<double>(whole_bytes));
}

std::string immovable_note(std::uint64_t count) {
  if (count == 0) return "";
  return fmt::format("; {} segments hold damaged records and stay as they are: run fsck.nacre",
                     count);
}

std::string devices_share(const json& engine) {
  const std::uint64_t count = number(engine, "cuda_message_count");
  const std::uint64_t failed = number(engine, "cuda_failed_batch_count");
  std::string said = count == 0 ? "" : fmt::format("; {} by devices", count);
  if (failed > 0) said += fmt::format("; {} batches that a device failed ran on the cpu", failed);
  return said;
}

void print_mounted(const json& reply) {
  const json stats = part(reply, "stats");
  const json segments = part(stats, "segments");
  const json commits = part(stats, "commits");
  const json database = part(stats, "database");
  const json engine = part(stats, "engine");
  fmt::print("{} mounted at {} by process {}, nacre {}\n", text(reply, "volume"),
             text(reply, "mountpoint"), number(reply, "pid"), text(reply, "version"));
  line("id", text(reply, "volume_id"));
  if (!text(reply, "label").empty()) line("label", text(reply, "label"));
  line("health", text(stats, "health"));
  line("files",
       fmt::format("{} with {}, {} in memory", number(stats, "inode_count"),
                   format_bytes(number(stats, "data_bytes")), number(stats, "known_inode_count")));
  line("memory", fmt::format("{} dirty, {} cached, {} hits, {} misses",
                             format_bytes(number(stats, "dirty_bytes")),
                             format_bytes(number(stats, "cached_bytes")),
                             number(stats, "cache_hit_count"), number(stats, "cache_miss_count")));
  const auto stored = number(segments, "stored_bytes");
  line("segments", fmt::format("{} with {}, {} of it live{}", number(segments, "segment_count"),
                               format_bytes(stored), format_bytes(number(segments, "live_bytes")),
                               share(number(segments, "live_bytes"), stored)));
  line("space", fmt::format("{} live, {} dead, {} reclaimable{}",
                            format_bytes(number(segments, "live_bytes")),
                            format_bytes(number(segments, "dead_bytes")),
                            format_bytes(number(segments, "reclaimable_bytes")),
                            immovable_note(number(segments, "immovable_segment_count"))));
  line("compaction",
       fmt::format("{}, {} segments rewritten, {} moved", text(part(stats, "compaction"), "state"),
                   number(part(stats, "compaction"), "segment_count"),
                   format_bytes(number(segments, "moved_bytes"))));
  if (const json backup = part(stats, "backup"); number(backup, "backup_count") > 0) {
    line("backup",
         fmt::format("{} under way, which keep {} from being freed", number(backup, "backup_count"),
                     format_bytes(number(backup, "held_bytes"))));
  }
  line("scrub", scrub_line(part(stats, "scrub")));
  const auto plain = number(segments, "appended_plain_bytes");
  line("written",
       fmt::format("{} records, {} of files in {}{}", number(segments, "appended_record_count"),
                   format_bytes(plain), format_bytes(number(segments, "appended_bytes")),
                   share(number(segments, "appended_bytes"), plain)));
  line("commits", fmt::format("{} for {} requests, {} failed", number(commits, "commit_count"),
                              number(commits, "request_count"), number(commits, "failure_count")));
  line("database", fmt::format("{} in tables, {} in the log, {} rows read",
                               format_bytes(number(database, "table_file_bytes")),
                               format_bytes(number(database, "wal_bytes")),
                               number(database, "row_read_count")));
  line("engine", fmt::format("{}, {} messages in {} payloads, {} failed{}", text(engine, "backend"),
                             number(engine, "message_count"), number(engine, "payload_count"),
                             number(engine, "failed_message_count"), devices_share(engine)));
}

Result<json> of_mount(const fs::MountEntry& mount) {
  NACRE_ASSIGN(auto client, fs::ControlClient::connect(mount));
  NACRE_ASSIGN(auto reply, client.request("stats"));
  reply.erase("ok");
  return reply;
}

struct FolderSize {
  std::uint64_t file_count = 0;
  std::uint64_t bytes = 0;
};
Result<FolderSize> size_of(metadata::BackingDirectory& directory, std::string_view folder) {
  FolderSize size;
  NACRE_ASSIGN(const auto names, directory.list(folder));
  for (const auto& name : names) {
    // A file that goes meanwhile is none.
    if (const auto bytes = directory.file_size(fmt::format("{}/{}", folder, name))) {
      ++size.file_count;
      size.bytes += *bytes;
    }
  }
  return size;
}

// What only the tables know.
Result<json> of_tables(const VolumePlace& place, const metadata::VolumeKeys& volume) {
  NACRE_ASSIGN(const auto lock,
               metadata::VolumeLock::acquire(place.path, {.mode = metadata::LockMode::shared}));
  NACRE_ASSIGN(const auto database,
               metadata::Database::open(place.directory, volume.keys, {.read_only = true}));
  json tables;
  for (const auto key : {metadata::system_key_inode_count, metadata::system_key_data_bytes}) {
    NACRE_ASSIGN(const auto value, database->get(metadata::Table::system, key));
    if (!value) return fail(ErrorCode::corrupt, fmt::format("the database has no row '{}'", key));
    NACRE_ASSIGN(const auto count, metadata::decode_u64(*value));
    tables[std::string(key)] = count;
  }
  std::uint64_t live_bytes = 0;
  std::uint64_t dead_bytes = 0;
  std::uint64_t reclaimable_bytes = 0;
  NACRE_TRY(database->scan(
      metadata::Table::segments, "", "", [&](std::string_view, std::string_view value) {
        const auto row = metadata::decode_segment_row(value);
        if (!row) return true;
        const std::uint64_t dead =
            row->committed_size - std::min(row->committed_size, row->live_bytes);
        live_bytes += row->live_bytes;
        dead_bytes += dead;
        if (static_cast<double>(dead) >=
            fs::reclaimable_share_min * static_cast<double>(row->committed_size)) {
          reclaimable_bytes += dead;
        }
        return true;
      }));
  NACRE_ASSIGN(const auto scrub,
               database->get(metadata::Table::system, metadata::system_key_scrub));
  if (scrub) {
    NACRE_ASSIGN(const auto row, metadata::decode_scrub_row(*scrub));
    tables["scrub"] = fs::to_json(row);
  }
  tables["live_bytes"] = live_bytes;
  tables["dead_bytes"] = dead_bytes;
  tables["reclaimable_bytes"] = reclaimable_bytes;
  return tables;
}

Result<json> of_volume(const VolumePlace& place, const SecretOptions& secret_options) {
  const bool with_key = secret_options.names_passphrase() || !secret_options.identity.empty();
  metadata::Superblock superblock;
  metadata::Keyring keyring;
  json tables;
  std::string fingerprint;
  if (with_key) {
    harden_process();
    NACRE_ASSIGN(const auto secret, read_secret(secret_options, place.path));
    NACRE_ASSIGN(auto volume, unlock(place, secret));
    NACRE_ASSIGN(tables, of_tables(place, volume));
    fingerprint = fingerprint_of(*volume.keys);
    superblock = std::move(volume.superblock);
    keyring = std::move(volume.keyring);
  } else {
    NACRE_ASSIGN(auto found_superblock, metadata::find_superblock(*place.directory));
    NACRE_ASSIGN(auto found_keyring, metadata::find_keyring(*place.directory));
    superblock = std::move(found_superblock.superblock.claims);
    keyring = std::move(found_keyring.keyring.claims);
  }
  NACRE_ASSIGN(const auto segments, size_of(*place.directory, metadata::segment_folder));
  NACRE_ASSIGN(const auto database, size_of(*place.directory, metadata::database_folder));
  std::uint64_t passphrase_count = 0;
  for (const auto& recipient : keyring.recipients)
    passphrase_count += recipient.passphrase ? 1 : 0;
  json result = {{"volume", place.path},
                 {"volume_id", hex(superblock.volume_id)},
                 {"label", superblock.label},
                 {"created", superblock.created},
                 {"verified", with_key},
                 {"chunk_size_bytes", superblock.chunk_size_bytes},
                 {"codec", engine::to_string(superblock.codec)},
                 {"level", static_cast<unsigned>(superblock.level)},
                 {"cipher", engine::to_string(superblock.cipher)},
                 {"padding", metadata::padding_name(superblock.padding)},
                 {"keyring_generation", keyring.generation},
                 {"epoch_count", keyring.epochs.size()},
                 {"recipient_count", keyring.recipients.size()},
                 {"passphrase_count", passphrase_count},
                 {"segment_count", segments.file_count},
                 {"segment_bytes", segments.bytes},
                 {"database_file_count", database.file_count},
                 {"database_bytes", database.bytes}};
  if (with_key) {
    result["fingerprint"] = fingerprint;
    result["tables"] = tables;
  }
  return result;
}

void print_volume(const json& stats) {
  fmt::print("{}, not mounted\n", text(stats, "volume"));
  line("id", text(stats, "volume_id"));
  if (!text(stats, "label").empty()) line("label", text(stats, "label"));
  if (!text(stats, "fingerprint").empty()) line("fingerprint", text(stats, "fingerprint"));
  line("made", text(stats, "created"));
  line("cipher", text(stats, "cipher"));
  line("codec",
       text(stats, "codec") +
           (number(stats, "level") == 0 ? "" : fmt::format(", level {}", number(stats, "level"))));
  line("chunks", fmt::format("{}, padding {}", format_bytes(number(stats, "chunk_size_bytes")),
                             text(stats, "padding")));
  line("opened by",
       fmt::format("{} passphrases, {} RSA keys", number(stats, "passphrase_count"),
                   number(stats, "recipient_count") - number(stats, "passphrase_count")));
  const json tables = part(stats, "tables");
  if (!tables.empty()) {
    line("files", fmt::format("{} with {}", number(tables, "inode_count"),
                              format_bytes(number(tables, "data_bytes"))));
  }
  const auto bytes = number(stats, "segment_bytes");
  line("segments",
       fmt::format("{} with {}{}", number(stats, "segment_count"), format_bytes(bytes),
                   tables.empty() ? ""
                                  : fmt::format(", {} of it live{}",
                                                format_bytes(number(tables, "live_bytes")),
                                                share(number(tables, "live_bytes"), bytes))));
  if (!tables.empty()) {
    line("space",
         fmt::format("{} live, {} dead, {} reclaimable", format_bytes(number(tables, "live_bytes")),
                     format_bytes(number(tables, "dead_bytes")),
                     format_bytes(number(tables, "reclaimable_bytes"))));
  }
  if (!tables.empty()) line("scrub", scrub_line(part(tables, "scrub")));
  line("database", fmt::format("{} files with {}", number(stats, "database_file_count"),
                               format_bytes(number(stats, "database_bytes"))));
  if (tables.empty()) {
    fmt::print("Not verified; with a key (--passphrase-file, --identity) there is more to say\n");
  }
}

int show(const Arguments& arguments) {
  std::optional<fs::MountEntry> mount;
  std::optional<VolumePlace> place;
  if (auto found = fs::find_nacre_mount(arguments.path)) {
    mount = std::move(*found);
  } else {
    auto volume = find_volume(arguments.path);
    if (!volume && volume.error().code == ErrorCode::not_found) {
      return report(
          {ErrorCode::not_found, fmt::format("{} is neither a volume nor where one is mounted: {}",
                                             arguments.path, volume.error().message)});
    }
    if (!volume) return report(volume.error());
    place = std::move(*volume);
    mount = fs::find_mount_of_volume(place->path);
  }
  const auto stats = mount ? of_mount(*mount) : of_volume(*place, arguments.secret);
  if (!stats) return report(stats.error());
  if (arguments.json) {
    fmt::print("{}\n", stats->dump(2, ' ', false, json::error_handler_t::replace));
  } else if (mount) {
    print_mounted(*stats);
  } else {
    print_volume(*stats);
  }
  return exit_fine;
}

}  // namespace

void add_stats_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("stats", "What a volume holds and how it is doing");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("VOLUME", arguments->path, "A volume's directory, or where one is mounted")
      ->required();
  command->add_flag("--json", arguments->json, "As JSON");
  add_secret_options(*command, arguments->secret);
  command->callback([&action, arguments] { action = [arguments] { return show(*arguments); }; });
}

}  // namespace nacre::tools

// SPDX-License-Identifier: Apache-2.0
// nacre stats VOLUME|MOUNTPOINT: shows the daemon's counters for a mounted volume. For any other it
// shows what its files say, and with a key also what its tables say.
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
#include "metadata/text/exact_bytes.h"
#include "tools/cli/command_line.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/hardening.h"
#include "tools/cli/terminal.h"
#include "tools/cli/volume_access.h"
#include "tools/nacre/commands.h"
#include "tools/nacre/scrub_report.h"
#include "tools/nacre/stats_text.h"

namespace nacre::tools {

namespace {

using nlohmann::json;

struct StatsArguments {
  std::string path;
  SecretOptions secret;
  bool json = false;
};

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
    // A file that disappears meanwhile does not count.
    if (const auto bytes = directory.file_size(fmt::format("{}/{}", folder, name))) {
      ++size.file_count;
      size.bytes += *bytes;
    }
  }
  return size;
}

// The figures that only the tables have.
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
    NACRE_ASSIGN(auto volume, unlock(place, secret, secret_options));
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
  json result = {{"volume_id", hex(superblock.volume_id)},
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
  metadata::put_bytes(result, "volume", place.path);
  if (with_key) {
    result["fingerprint"] = fingerprint;
    result["tables"] = tables;
  }
  return result;
}

void print_volume(const json& stats) {
  print_safely("{}, not mounted\n", path_of(stats, "volume"));
  print_stats_line("id", text_of(stats, "volume_id"));
  if (!text_of(stats, "label").empty()) print_stats_line("label", text_of(stats, "label"));
  if (!text_of(stats, "fingerprint").empty())
    print_stats_line("fingerprint", text_of(stats, "fingerprint"));
  print_stats_line("made", text_of(stats, "created"));
  print_stats_line("cipher", text_of(stats, "cipher"));
  print_stats_line("codec", text_of(stats, "codec") +
                                (number_of(stats, "level") == 0
                                     ? ""
                                     : fmt::format(", level {}", number_of(stats, "level"))));
  print_stats_line("chunks",
                   fmt::format("{}, padding {}", format_bytes(number_of(stats, "chunk_size_bytes")),
                               text_of(stats, "padding")));
  print_stats_line(
      "opened by",
      fmt::format("{} passphrases, {} RSA keys", number_of(stats, "passphrase_count"),
                  number_of(stats, "recipient_count") - number_of(stats, "passphrase_count")));
  const json tables = part_of_stats(stats, "tables");
  if (!tables.empty()) {
    print_stats_line("files", fmt::format("{} with {}", number_of(tables, "inode_count"),
                                          format_bytes(number_of(tables, "data_bytes"))));
  }
  const auto bytes = number_of(stats, "segment_bytes");
  print_stats_line(
      "segments",
      fmt::format("{} with {}{}", number_of(stats, "segment_count"), format_bytes(bytes),
                  tables.empty() ? ""
                                 : fmt::format(", {} of it live{}",
                                               format_bytes(number_of(tables, "live_bytes")),
                                               share_of(number_of(tables, "live_bytes"), bytes))));
  if (!tables.empty()) {
    print_stats_line("space", fmt::format("{} live, {} dead, {} reclaimable",
                                          format_bytes(number_of(tables, "live_bytes")),
                                          format_bytes(number_of(tables, "dead_bytes")),
                                          format_bytes(number_of(tables, "reclaimable_bytes"))));
  }
  if (!tables.empty()) print_stats_line("scrub", scrub_line(part_of_stats(tables, "scrub")));
  print_stats_line("database",
                   fmt::format("{} files with {}", number_of(stats, "database_file_count"),
                               format_bytes(number_of(stats, "database_bytes"))));
  if (tables.empty()) {
    print_safely("Not verified; with a key (--passphrase-file, --identity) it shows more\n");
  }
}

int show(const StatsArguments& arguments) {
  std::optional<fs::MountEntry> mount;
  std::optional<VolumePlace> place;
  if (auto found = fs::find_nacre_mount(arguments.path)) {
    mount = std::move(*found);
  } else {
    auto volume = find_unmounted_volume(arguments.path);
    if (!volume) return report(volume.error());
    place = std::move(*volume);
    mount = fs::find_mount_of_volume(place->path);
  }
  const auto stats = mount ? of_mount(*mount) : of_volume(*place, arguments.secret);
  if (!stats) return report(stats.error());
  if (arguments.json) {
    print_as_json(*stats);
  } else if (mount) {
    print_mounted_stats(*stats);
  } else {
    print_volume(*stats);
  }
  return exit_fine;
}

}  // namespace

void add_stats_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("stats", "Show what a volume holds and how it is doing");
  auto arguments = std::make_shared<StatsArguments>();
  command->add_option("VOLUME", arguments->path, "A volume's directory, or where one is mounted")
      ->required();
  command->add_flag("--json", arguments->json, "As JSON");
  add_secret_options(*command, arguments->secret);
  command->footer(
      "Examples:\n"
      "  nacre stats ~/private\n"
      "  nacre stats --json ~/private | jq .stats.cache_hit_count\n"
      "Exit status: 0 fine, 2 usage, 4 damaged volume, 8 failed, 16 wrong key,\n"
      "32 in use");
  command->callback([&action, arguments] { action = [arguments] { return show(*arguments); }; });
}

}  // namespace nacre::tools

// SPDX-License-Identifier: Apache-2.0
// nacre key status VOLUME|MOUNTPOINT: shows whether a rotation runs and how far it is. With
// --verify, also whether anything is left of an older epoch.
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "fs/control/control_client.h"
#include "fs/control/rotation_requests.h"
#include "fs/rotation/epoch_walk.h"
#include "metadata/backing/volume_lock.h"
#include "metadata/keys/keyring.h"
#include "tools/cli/command_line.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/terminal.h"
#include "tools/nacre/rotate.h"

namespace nacre::tools {

namespace {

using nlohmann::json;

struct KeyStatusArguments {
  std::string path;
  bool verify = false;
  bool json = false;
};

std::string status_text(const json& object, const char* name) {
  const auto at = object.is_object() ? object.find(name) : object.end();
  return at != object.end() && at->is_string() ? printable(at->get<std::string>()) : "";
}
std::uint64_t status_number(const json& object, const char* name) {
  const auto at = object.is_object() ? object.find(name) : object.end();
  return at != object.end() && at->is_number_unsigned() ? at->get<std::uint64_t>() : 0;
}

// While the volume is not mounted, no rotation runs. Headers are in the clear, so no key is needed.
// Changes by an attacker to the keyring are not noticed here. 'nacre key list' notices them, with a
// key.
Result<json> of_volume(const VolumePlace& place, bool verify) {
  NACRE_ASSIGN(const auto found, metadata::find_keyring(*place.directory));
  const metadata::Keyring& keyring = found.keyring.claims;
  const bool rotates = keyring.epochs.size() > 1 || !keyring.sealed_previous_volume_key.empty();
  const std::uint32_t epoch = keyring.epochs.back().number;
  json result = {{"rotation",
                  {{"rotation", rotates ? "paused" : "none"},
                   {"state", rotates ? "paused" : "none"},
                   {"epoch", epoch},
                   {"message", rotates ? "goes on when the volume is mounted (after a pause: by "
                                         "'nacre key rotate --resume'), or by 'nacre key rotate'"
                                       : ""}}}};
  if (!verify) return result;
  NACRE_ASSIGN(const auto lock,
               metadata::VolumeLock::acquire(place.path, {.mode = metadata::LockMode::shared}));
  ProgressPrinter printer(true);
  std::uint64_t done = 0;
  NACRE_ASSIGN(const auto counts,
               fs::count_epochs(*place.directory, epoch, fs::WalkDepth::everything,
                                [&](std::uint64_t bytes) -> Result<> {
                                  done += bytes;
                                  printer.update({.stage = "verification", .done = done});
                                  return {};
                                }));
  result["verification"] = fs::to_json(counts);
  return result;
}

Result<json> of_mount(const fs::MountEntry& mount, bool verify) {
  NACRE_ASSIGN(auto client, fs::ControlClient::connect(mount));
  return client.request(verify ? "rotation_verify" : "rotation");
}

int exit_code(const json& verification) {
  if (status_number(verification, "older_file_count") +
          status_number(verification, "older_record_count") >
      0) {
    return exit_operational;
  }
  return status_number(verification, "damaged_place_count") > 0 ? exit_damage : exit_fine;
}

int print_verification(const json& verification) {
  const auto older = status_number(verification, "older_file_count") +
                     status_number(verification, "older_record_count");
  print_safely("{} records in {} files were looked at\n",
               status_number(verification, "record_count"),
               status_number(verification, "file_count"));
  const auto damaged = status_number(verification, "damaged_place_count");
  if (damaged > 0) {
    print_safely("{} places are damaged, so their epoch is not known: fsck.nacre says more\n",
                 damaged);
  }
  if (older == 0) {
    print_safely("nothing {}is left under an older epoch\n", damaged > 0 ? "else " : "");
    return exit_code(verification);
  }
  print_safely("{} records and {} files are still under an older epoch; the first: {}\n",
               status_number(verification, "older_record_count"),
               status_number(verification, "older_file_count"),
               status_text(verification, "first_older"));
  return exit_code(verification);
}

int show(const KeyStatusArguments& arguments) {
  const auto target = find_rotation_target(arguments.path);
  if (!target) return report(target.error());
  const auto* mount = std::get_if<fs::MountEntry>(&*target);
  const auto found = mount ? of_mount(*mount, arguments.verify)
                           : of_volume(std::get<VolumePlace>(*target), arguments.verify);
  if (!found) return report(found.error());
  json result = found->value("rotation", json::object());
  const bool verified = found->contains("verification");
  if (verified) result["verification"] = found->at("verification");
  if (arguments.json) {
    print_as_json(result);
    return verified ? exit_code(result["verification"]) : exit_fine;
  }
  print_rotation(result);
  return verified ? print_verification(result["verification"]) : exit_fine;
}

}  // namespace

void print_rotation(const json& rotation) {
  const std::string state = status_text(rotation, "state");
  if (status_text(rotation, "rotation") == "none") {
    print_safely("no rotation is under way; epoch {}\n", status_number(rotation, "epoch"));
    if (state != "none") {
      print_safely("  the last one did not begin: {}\n", status_text(rotation, "message"));
    }
    return;
  }
  const std::uint64_t done = status_number(rotation, "done_bytes");
  const std::uint64_t total = status_number(rotation, "total_bytes");
  const std::string stage = status_text(rotation, "stage");
  if (stage == "survey") {
    print_safely("{}, survey: all records are read before the rotation begins\n", state);
  } else {
    print_safely("rotation to epoch {}: {}{}{}\n", status_number(rotation, "epoch"), state,
                 stage.empty() ? "" : ", ", stage);
  }
  if (total > 0) {
    print_safely("  {} of {} ({:.1f} %)\n", format_bytes(done), format_bytes(total),
                 100.0 * static_cast<double>(done) / static_cast<double>(total));
  }
  if (const auto rate = status_number(rotation, "bytes_per_second"); rate > 0) {
    print_safely("  {}/s, about {} s left\n", format_bytes(rate),
                 status_number(rotation, "eta_seconds"));
  }
  if (const std::string message = status_text(rotation, "message"); !message.empty()) {
    print_safely("  {}\n", message);
  }
}

void add_key_status_command(CLI::App& key, Action& action) {
  CLI::App* command =
      key.add_subcommand("status", "Show whether keys are being rotated, and how far");
  auto arguments = std::make_shared<KeyStatusArguments>();
  command->add_option("VOLUME", arguments->path, "A volume's directory, or where one is mounted")
      ->required();
  command->add_flag("--verify", arguments->verify,
                    "Look at every record and file for data that is still under an older key");
  command->add_flag("--json", arguments->json, "As JSON");
  command->footer(
      "Examples:\n"
      "  nacre key status ~/private\n"
      "  nacre key status --verify ~/private\n"
      "Exit status: 0 fine (with --verify: nothing is left), 2 usage, 4 there is\n"
      "damage, of which epoch cannot be told, 8 failed, or something is left, 32 in use");
  command->callback([&action, arguments] { action = [arguments] { return show(*arguments); }; });
}

}  // namespace nacre::tools

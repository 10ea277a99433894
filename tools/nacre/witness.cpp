// SPDX-License-Identifier: Apache-2.0
// nacre witness: shows how far this machine has seen a volume.
#include <memory>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "fs/control/mount_table.h"
#include "metadata/text/exact_bytes.h"
#include "tools/cli/command_line.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/sight_json.h"
#include "tools/cli/terminal.h"
#include "tools/cli/volume_access.h"
#include "tools/cli/witness.h"
#include "tools/nacre/commands.h"

namespace nacre::tools {

namespace {

void print_sight(std::string_view what, const Sight& sight) {
  print_safely("  {:<10}  {}  {} openings for writing, {} changes, keyring {}, superblock {}\n",
               what, sight.time, sight.age.session_count, sight.age.change_count,
               sight.keyring_generation, sight.superblock_generation);
}

Result<> print_witness(const std::string& path, bool as_json) {
  const auto mount = fs::find_nacre_mount(path);
  NACRE_ASSIGN(const auto place, find_unmounted_volume(mount ? mount->source : path));
  NACRE_ASSIGN(const auto found, metadata::find_superblock(*place.directory));
  NACRE_ASSIGN(const auto witness, Witness::of_volume(hex(found.superblock.claims.volume_id)));
  NACRE_ASSIGN(const auto copies, witness.read());
  if (as_json) {
    nlohmann::json all = {{"copies", nlohmann::json::array()}};
    metadata::put_bytes(all, "file", witness.file());
    for (const SeenCopy& copy : copies) {
      nlohmann::json closings = nlohmann::json::array();
      for (const Sight& closing : copy.closings)
        closings.push_back(to_json(closing));
      nlohmann::json one = {{"last", to_json(copy.last)}, {"closings", std::move(closings)}};
      metadata::put_bytes(one, "path", copy.path);
      all["copies"].push_back(std::move(one));
    }
    print_as_json(all);
    return {};
  }
  if (copies.empty()) {
    print_safely("this machine has not opened {} for writing yet\n", place.path);
    return {};
  }
  for (const SeenCopy& copy : copies) {
    print_safely("{}{}\n", copy.path, &copy == &copies.front() ? "" : "  (taken though older)");
    print_sight("seen last", copy.last);
    for (const Sight& closing : copy.closings)
      print_sight("closed", closing);
  }
  return {};
}

}  // namespace

void add_witness_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("witness", "Show how far this machine has seen a volume");
  struct WitnessArguments {
    std::string path;
    bool json = false;
  };
  auto arguments = std::make_shared<WitnessArguments>();
  command->add_option("VOLUME", arguments->path, "A volume's directory, or where one is mounted")
      ->required();
  command->add_flag("--json", arguments->json, "As JSON");
  command->footer(
      "A volume that is older than that was put back, or its log was cut.\n"
      "Examples:\n"
      "  nacre witness ~/vault\n"
      "Exit status: 0 shown, 2 usage, 8 failed");
  command->callback([&action, arguments] {
    action = [arguments] {
      const auto shown = print_witness(arguments->path, arguments->json);
      return shown ? exit_fine : report(shown.error());
    };
  });
}

}  // namespace nacre::tools

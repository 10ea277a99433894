// SPDX-License-Identifier: Apache-2.0
// nacre key: manages who can open a volume. This file lists them.
#include <memory>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "metadata/keys/keyring.h"
#include "tools/cli/command_line.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/hardening.h"
#include "tools/cli/terminal.h"
#include "tools/cli/volume_access.h"
#include "tools/nacre/key_change.h"
#include "tools/nacre/key_commands.h"
#include "tools/nacre/newest_keyring.h"
#include "tools/nacre/rotate.h"

namespace nacre::tools {

namespace {

struct KeyArguments {
  std::string volume;
  SecretOptions secret;
  bool json = false;
};

// 0 if this version does not take the public key.
int bits_of(const metadata::Recipient& recipient) {
  const auto key = engine::RsaPublicKey::from_der(recipient.public_key);
  return key ? key->bits() : 0;
}

std::string kind_of(const metadata::Recipient& recipient) {
  if (recipient.other_kind) return fmt::format("kind {}", recipient.other_kind->number);
  return recipient.passphrase ? "passphrase" : "rsa";
}

nlohmann::json to_json(const metadata::Recipient& recipient) {
  nlohmann::json json = {{"kind", kind_of(recipient)},
                         {"label", recipient.label},
                         {"created", recipient.created},
                         {"fingerprint", hex(recipient.fingerprint)},
                         {"bits", bits_of(recipient)}};
  if (const auto& lock = recipient.passphrase) {
    json["confirmed"] = metadata::is_confirmed(recipient);
    json["key_pair"] = !recipient.public_key.empty();
    json["kdf"] = {{"name", "argon2id"},
                   {"memory_kib", lock->kdf.memory_kib},
                   {"passes", lock->kdf.passes},
                   {"lanes", lock->kdf.lanes}};
  }
  return json;
}

// fingerprint: that of the volume's key; empty if the keyring is not verified.
void print_keyring(const metadata::Keyring& keyring, const std::string& fingerprint) {
  for (const auto& recipient : keyring.recipients) {
    const bool is_rsa = !recipient.passphrase && !recipient.other_kind;
    const bool has_pair = !recipient.passphrase || !recipient.public_key.empty();
    print_safely(
        "{:<10}  {}  {}  {}{}{}\n",
        is_rsa ? fmt::format("rsa {}", bits_of(recipient)) : kind_of(recipient),
        hex(ByteView(recipient.fingerprint).first(8)), printable(recipient.created),
        printable(recipient.label),
        metadata::is_confirmed(recipient) ? "" : "  (not used since the volume's key was changed)",
        has_pair ? "" : "  (no RSA key: a rotation of keys needs the passphrase itself)");
  }
  if (!fingerprint.empty()) print_safely("fingerprint of the volume  {}\n", fingerprint);
  print_safely("keyring of generation {}, {} {}\n", keyring.generation, keyring.epochs.size(),
               keyring.epochs.size() == 1 ? "epoch" : "epochs");
  if (fingerprint.empty()) {
    print_safely(
        "Not verified: only a key of the volume can show that this list was not changed (give "
        "--passphrase-file or --identity)\n");
  }
}

Result<> list(const KeyArguments& arguments) {
  NACRE_ASSIGN(const auto target, find_key_target(arguments.volume));
  const VolumePlace& place = target.place;
  const bool with_key = arguments.secret.names_passphrase() || !arguments.secret.identity.empty();
  metadata::Keyring keyring;
  std::string fingerprint;
  std::shared_ptr<const metadata::KeyTree> keys;
  std::optional<metadata::VolumeSecret> secret;
  if (with_key) {
    harden_process();
    NACRE_ASSIGN(secret, read_secret(arguments.secret, place.path));
  }
  NACRE_ASSIGN(const auto newest, NewestKeyring::look(target));
  if (secret) {
    NACRE_ASSIGN(auto volume, unlock(place, *secret, arguments.secret));
    keyring = std::move(volume.keyring);
    fingerprint = fingerprint_of(*volume.keys);
    keys = std::move(volume.keys);
  } else {
    NACRE_ASSIGN(auto found, metadata::find_keyring(*place.directory));
    for (const auto& warning : found.warnings)
      print_warning(warning.message);
    keyring = std::move(found.keyring.claims);
  }
  NACRE_TRY(newest.check(keyring, keys));
  if (!arguments.json) {
    print_keyring(keyring, fingerprint);
    return {};
  }
  nlohmann::json json = {{"generation", keyring.generation},
                         {"verified", with_key},
                         {"epoch_count", keyring.epochs.size()},
                         {"recipients", nlohmann::json::array()}};
  if (with_key) json["volume_fingerprint"] = fingerprint;
  for (const auto& recipient : keyring.recipients) {
    json["recipients"].push_back(to_json(recipient));
  }
  print_as_json(json);
  return {};
}

}  // namespace

std::string describe(const metadata::Recipient& recipient) {
  return fmt::format(
      "{} {}{}",
      recipient.other_kind   ? fmt::format("recipient of {}", kind_of(recipient))
      : recipient.passphrase ? "passphrase"
                             : "RSA key",
      hex(ByteView(recipient.fingerprint).first(8)),
      recipient.label.empty() ? "" : fmt::format(" ({})", printable(recipient.label)));
}

void add_key_list_command(CLI::App& key, Action& action) {
  auto arguments = std::make_shared<KeyArguments>();
  CLI::App* command = key.add_subcommand("list", "List passphrases and public keys");
  command->add_option("VOLUME", arguments->volume, "The volume's directory, or where it is mounted")
      ->required();
  command->add_flag("--json", arguments->json, "As JSON");
  add_secret_options(*command, arguments->secret);
  command->footer(
      "If you give a passphrase or key, the list is verified.\n"
      "Examples:\n"
      "  nacre key list ~/private\n"
      "  nacre key list --json --identity me.pem /srv/vault\n"
      "Exit status: 0 done, 2 usage, 4 damaged or tampered with, 8 failed, 16 wrong key");
  command->callback([&action, arguments] {
    action = [arguments] {
      const auto listed = list(*arguments);
      return listed ? exit_fine : report(listed.error());
    };
  });
}

void add_key_command(CLI::App& app, Action& action) {
  CLI::App* key = app.add_subcommand("key", "Manage who can open a volume");
  key->require_subcommand(1);
  key->footer(
      "Examples:\n"
      "  nacre key list ~/private\n"
      "  nacre key add ~/private --recovery        a key to keep on paper\n"
      "  nacre key rotate ~/private                everything under a new key");
  add_key_list_command(*key, action);
  add_key_recipient_commands(*key, action);
  add_key_backup_commands(*key, action);
  add_rotate_command(*key, action);
  add_key_status_command(*key, action);
}

}  // namespace nacre::tools

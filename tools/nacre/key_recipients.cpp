// SPDX-License-Identifier: Apache-2.0
// nacre key add, remove and passphrase: change who can open a volume.
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "metadata/keys/keyring_recipients.h"
#include "metadata/keys/keyring_rotation.h"
#include "tools/cli/command_line.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/help_text.h"
#include "tools/cli/recipient_options.h"
#include "tools/cli/terminal.h"
#include "tools/nacre/key_change.h"
#include "tools/nacre/key_commands.h"
#include "tools/nacre/recovery_key.h"
#include "tools/nacre/rotate.h"
#include "tools/nacre/rotation_seals.h"

namespace nacre::tools {

namespace {

constexpr const char* exit_codes =
    "Exit status: 0 done, 2 usage, 4 the keyring is damaged or tampered with,\n"
    "8 failed, 16 wrong key, 32 in use";
// 200 random bits need no stretching, and opening tries every passphrase recipient, so it is cheap.
constexpr engine::Argon2Parameters recovery_kdf{
    .memory_kib = engine::argon2_memory_kib_min, .passes = 1, .lanes = 1};

struct RecipientArguments {
  std::string volume;
  SecretOptions secret;
  SecretOptions new_passphrase;
  KdfOptions kdf;
  std::string recipient;  // add: a public key's file; remove: which one
  std::optional<std::string> label;
  bool recovery = false;
  bool key_pair = false;
  bool revoke = false;
  std::vector<std::string> passphrase_files;  // rotation_seals.h
};

// The note after a secret was removed: what the removal does not undo. A rotation that is under way
// has wrapped its new key for that secret too.
std::string what_old_copies_open(const metadata::Keyring& keyring) {
  const bool is_rotating = keyring.epochs.size() > 1;
  return fmt::format(
      "Copies of the keyring that were made until now (backups, snapshots) still open with that "
      "secret, and they open the volume as it is today{}",
      is_rotating ? ". The rotation that is under way does not end that, because it made its new "
                    "key for that secret too: when it is done, run 'nacre key rotate' once more"
                  : ", because its key is the same: 'nacre key rotate' ends that");
}

// The new public key, passphrase or recovery key. It is read only once.
class Wanted {
 public:
  explicit Wanted(const RecipientArguments& arguments) : arguments_(arguments) {}

  // Reads what needs no answer, before it asks for a secret.
  Result<> prepare() {
    if (!arguments_.recipient.empty()) {
      NACRE_ASSIGN(public_key_, read_recipient(arguments_.recipient));
      if (arguments_.label) public_key_->label = *arguments_.label;
    } else if (!arguments_.recovery) {
      NACRE_ASSIGN(kdf_, parse_kdf(arguments_.kdf));
    } else {
      recovery_key_ = make_recovery_key();
      kdf_ = recovery_kdf;
    }
    return {};
  }

  Result<metadata::NewRecipient> recipient() {
    if (public_key_) return metadata::NewRecipient(*public_key_);
    NACRE_ASSIGN(auto made, passphrase());
    return metadata::NewRecipient(std::move(made));
  }

  Result<metadata::NewPassphrase> passphrase() {
    metadata::NewPassphrase made{.label = arguments_.label.value_or("passphrase"),
                                 .kdf = kdf_,
                                 .has_key_pair = arguments_.key_pair};
    if (arguments_.recovery) {
      made.label = arguments_.label.value_or("recovery key");
      made.passphrase = recovery_key_.clone();
      return made;
    }
    if (read_.empty()) {
      NACRE_ASSIGN(
          read_, read_passphrase(arguments_.new_passphrase,
                                 {.prompt = fmt::format("New passphrase for {}", arguments_.volume),
                                  .confirm = true}));
    }
    made.passphrase = read_.clone();
    return made;
  }

  // Printed once, when it opens the volume.
  void print_recovery_key() const {
    if (!arguments_.recovery) return;
    print_safely(
        "This recovery key is shown only once. Write it down with its hyphens, and keep it away "
        "from the volume:\n\n  {}\n\nThe key is a passphrase like any other: a person who reads it "
        "can open the volume\n",
        as_text(recovery_key_.view()));
  }

 private:
  const RecipientArguments& arguments_;
  std::optional<metadata::NewPublicKey> public_key_;
  engine::Argon2Parameters kdf_ = {};
  SecretBytes recovery_key_;
  SecretBytes read_;
};

Result<> add(const RecipientArguments& arguments) {
  Wanted wanted(arguments);
  NACRE_TRY(wanted.prepare());
  NACRE_ASSIGN(const auto target, find_key_target(arguments.volume));
  const auto make = [&](const metadata::VolumeKeys& volume) -> Result<metadata::Keyring> {
    NACRE_ASSIGN(const auto recipient, wanted.recipient());
    return metadata::add_recipient(volume.keyring, *volume.access, recipient);
  };
  NACRE_ASSIGN(const auto keyring, change_keyring(target, arguments.secret, make));
  const auto& added = keyring.recipients.back();
  print_safely("Added {}: it opens {}\n  fingerprint  {}\n", describe(added),
               printable(target.place.path), hex(added.fingerprint));
  wanted.print_recovery_key();
  if (added.passphrase && added.public_key.empty()) {
    std::fflush(stdout);
    print_note(
        "the new passphrase has no RSA key, so a rotation of the volume's keys needs the "
        "passphrase itself: in a file that --with-passphrase-file names. Or remove the passphrase "
        "before, and add another one afterwards");
  }
  return {};
}

Result<> remove(const RecipientArguments& arguments) {
  NACRE_ASSIGN(const auto target, find_key_target(arguments.volume));
  if (arguments.revoke && target.mount) NACRE_TRY(check_may_revoke(*target.mount));
  metadata::Recipient removed;
  bool removed_own = false;
  const auto make = [&](const metadata::VolumeKeys& volume) -> Result<metadata::Keyring> {
    NACRE_ASSIGN(const auto index, metadata::find_recipient(volume.keyring, arguments.recipient));
    removed = volume.keyring.recipients[index];
    removed_own = index == volume.access->recipient_index;
    if (removed_own && arguments.revoke) {
      return fail(ErrorCode::not_permitted,
                  "--revoke takes a secret that stays: the one that you gave is to be removed");
    }
    auto next = metadata::remove_recipient(volume.keyring, *volume.access, index);
    if (!next) return add_context(next.error(), describe(removed));
    if (arguments.revoke) {
      NACRE_ASSIGN(const auto seals,
                   collect_seals(target.place, *volume.access, arguments.passphrase_files));
      const auto rotates = metadata::check_can_be_rotated(*next, seals);
      if (!rotates) return add_context(rotates.error(), "--revoke, nothing was changed");
    }
    return next;
  };
  NACRE_ASSIGN(const auto keyring, change_keyring(target, arguments.secret, make));
  print_safely("Removed {}: {} left\n", describe(removed), keyring.recipients.size());
  std::fflush(stdout);
  if (removed_own) {
    print_note("you removed the secret that you gave: from now on, use another secret");
  }
  if (!arguments.revoke) print_note(what_old_copies_open(keyring));
  return {};
}

Result<> change_passphrase(const RecipientArguments& arguments) {
  if (!arguments.secret.identity.empty()) {
    return fail(ErrorCode::invalid_argument,
                "--identity: give the passphrase that is to be changed. If it is lost, add another "
                "one with 'nacre key add', then remove it");
  }
  Wanted wanted(arguments);
  NACRE_TRY(wanted.prepare());
  NACRE_ASSIGN(const auto target, find_key_target(arguments.volume));
  std::size_t index = 0;
  const auto make = [&](const metadata::VolumeKeys& volume) -> Result<metadata::Keyring> {
    index = volume.access->recipient_index;
    NACRE_ASSIGN(auto passphrase, wanted.passphrase());
    return metadata::change_passphrase(volume.keyring, *volume.access, std::move(passphrase));
  };
  NACRE_ASSIGN(const auto keyring, change_keyring(target, arguments.secret, make));
  const auto& changed = keyring.recipients[index];
  print_safely("Changed {}: the new one opens {}\n  fingerprint  {}\n", describe(changed),
               printable(target.place.path), hex(changed.fingerprint));
  std::fflush(stdout);
  print_note("the old passphrase no longer opens it. " + what_old_copies_open(keyring));
  return {};
}

// Everything gets another key, because the removed secret may have seen the old one. In a mounted
// volume that goes on in the background.
int revoke(const RecipientArguments& arguments) {
  RotateOptions options;
  options.wait = false;
  options.afresh = true;
  options.passphrase_files = arguments.passphrase_files;
  const int status = rotate_keys(arguments.volume, arguments.secret, options);
  if (status != exit_fine) {
    print_note(
        "the recipient was removed, but copies of the keyring that were made until now still open "
        "everything that was not encrypted anew since. To encrypt everything anew: nacre key "
        "rotate");
  }
  return status;
}

using RunRecipient = Result<> (*)(const RecipientArguments&);

void finish(CLI::App& command, Action& action, std::shared_ptr<RecipientArguments> arguments,
            RunRecipient run, std::string_view examples) {
  command.footer(fmt::format("Examples:\n{}\n{}", examples, exit_codes));
  command.callback([&action, arguments, run] {
    action = [arguments, run] {
      const auto done = run(*arguments);
      if (!done) return report(done.error());
      return arguments->revoke ? revoke(*arguments) : exit_fine;
    };
  });
}

void add_add_command(CLI::App& key, Action& action) {
  auto arguments = std::make_shared<RecipientArguments>();
  CLI::App* command = key.add_subcommand("add", "Let another key or passphrase open the volume");
  command->add_option("VOLUME", arguments->volume, "The volume's directory, or where it is mounted")
      ->required();
  auto* recipient =
      command->add_option("--recipient", arguments->recipient,
                          "An RSA public key (PEM) whose private key will open the volume");
  auto* recovery =
      command->add_flag("--recovery", arguments->recovery,
                        "Make a recovery key: a random passphrase, printed once, to keep on paper");
  recipient->excludes(recovery);
  add_new_passphrase_options(*command, arguments->new_passphrase);
  for (const char* name :
       {"--new-passphrase-file", "--new-passphrase-fd", "--new-passphrase-command"}) {
    command->get_option(name)->excludes(recipient)->excludes(recovery);
  }
  command->add_option("--label", arguments->label, "A name for it; it can be read without a key");
  // No help names it as long as format 2 is a draft: in format 1 all passphrases have one.
  command
      ->add_flag("--with-key-pair", arguments->key_pair,
                 "Also make an RSA key pair for the passphrase, so that others can rotate the "
                 "volume's keys without it")
      ->group("");
  add_kdf_options(*command, arguments->kdf);
  add_secret_options(*command, arguments->secret);
  mark_seldom(*command, {"--kdf-memory", "--kdf-time"});
  finish(*command, action, arguments, add,
         "  nacre key add ~/private --recovery          prints a key to keep on paper\n"
         "  nacre key add ~/private --recipient ann.pub.pem --label ann");
}

void add_remove_command(CLI::App& key, Action& action) {
  auto arguments = std::make_shared<RecipientArguments>();
  CLI::App* command = key.add_subcommand("remove", "Take a key or passphrase away");
  command->add_option("VOLUME", arguments->volume, "The volume's directory, or where it is mounted")
      ->required();
  command
      ->add_option("RECIPIENT", arguments->recipient,
                   "Its label, or the first 8 or more digits of its fingerprint")
      ->required();
  command->add_flag("--revoke", arguments->revoke,
                    "Also change the volume's key and encrypt everything anew, so that copies of "
                    "the old key open nothing in the volume");
  add_passphrase_files_option(*command, arguments->passphrase_files);
  add_secret_options(*command, arguments->secret);
  finish(*command, action, arguments, remove,
         "  nacre key remove ~/private ann\n"
         "  nacre key remove --revoke ~/private 91c07a3e");
}

void add_passphrase_command(CLI::App& key, Action& action) {
  auto arguments = std::make_shared<RecipientArguments>();
  CLI::App* command = key.add_subcommand("passphrase", "Change a passphrase");
  command->add_option("VOLUME", arguments->volume, "The volume's directory, or where it is mounted")
      ->required();
  add_secret_options(*command, arguments->secret);
  add_new_passphrase_options(*command, arguments->new_passphrase);
  add_kdf_options(*command, arguments->kdf);
  mark_seldom(*command, {"--kdf-memory", "--kdf-time"});
  finish(*command, action, arguments, change_passphrase,
         "  nacre key passphrase ~/private              asks for the old one and the new\n"
         "  nacre key passphrase --new-passphrase-file F /srv/vault");
}

}  // namespace

void add_key_recipient_commands(CLI::App& key, Action& action) {
  add_add_command(key, action);
  add_remove_command(key, action);
  add_passphrase_command(key, action);
}

}  // namespace nacre::tools

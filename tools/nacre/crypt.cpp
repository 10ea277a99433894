// SPDX-License-Identifier: Apache-2.0
// nacre crypt: seals single files and streams as a volume's content is sealed, without a volume.
#include "tools/nacre/crypt.h"

#include <sys/stat.h>

#include <limits>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "fs/crypt/container_keys.h"
#include "metadata/superblock.h"
#include "tools/cli/command_line.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/hardening.h"
#include "tools/cli/help_text.h"
#include "tools/cli/recipient_options.h"
#include "tools/cli/suite_option.h"
#include "tools/cli/terminal.h"
#include "tools/cli/volume_access.h"
#include "tools/nacre/crypt_run.h"

namespace nacre::tools {

namespace {

struct EncryptArguments {
  CryptPaths paths;
  CryptRunOptions run;
  std::vector<std::string> recipients;
  std::vector<std::string> passphrase_files;
  SecretOptions secret;  // one more passphrase, by another option
  KdfOptions kdf;
  std::string codec = "lz77";
  std::string cipher = "aes-256-gcm";
  std::string padding = "none";
  int level = 0;
  bool allow_legacy_cipher = false;
};

struct DecryptArguments {
  CryptPaths paths;
  CryptRunOptions run;
  SecretOptions secret;
};

// All named passphrases. If nothing else opens the container, asks for one.
Result<std::vector<SecretBytes>> read_new_passphrases(const EncryptArguments& arguments) {
  std::vector<SecretBytes> passphrases;
  for (const std::string& path : arguments.passphrase_files) {
    NACRE_ASSIGN(auto passphrase, read_passphrase({.passphrase_file = path}, {}));
    passphrases.push_back(std::move(passphrase));
  }
  const bool has_any = !passphrases.empty() || !arguments.recipients.empty();
  if (arguments.secret.names_passphrase() || !has_any) {
    NACRE_ASSIGN(auto passphrase,
                 read_passphrase(arguments.secret,
                                 {.prompt = "Passphrase for what is encrypted", .confirm = true}));
    passphrases.push_back(std::move(passphrase));
  }
  return passphrases;
}

Result<std::vector<metadata::NewRecipient>> read_recipients(const EncryptArguments& arguments) {
  std::vector<metadata::NewRecipient> recipients;
  for (const std::string& path : arguments.recipients) {
    NACRE_ASSIGN(auto recipient, read_recipient(path));
    // Anybody can read a keyring, so the file's name stays out of it.
    recipient.label.clear();
    recipients.emplace_back(std::move(recipient));
  }
  NACRE_ASSIGN(auto passphrases, read_new_passphrases(arguments));
  if (passphrases.empty()) return recipients;
  NACRE_ASSIGN(const auto kdf, parse_kdf(arguments.kdf));
  for (SecretBytes& passphrase : passphrases) {
    recipients.emplace_back(
        metadata::NewPassphrase{.passphrase = std::move(passphrase), .kdf = kdf});
  }
  return recipients;
}

// The user should not type a passphrase for a file that does not exist. A pipe is left alone: its
// writer would take a look for the reading, and end with it.
Result<> check_single_input(const std::vector<CryptFile>& files) {
  if (files.size() != 1 || files.front().input == standard_stream) return {};
  struct stat status = {};
  if (::stat(files.front().input.c_str(), &status) == 0 && S_ISFIFO(status.st_mode)) return {};
  NACRE_TRY(open_input(files.front().input));
  return {};
}

Result<int> encrypt(const EncryptArguments& arguments) {
  fs::ContainerPacking packing{.level = arguments.level};
  NACRE_ASSIGN(packing.codec, engine::codec_from_name(arguments.codec));
  NACRE_ASSIGN(packing.padding, metadata::padding_from_name(arguments.padding));
  NACRE_ASSIGN(const auto suite, engine::suite_from_name(arguments.cipher));
  NACRE_TRY(check_legacy_consent(suite, arguments.allow_legacy_cipher));
  NACRE_ASSIGN(auto files, plan_crypt_files(arguments.paths, CryptDirection::encrypt));
  NACRE_TRY(check_crypt_run(files, CryptDirection::encrypt, arguments.run));
  NACRE_TRY(check_single_input(files));
  NACRE_ASSIGN(const auto recipients, read_recipients(arguments));
  NACRE_ASSIGN(const auto keys, fs::make_container_keys(suite, recipients));
  if (engine::is_legacy(suite)) {
    print_warning(fmt::format("{} protects too little; it is used because you asked for it",
                              engine::to_string(suite)));
  }
  return run_crypt(files, CryptDirection::encrypt, packing.codec, arguments.run,
                   [&](engine::Engine& engine, const fs::NextContainerTask& next,
                       const fs::ContainerProgress& progress) {
                     return fs::encrypt_containers(engine, keys, packing, next, progress);
                   });
}

Result<int> decrypt(const DecryptArguments& arguments) {
  NACRE_ASSIGN(auto files, plan_crypt_files(arguments.paths, CryptDirection::decrypt));
  NACRE_TRY(check_crypt_run(files, CryptDirection::decrypt, arguments.run));
  NACRE_TRY(check_single_input(files));
  const std::string what =
      files.size() == 1 ? input_name(files.front().input) : fmt::format("{} files", files.size());
  NACRE_ASSIGN(const auto secret, read_secret(arguments.secret, what));
  fs::ContainerUnlocker unlocker(secret, note_kdf_cost);
  return run_crypt(files, CryptDirection::decrypt, engine::Codec::none, arguments.run,
                   [&](engine::Engine& engine, const fs::NextContainerTask& next,
                       const fs::ContainerProgress& progress) {
                     return fs::decrypt_containers(
                         engine, [&](ByteView text) { return unlocker.unlock(text); }, next,
                         progress);
                   });
}

int exit_code_of(const Result<int>& outcome) {
  return outcome ? *outcome : report(outcome.error());
}

}  // namespace

void add_crypt_encrypt_command(CLI::App& crypt, Action& action) {
  CLI::App* command = crypt.add_subcommand("encrypt", "Seal files or standard input");
  auto arguments = std::make_shared<EncryptArguments>();
  add_crypt_run_options(*command, arguments->paths, arguments->run);
  command
      ->add_option("--recipient", arguments->recipients,
                   "An RSA public key (PEM) whose private key opens the output; may be repeated")
      ->allow_extra_args(false);
  command
      ->add_option("--passphrase-file", arguments->passphrase_files,
                   "Read a passphrase that opens the output from this file; may be repeated")
      ->allow_extra_args(false);
  auto* descriptor = command->add_option("--passphrase-fd", arguments->secret.passphrase_fd,
                                         "Read a passphrase from this file descriptor, to its end");
  descriptor->check(CLI::Range(0, std::numeric_limits<int>::max()))->type_name("NUMBER");
  command
      ->add_option("--passphrase-command", arguments->secret.passphrase_command,
                   "Take the output of this shell command as a passphrase")
      ->excludes(descriptor);
  command
      ->add_option("--codec", arguments->codec,
                   fmt::format("Compression: {}; with none, sizes tell nothing about the content",
                               codec_names()))
      ->capture_default_str();
  command
      ->add_option("--level", arguments->level, "0: the codec's default, 1: fastest, 9: smallest")
      ->check(CLI::Range(0, engine::codec_level_max))
      ->capture_default_str();
  command
      ->add_option("--cipher", arguments->cipher,
                   fmt::format("Cipher suite: {}; with --allow-legacy-cipher also {}",
                               suite_names(false), suite_names(true)))
      ->capture_default_str();
  command->add_flag("--allow-legacy-cipher", arguments->allow_legacy_cipher,
                    "Allow the ciphers DES and 3DES, which protect too little");
  command
      ->add_option("--padding", arguments->padding,
                   "none or padme; padme makes files up to 12 % longer, and their sizes tell less")
      ->capture_default_str();
  add_kdf_options(*command, arguments->kdf);
  mark_seldom(*command, {"--keep", "--no-sync", "--engine", "--verbose", "--passphrase-fd",
                         "--passphrase-command", "--level", "--cipher", "--allow-legacy-cipher",
                         "--padding", "--kdf-memory", "--kdf-time", "--json"});
  command->footer(
      "Without --recipient or a passphrase option it asks for a passphrase.\n"
      "Examples:\n"
      "  nacre crypt encrypt letter.odt                     makes letter.odt.ncr\n"
      "  nacre crypt encrypt -r photos -C /mnt/stick --recipient mum.pub.pem\n"
      "  tar c src | nacre crypt encrypt --passphrase-file F >src.tar.ncr");
  command->callback([&action, arguments] {
    action = [arguments] {
      harden_process();
      return exit_code_of(encrypt(*arguments));
    };
  });
}

void add_crypt_decrypt_command(CLI::App& crypt, Action& action) {
  CLI::App* command = crypt.add_subcommand("decrypt", "Open what encrypt made");
  auto arguments = std::make_shared<DecryptArguments>();
  add_crypt_run_options(*command, arguments->paths, arguments->run);
  add_passphrase_options(*command, arguments->secret);
  command
      ->add_option("--identity", arguments->secret.identity,
                   "RSA private key that opens the files: a PEM file or a URI; the passphrase "
                   "options say where its own passphrase comes from")
      ->type_name("KEY");
  mark_seldom(*command, {"--keep", "--no-sync", "--engine"});
  command->footer(
      "A file appears under its name only if all of it was verified. Standard output\n"
      "gets each piece once that is verified: what it got is complete only if the exit\n"
      "status is 0.\n"
      "Examples:\n"
      "  nacre crypt decrypt letter.odt.ncr                 makes letter.odt\n"
      "  nacre crypt decrypt --identity me.pem <src.tar.ncr | tar x");
  command->callback([&action, arguments] {
    action = [arguments] {
      harden_process();
      return exit_code_of(decrypt(*arguments));
    };
  });
}

void add_crypt_command(CLI::App& app, Action& action) {
  CLI::App* crypt = app.add_subcommand("crypt", "Encrypt and decrypt single files and streams");
  crypt->require_subcommand(1);
  crypt->footer(
      "Examples:\n"
      "  nacre crypt encrypt letter.odt            asks for a passphrase\n"
      "  nacre crypt decrypt letter.odt.ncr\n"
      "  nacre crypt inspect letter.odt.ncr        who can open it");
  add_crypt_encrypt_command(*crypt, action);
  add_crypt_decrypt_command(*crypt, action);
  add_crypt_inspect_command(*crypt, action);
  add_crypt_keygen_command(*crypt, action);
}

}  // namespace nacre::tools

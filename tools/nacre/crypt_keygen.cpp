// SPDX-License-Identifier: Apache-2.0
// nacre crypt keygen: makes one or many pairs of RSA keys.
#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "gpu_engine/engine.h"
#include "gpu_engine/publickey/rsa_encrypted_pem.h"
#include "tools/cli/command_line.h"
#include "tools/cli/engine_option.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/hardening.h"
#include "tools/cli/help_text.h"
#include "tools/cli/terminal.h"
#include "tools/nacre/crypt.h"
#include "tools/nacre/crypt_output.h"

namespace nacre::tools {

namespace {

using nlohmann::json;

// Keys are written once their payload is done, so a failure costs at most the keys of one payload.
// A device searches for many at once.
constexpr unsigned batch_count_max = 64;
constexpr unsigned device_batch_count_max = 1024;
constexpr unsigned key_count_max = 100000;
constexpr mode_t private_mode = 0600;

struct KeygenArguments {
  std::string name;
  SecretOptions secret;
  int bits = engine::rsa_bits_default;
  unsigned count = 1;
  std::string engine = "auto";
  bool no_passphrase = false;
  bool json = false;
};

struct KeyFiles {
  std::string private_path, public_path;
  std::string fingerprint;
};

// NAME.pem and NAME.pub.pem; for several keys NAME-01.pem and so on.
KeyFiles name_files(const KeygenArguments& arguments, unsigned index) {
  const auto width = fmt::formatted_size("{}", arguments.count);
  const std::string stem = arguments.count == 1
                               ? arguments.name
                               : fmt::format("{}-{:0{}}", arguments.name, index + 1, width);
  return {.private_path = stem + ".pem", .public_path = stem + ".pub.pem"};
}

Result<> check_free(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return {};
  return fail(
      ErrorCode::exists,
      fmt::format("{} exists already, and a key is never replaced: give another name, or move "
                  "it away",
                  path));
}

Result<> write_file(const std::string& path, std::string_view text, std::optional<mode_t> mode) {
  NACRE_ASSIGN(auto file, OutputFile::create(path, false, Durability::synced));
  const ByteView bytes = as_bytes(text);
  NACRE_TRY(file.write(std::span<const ByteView>(&bytes, 1)));
  NACRE_TRY(file.set_attributes(mode, {}));
  NACRE_TRY(file.sync());
  if (const auto published = file.publish(false); !published) {
    if (published.error().code == ErrorCode::exists) NACRE_TRY(check_free(path));
    return published;
  }
  return sync_folder_of(path);
}

// Writes the private key first, because a public key without it would be of no use.
Result<> write_pair(const engine::RsaPrivateKey& key, ByteView passphrase, KeyFiles& files) {
  NACRE_ASSIGN(std::string pem,
               passphrase.empty() ? key.to_pem() : engine::to_encrypted_pem(key, passphrase));
  const auto written = write_file(files.private_path, pem, private_mode);
  wipe({reinterpret_cast<Byte*>(pem.data()), pem.size()});
  NACRE_TRY(written);
  const auto public_key = key.public_key();
  files.fingerprint = hex(public_key.fingerprint());
  return write_file(files.public_path, public_key.to_pem(), {});
}

// Makes the keys of one payload.
Result<> make_batch(engine::Engine& engine, int bits, ByteView passphrase,
                    std::span<KeyFiles> files) {
  const std::size_t room = engine::rsa_private_key_size_bound(bits);
  NACRE_ASSIGN(auto arena, engine.allocate(room * files.size()));
  engine::Payload payload;
  payload.output = arena.data();
  payload.output_size = arena.size();
  for (std::size_t i = 0; i < files.size(); ++i) {
    payload.add({.operation = engine::Operation::rsa_generate,
                 .output_offset = i * room,
                 .output_capacity = room,
                 .rsa_bits = static_cast<std::uint32_t>(bits)});
  }
  engine.run(payload);
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto& result = payload.results[i];
    if (!result.ok) return fail(result.error, fmt::format("making a key: {}", result.detail));
    NACRE_ASSIGN(const auto key, engine::RsaPrivateKey::from_der(
                                     ByteView(arena.data() + i * room, result.output_size)));
    NACRE_TRY(write_pair(key, passphrase, files[i]));
  }
  return {};
}

void print(const KeygenArguments& arguments, const std::vector<KeyFiles>& files) {
  if (arguments.json) {
    json object = {
        {"bits", arguments.bits}, {"encrypted", !arguments.no_passphrase}, {"keys", json::array()}};
    for (const KeyFiles& file : files) {
      object["keys"].push_back({{"private", file.private_path},
                                {"public", file.public_path},
                                {"fingerprint", file.fingerprint}});
    }
    print_as_json(object);
    return;
  }
  for (const KeyFiles& file : files) {
    print_safely("{}  {}  {}\n", file.fingerprint.substr(0, 16), printable(file.private_path),
                 printable(file.public_path));
  }
  print_safely(
      "Give others the public {} (--recipient); {} private, and without it nothing opens\n"
      "what was encrypted to it (--identity).\n",
      files.size() == 1 ? "key" : "keys",
      files.size() == 1 ? "keep the other one" : "keep the others");
}

Result<> generate(const KeygenArguments& arguments) {
  NACRE_ASSIGN(const auto choice, parse_engine(arguments.engine));
  const engine::EngineChoice used = engine_for_keys(choice, arguments.count);
  std::vector<KeyFiles> files;
  for (unsigned i = 0; i < arguments.count; ++i) {
    files.push_back(name_files(arguments, i));
    NACRE_TRY(check_free(files.back().private_path));
    NACRE_TRY(check_free(files.back().public_path));
  }
  if (arguments.no_passphrase && arguments.secret.names_passphrase()) {
    return fail(ErrorCode::invalid_argument,
                "--no-passphrase, and an option that says where the passphrase is: give one");
  }
  SecretBytes passphrase;
  if (!arguments.no_passphrase) {
    NACRE_ASSIGN(passphrase,
                 read_passphrase(arguments.secret,
                                 {.prompt = arguments.count == 1
                                                ? fmt::format("Passphrase for the private key {}",
                                                              files.front().private_path)
                                                : "Passphrase for all the private keys",
                                  .confirm = true}));
  }
  const SignalCleanup cleanup;
  NACRE_ASSIGN(const auto engine, engine::Engine::create(engine_options(
                                      used, [](std::string_view text) { print_warning(text); })));
  const std::size_t batch =
      used == engine::EngineChoice::cpu ? batch_count_max : device_batch_count_max;
  for (std::size_t at = 0; at < files.size(); at += batch) {
    const std::size_t count = std::min(batch, files.size() - at);
    NACRE_TRY(make_batch(*engine, arguments.bits, passphrase.view(),
                         std::span(files).subspan(at, count)));
  }
  print(arguments, files);
  return {};
}

}  // namespace

void add_crypt_keygen_command(CLI::App& crypt, Action& action) {
  CLI::App* command = crypt.add_subcommand("keygen", "Make RSA keys to encrypt to");
  auto arguments = std::make_shared<KeygenArguments>();
  command
      ->add_option("NAME", arguments->name,
                   "Makes NAME.pem, the private key, and NAME.pub.pem, the public one")
      ->required();
  add_passphrase_options(*command, arguments->secret);
  command->add_flag(
      "--no-passphrase", arguments->no_passphrase,
      "Do not encrypt the private keys: a person who can read such a file has the key");
  command->add_option("--bits", arguments->bits, "Size of the keys")
      ->check(CLI::Range(engine::rsa_bits_min, engine::rsa_bits_max))
      ->capture_default_str();
  command
      ->add_option("--count", arguments->count,
                   "Make this many: NAME-1.pem, NAME-2.pem, …, all under one passphrase")
      ->check(CLI::Range(1u, key_count_max))
      ->capture_default_str();
  command->add_option("--engine", arguments->engine, "auto, cpu or cuda")->capture_default_str();
  command->add_flag("--json", arguments->json, "As JSON");
  mark_seldom(*command, {"--engine"});
  command->footer(
      "The keys are plain PEM files (PKCS#8). mkfs.nacre, nacre key add and openssl(1)\n"
      "take them too. Existing files are never replaced.\n"
      "Examples:\n"
      "  nacre crypt keygen me\n"
      "  nacre crypt encrypt --recipient me.pub.pem letter.odt");
  command->callback([&action, arguments] {
    action = [arguments]() -> int {
      harden_process();
      const auto made = generate(*arguments);
      return made ? exit_fine : report(made.error());
    };
  });
}

}  // namespace nacre::tools

// SPDX-License-Identifier: Apache-2.0
// nacre crypt inspect: shows what a container is. Without a secret it shows what anybody can see
// and checks every CRC. With one it opens and verifies everything, and keeps nothing.
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "fs/crypt/container_inspect.h"
#include "fs/crypt/container_run.h"
#include "metadata/text/exact_bytes.h"
#include "metadata/text/rfc3339.h"
#include "tools/cli/command_line.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/hardening.h"
#include "tools/cli/recipient_options.h"
#include "tools/cli/terminal.h"
#include "tools/cli/volume_access.h"
#include "tools/nacre/crypt.h"
#include "tools/nacre/crypt_task.h"

namespace nacre::tools {

namespace {

using nlohmann::json;

struct InspectArguments {
  std::vector<std::string> files;
  SecretOptions secret;
  bool json = false;
};

struct Found {
  std::string path;
  Result<fs::ContainerInspection> seen;
  std::optional<Result<fs::ContainerEnd>> opened;  // with a secret
};

Result<fs::ContainerInspection> look_at(const std::string& path) {
  NACRE_ASSIGN(const auto descriptor, open_input(path));
  return fs::inspect_container(
      [&](MutableByteView out) { return read_full(descriptor.get(), out, input_name(path)); });
}

// Takes a container's content and keeps nothing.
class VerifyTask : public fs::ContainerTask {
 public:
  explicit VerifyTask(Found& found) : found_(found) {}
  Result<> open() override {
    NACRE_ASSIGN(source_, open_input(found_.path));
    return {};
  }
  Result<std::size_t> read(MutableByteView out) override {
    auto got = read_full(source_.get(), out, found_.path);
    if (!got || *got < out.size()) source_ = {};
    return got;
  }
  Result<> write(std::span<const ByteView>) override { return {}; }
  void finish(Result<fs::ContainerEnd> outcome) override { found_.opened = std::move(outcome); }

 private:
  Found& found_;
  metadata::FileDescriptor source_;
};

Result<> verify(std::vector<Found>& found, const SecretOptions& options) {
  NACRE_ASSIGN(const auto secret, read_secret(options, found.front().path));
  fs::ContainerUnlocker unlocker(secret, note_kdf_cost);
  NACRE_ASSIGN(const auto engine, engine::Engine::create({.choice = engine::EngineChoice::cpu}));
  std::size_t next_index = 0;
  return fs::decrypt_containers(
      *engine, [&](ByteView text) { return unlocker.unlock(text); },
      [&]() -> std::unique_ptr<fs::ContainerTask> {
        while (next_index < found.size() && !found[next_index].seen)
          ++next_index;
        if (next_index == found.size()) return nullptr;
        return std::make_unique<VerifyTask>(found[next_index++]);
      });
}

const Error* error_of(const Found& found) {
  if (!found.seen) return &found.seen.error();
  return found.opened && !*found.opened ? &found.opened->error() : nullptr;
}

json to_json(const Found& found) {
  json object = {{"ok", error_of(found) == nullptr}};
  metadata::put_bytes(object, "file", found.path);
  if (const Error* error = error_of(found)) {
    object["error"] = {{"code", std::string(to_string(error->code))}, {"message", error->message}};
  }
  if (!found.seen) return object;
  object["stored_bytes"] = found.seen->stored_bytes;
  object["record_count"] = found.seen->record_count;
  object["chunk_size_bytes"] = found.seen->header.chunk_size_bytes();
  object["cipher"] = std::string(engine::to_string(found.seen->keyring.epochs.front().suite));
  object["recipients"] = json::array();
  for (const auto& recipient : found.seen->keyring.recipients) {
    object["recipients"].push_back({{"kind", recipient.passphrase ? "passphrase" : "rsa"},
                                    {"fingerprint", hex(recipient.fingerprint)}});
  }
  object["verified"] = found.opened && *found.opened;
  if (!found.opened || !*found.opened) return object;
  const fs::ContainerEnd& end = **found.opened;
  object["plain_bytes"] = end.size_bytes;
  if (!end.attributes.name.empty()) metadata::put_bytes(object, "name", end.attributes.name);
  if (end.attributes.mode) object["mode"] = fmt::format("{:04o}", *end.attributes.mode);
  if (end.attributes.modified) {
    object["modified"] = metadata::rfc3339(end.attributes.modified->seconds);
  }
  return object;
}

void print(const Found& found) {
  if (!found.seen) return;
  const auto& seen = *found.seen;
  print_safely("{}\n", printable(found.path));
  print_safely("  cipher      {}\n", engine::to_string(seen.keyring.epochs.front().suite));
  print_safely("  sealed      {} in {} records, chunks of {}\n", format_bytes(seen.stored_bytes),
               seen.record_count, format_bytes(seen.header.chunk_size_bytes()));
  for (const auto& recipient : seen.keyring.recipients) {
    print_safely("  opened by   {} {}\n", recipient.passphrase ? "passphrase" : "RSA key",
                 hex(ByteView(recipient.fingerprint).first(8)));
  }
  if (!found.opened) {
    print_safely(
        "  Checksums are right. A proof needs a key (--passphrase-file, "
        "--identity)\n");
  } else if (*found.opened) {
    const fs::ContainerEnd& end = **found.opened;
    print_safely("  holds       {}", format_bytes(end.size_bytes));
    if (!end.attributes.name.empty()) print_safely(" of {}", printable(end.attributes.name));
    if (end.attributes.mode) print_safely(", mode {:04o}", *end.attributes.mode);
    if (end.attributes.modified) {
      print_safely(", of {}", metadata::rfc3339(end.attributes.modified->seconds));
    }
    print_safely("\n  All of it was opened and verified\n");
  }
}

int inspect(const InspectArguments& arguments) {
  std::vector<Found> found;
  for (const std::string& path : arguments.files)
    found.push_back({.path = path, .seen = look_at(path), .opened = {}});
  if (arguments.secret.names_passphrase() || !arguments.secret.identity.empty()) {
    if (const auto verified = verify(found, arguments.secret); !verified) {
      return report(verified.error());
    }
  }
  json list = json::array();
  int code = exit_fine;
  for (const Found& one : found) {
    if (arguments.json) {
      list.push_back(to_json(one));
    } else {
      print(one);
    }
    if (const Error* error = error_of(one)) {
      const bool has_name = error->message.find(one.path) != std::string::npos;
      const int own = report(has_name ? *error : add_context(*error, one.path).value());
      if (code == exit_fine) code = own;
    }
  }
  if (arguments.json) {
    print_as_json(list);
  }
  return code;
}

}  // namespace

void add_crypt_inspect_command(CLI::App& crypt, Action& action) {
  CLI::App* command = crypt.add_subcommand("inspect", "Show what containers are, and verify them");
  auto arguments = std::make_shared<InspectArguments>();
  command->add_option("FILE", arguments->files, "A file that nacre crypt encrypt made")->required();
  add_passphrase_options(*command, arguments->secret);
  command
      ->add_option("--identity", arguments->secret.identity,
                   "The RSA private key to verify with: a PEM file or a URI")
      ->type_name("KEY");
  command->add_flag("--json", arguments->json, "As JSON");
  command->footer(
      "Without a key it shows who can open the file, its size, and whether its\n"
      "checksums are right. With one it opens and verifies everything.\n"
      "Examples:\n"
      "  nacre crypt inspect letter.odt.ncr\n"
      "  nacre crypt inspect --identity me.pem --json *.ncr");
  command->callback([&action, arguments] {
    action = [arguments] {
      harden_process();
      return inspect(*arguments);
    };
  });
}

}  // namespace nacre::tools

// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/recipient_options.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "tools/cli/secret_source.h"
#include "tools/cli/size_argument.h"
#include "tools/cli/terminal.h"

namespace nacre::tools {

namespace {

constexpr std::size_t public_key_size_bytes_max = 64u << 10;
constexpr std::uint32_t kdf_target_ms = 1000;

}  // namespace

void add_kdf_options(CLI::App& app, KdfOptions& options) {
  app.add_option("--kdf-memory", options.memory,
                 "Memory of Argon2id for the passphrase, in KiB or with M or G (default: what "
                 "takes about a second on this machine)");
  app.add_option("--kdf-time", options.time, "Passes of Argon2id over that memory")
      ->check(CLI::Range(1u, engine::argon2_passes_max));
}

Result<engine::Argon2Parameters> parse_kdf(const KdfOptions& options) {
  std::uint64_t memory_kib = 0;
  if (!options.memory.empty()) {
    NACRE_ASSIGN(const auto bytes, parse_size(options.memory, 1024));
    memory_kib = bytes / 1024;
    if (memory_kib < engine::argon2_memory_kib_min || memory_kib > engine::argon2_memory_kib_max) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("--kdf-memory {}: from {} KiB to {} KiB", options.memory,
                              engine::argon2_memory_kib_min, engine::argon2_memory_kib_max));
    }
  }
  constexpr std::uint32_t lanes_of_explicit = 4;
  engine::Argon2Parameters kdf{.memory_kib = 0, .passes = 1, .lanes = lanes_of_explicit};
  if (memory_kib == 0 || options.time == 0) kdf = engine::calibrate_argon2(kdf_target_ms);
  if (memory_kib != 0) kdf.memory_kib = static_cast<std::uint32_t>(memory_kib);
  if (options.time != 0) kdf.passes = options.time;
  NACRE_TRY(metadata::check_kdf_cost(kdf, metadata::kdf_limit()));
  return kdf;
}

Result<metadata::KdfLimit> parse_kdf_limit(const std::string& text) {
  NACRE_ASSIGN(const std::uint64_t bytes, parse_size(text));
  const std::uint64_t kib = bytes / 1024;
  if (kib < engine::argon2_memory_kib_min) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("--kdf-limit {}: no passphrase costs less than {} KiB", text,
                            engine::argon2_memory_kib_min));
  }
  return metadata::KdfLimit{.work_kib = kib, .memory_kib = kib};
}

void note_kdf_cost(const metadata::Keyring& keyring) {
  constexpr std::uint64_t noted_work_kib = 4u << 20;
  std::uint64_t work_kib = 0;
  std::uint32_t memory_kib = 0;
  std::size_t count = 0;
  for (const auto& recipient : keyring.recipients) {
    if (!recipient.passphrase) continue;
    work_kib += metadata::work_kib_of(recipient.passphrase->kdf);
    memory_kib = std::max(memory_kib, recipient.passphrase->kdf.memory_kib);
    ++count;
  }
  work_kib = std::min(work_kib, metadata::kdf_limit().work_kib);
  if (work_kib <= noted_work_kib) return;
  print_note(fmt::format(
      "the passphrase may belong to any of {} recipients: trying them takes up to {} of memory "
      "at a time and fills {} in all, at about a second for each GiB",
      count, format_bytes(std::uint64_t{memory_kib} * 1024), format_bytes(work_kib * 1024)));
}

// check_label() decides whether the name can be a label.
Result<metadata::NewPublicKey> read_recipient(const std::string& path, metadata::FileKinds kinds) {
  NACRE_ASSIGN(const auto pem, read_secret_file(path, public_key_size_bytes_max, kinds));
  if (as_text(pem.view()).find("PRIVATE KEY") != std::string_view::npos) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} holds a private key: give the public one (openssl pkey -in {} "
                            "-pubout makes it)",
                            path, path));
  }
  auto key = engine::RsaPublicKey::from_pem(as_text(pem.view()));
  if (!key) return add_context(key.error(), path);
  return metadata::NewPublicKey{.label = std::filesystem::path(path).filename().string(),
                                .key = std::move(*key)};
}

}  // namespace nacre::tools

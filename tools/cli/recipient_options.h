// SPDX-License-Identifier: Apache-2.0
// Options that make a new recipient of a volume: a public key from a file, or the cost of a
// passphrase.
#pragma once

#include <cstdint>
#include <string>

#include "gpu_engine/base/result.h"
#include "metadata/backing/posix_file.h"
#include "metadata/keys/keyring.h"

namespace CLI {
class App;
}

namespace nacre::tools {

struct KdfOptions {
  std::string memory;      // --kdf-memory; empty: measured, so that it takes about a second
  std::uint32_t time = 0;  // --kdf-time; 0: likewise
};
void add_kdf_options(CLI::App& app, KdfOptions& options);
// Measures what is not given. Error: invalid_argument.
Result<engine::Argon2Parameters> parse_kdf(const KdfOptions& options);
// The limits of --kdf-limit, which also bounds the memory of each passphrase. Error:
// invalid_argument.
Result<metadata::KdfLimit> parse_kdf_limit(const std::string& text);
// Says beforehand what opening with a passphrase may cost, if that is much.
void note_kdf_cost(const metadata::Keyring& keyring);

// Reads an RSA public key in PEM; its label is the file's name. Error: invalid_argument, also for a
// private key; those of read_secret_file().
Result<metadata::NewPublicKey> read_recipient(const std::string& path,
                                              metadata::FileKinds kinds = metadata::FileKinds::all);

}  // namespace nacre::tools

// SPDX-License-Identifier: Apache-2.0
// Where passphrases come from: a file, a file descriptor, a command's output, or a prompt on the
// terminal. One newline at the end is ignored, all other bytes count, and an empty passphrase is
// refused. The bytes never leave locked memory.
#pragma once

#include <string>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/result.h"
#include "metadata/backing/posix_file.h"

namespace nacre::tools {

inline constexpr std::size_t passphrase_size_bytes_max = 4096;

// The options of the command line. At most one of the first three is given.
struct SecretOptions {
  std::string passphrase_file;  // also /dev/fd/N
  int passphrase_fd = -1;
  std::string passphrase_command;
  std::string identity;  // file with an RSA private key, instead of a passphrase
  // The fingerprint of the volume that is meant, as parse_fingerprint() gives it; empty: none
  // named.
  std::string fingerprint;
  // Opens the volume although it is older than this machine has seen it.
  bool accept_older_state = false;

  bool names_passphrase() const {
    return !passphrase_file.empty() || passphrase_fd >= 0 || !passphrase_command.empty();
  }
};

// Errors: invalid_argument for an empty or too long passphrase, and if there is neither a source
// nor a terminal; not_found, permission, io.
struct PassphraseRequest {
  std::string prompt;    // "Passphrase for /srv/volume"
  bool confirm = false;  // asks a second time on a terminal
};
Result<SecretBytes> read_passphrase(const SecretOptions& options, const PassphraseRequest& request);

// Reads a whole small file, for keys, into locked memory. Error: too_big past size_max; those of
// open_regular_file() where other kinds of files are refused.
Result<SecretBytes> read_secret_file(const std::string& path, std::size_t size_max,
                                     metadata::FileKinds kinds = metadata::FileKinds::all);

}  // namespace nacre::tools

// SPDX-License-Identifier: Apache-2.0
// Opens the keyring with each passphrase that a rotation is given, and keeps what it gives.
#include "tools/nacre/rotation_seals.h"

#include <algorithm>

namespace nacre::tools {

bool needs_seals(const metadata::Keyring& keyring) {
  return std::any_of(keyring.recipients.begin(), keyring.recipients.end(),
                     [](const metadata::Recipient& recipient) {
                       return recipient.passphrase && recipient.public_key.empty();
                     });
}

Result<std::vector<metadata::RecipientSeal>> collect_seals(const VolumePlace& place,
                                                           const metadata::KeyringAccess& access,
                                                           const std::vector<std::string>& files) {
  std::vector<metadata::RecipientSeal> seals;
  if (access.seal) seals.push_back(access.seal->clone());
  if (files.empty()) return seals;
  NACRE_ASSIGN(const auto found, metadata::find_keyring(*place.directory));
  for (const std::string& file : files) {
    SecretOptions options;
    options.passphrase_file = file;
    NACRE_ASSIGN(auto passphrase, read_passphrase(options, {}));
    auto opened = metadata::open_keyring(found.keyring, std::move(passphrase));
    if (!opened) return add_context(opened.error(), file);
    if (opened->access.seal) seals.push_back(std::move(*opened->access.seal));
  }
  return seals;
}

void add_passphrase_files_option(CLI::App& app, std::vector<std::string>& files) {
  // No help names it as long as format 2 is a draft: in format 1 all passphrases have a key pair.
  app.add_option("--with-passphrase-file", files,
                 "A file with another passphrase of the volume, so that it keeps opening it; for "
                 "passphrases without an RSA key pair. May be repeated")
      ->allow_extra_args(false)
      ->group("");
}

}  // namespace nacre::tools

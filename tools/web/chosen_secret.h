// SPDX-License-Identifier: Apache-2.0
// The secret that a request names: the ID of a passphrase that was sent before, a file with an RSA
// private key, or both (then the passphrase is the key's own).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "metadata/keys/keyring.h"
#include "tools/web/access.h"
#include "tools/web/fields.h"
#include "tools/web/program.h"
#include "tools/web/web_error.h"

namespace nacre::tools::web {

struct ChosenSecret {
  std::shared_ptr<const SecretBytes> passphrase;  // null: none
  std::string identity;                           // path; empty: none

  bool is_given() const { return passphrase != nullptr || !identity.empty(); }
  // Adds --identity to the words, and the passphrase to the secrets. Without a passphrase an empty
  // one is given, so that the program asks at no terminal.
  void give_to(ProgramRun& run) const;
  // Adds --identity to a command that a person would type.
  void add_to_command(std::vector<std::string>& words) const;
};

// Returns the secret of an ID, which is then used up. So it is called when all other fields are
// known to be right. id_field: "secret".
tl::expected<std::shared_ptr<const SecretBytes>, WebError> take_secret(Access& access,
                                                                       const Fields& fields,
                                                                       const char* id_field);
// The fields "secret" and "identity". Error: invalid_argument if both are missing and one is
// needed.
tl::expected<ChosenSecret, WebError> take_chosen_secret(Access& access, const Fields& fields,
                                                        bool is_needed);
// Opens the key file. Errors: wrong_key, invalid_argument, and those of reading.
Result<metadata::VolumeSecret> open_chosen_secret(const ChosenSecret& secret);

}  // namespace nacre::tools::web

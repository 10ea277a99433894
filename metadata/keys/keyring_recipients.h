// SPDX-License-Identifier: Apache-2.0
// Changing who can open a volume. Each of these takes a keyring that open_keyring() has verified,
// and gives the one to put in its place: of the next generation, with the MAC or seal that was
// missing of the recipient whose secret opened it. KeyringKeeper makes it the volume's.
//
// None of them changes the volume key: a secret that is taken away opens what copies there are of
// an earlier keyring, and with that the volume, until a rotation ends it.
#pragma once

#include <string_view>

#include "metadata/keys/keyring.h"

namespace nacre::metadata {

inline constexpr std::size_t fingerprint_digits_min = 8;

// The new one is the last. Errors: append_recipient().
Result<Keyring> add_recipient(Keyring keyring, const KeyringAccess& access,
                              const NewRecipient& wanted);

// Which recipient is meant: by its label, or by the first hexadecimal digits of its fingerprint,
// fingerprint_digits_min at least. not_found; invalid_argument when several are.
Result<std::size_t> find_recipient(const Keyring& keyring, std::string_view label_or_fingerprint);
// not_permitted for the last one.
Result<Keyring> remove_recipient(Keyring keyring, const KeyringAccess& access, std::size_t index);

// Another passphrase in place of the one that opened the keyring; it stays where it is in the list
// and keeps its label. It gets a key pair of its own, too, if it had one: or else an old copy of
// the keyring would give the old passphrase the key to whatever is wrapped for this recipient from
// now on.
// invalid_argument when it was no passphrase that opened the keyring.
Result<Keyring> change_passphrase(Keyring keyring, const KeyringAccess& access,
                                  NewPassphrase wanted);

// The same recipients, the one that opened it as KeyringAccess::completed has it.
Keyring confirm_recipient(Keyring keyring, const KeyringAccess& access);

}  // namespace nacre::metadata

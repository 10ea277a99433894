// SPDX-License-Identifier: Apache-2.0
// Changes of the recipients that can open a volume. Each function takes a keyring that
// open_keyring() has verified, and returns the one to put in its place. That one is of the next
// generation, and has the MAC or seal of the recipient whose secret opened it, if that was missing.
// KeyringKeeper makes it the volume's keyring.
//
// None of them changes the volume key. A secret that was removed still opens every copy of an
// earlier keyring, and with that the volume, until a rotation ends it.
#pragma once

#include <string_view>

#include "metadata/keys/keyring.h"

namespace nacre::metadata {

inline constexpr std::size_t fingerprint_digits_min = 8;

// The new recipient is the last. Errors: as of append_recipient().
Result<Keyring> add_recipient(Keyring keyring, const KeyringAccess& access,
                              const NewRecipient& wanted);

// Finds a recipient by its label, or by the first hexadecimal digits of its fingerprint, at least
// fingerprint_digits_min of them. Errors: not_found; invalid_argument if several match.
Result<std::size_t> find_recipient(const Keyring& keyring, std::string_view label_or_fingerprint);
// Error: not_permitted for the last recipient.
Result<Keyring> remove_recipient(Keyring keyring, const KeyringAccess& access, std::size_t index);

// Puts another passphrase in place of the one that opened the keyring. The recipient keeps its
// place in the list and its label. If it had a key pair, it gets a new one: otherwise an old copy
// of the keyring and the old passphrase would open whatever is wrapped for this recipient from now
// on. Error: invalid_argument if no passphrase opened the keyring.
Result<Keyring> change_passphrase(Keyring keyring, const KeyringAccess& access,
                                  NewPassphrase wanted);

// The same recipients, with the one that opened the keyring as KeyringAccess::completed has it.
Keyring confirm_recipient(Keyring keyring, const KeyringAccess& access);

}  // namespace nacre::metadata

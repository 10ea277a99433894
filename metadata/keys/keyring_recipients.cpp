// SPDX-License-Identifier: Apache-2.0
#include "metadata/keys/keyring_recipients.h"

#include <fmt/format.h>

#include <algorithm>

#include "metadata/keys/keyring_parts.h"
#include "metadata/text/document.h"
#include "metadata/text/text_bytes.h"

namespace nacre::metadata {

Keyring confirm_recipient(Keyring keyring, const KeyringAccess& access) {
  keyring.generation = next_generation(keyring.generation);
  if (access.completed) keyring.recipients[access.recipient_index] = *access.completed;
  return keyring;
}

Result<Keyring> add_recipient(Keyring keyring, const KeyringAccess& access,
                              const NewRecipient& wanted) {
  Keyring next = confirm_recipient(std::move(keyring), access);
  NACRE_TRY(append_recipient(next, access.volume_key.view(), wanted));
  return next;
}

Result<std::size_t> find_recipient(const Keyring& keyring, std::string_view label_or_fingerprint) {
  const bool may_be_fingerprint = label_or_fingerprint.size() >= fingerprint_digits_min;
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < keyring.recipients.size(); ++i) {
    const Recipient& recipient = keyring.recipients[i];
    if (recipient.label == label_or_fingerprint ||
        (may_be_fingerprint && to_hex(recipient.fingerprint).starts_with(label_or_fingerprint))) {
      found.push_back(i);
    }
  }
  if (found.size() == 1) return found.front();
  if (found.empty()) {
    return fail(ErrorCode::not_found,
                fmt::format("no recipient has the label '{0}' or a fingerprint that begins with "
                            "it ({1} digits at least); 'nacre key list' shows them",
                            label_or_fingerprint, fingerprint_digits_min));
  }
  std::string names;
  for (const std::size_t index : found) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ",
                         to_hex(keyring.recipients[index].fingerprint).substr(0, 16));
  }
  return fail(ErrorCode::invalid_argument,
              fmt::format("'{}' may be any of {} recipients: say which by its fingerprint ({})",
                          label_or_fingerprint, found.size(), names));
}

Result<Keyring> remove_recipient(Keyring keyring, const KeyringAccess& access, std::size_t index) {
  if (keyring.recipients.size() == 1) {
    return fail(ErrorCode::not_permitted,
                "this is the last recipient: without it nobody could open the volume; add another "
                "one first");
  }
  Keyring next = confirm_recipient(std::move(keyring), access);
  next.recipients.erase(next.recipients.begin() + static_cast<std::ptrdiff_t>(index));
  return next;
}

Result<Keyring> change_passphrase(Keyring keyring, const KeyringAccess& access,
                                  NewPassphrase wanted) {
  Recipient& old = keyring.recipients[access.recipient_index];
  if (!old.passphrase) {
    return fail(ErrorCode::invalid_argument,
                "a private key opened the volume: give the passphrase that is to be changed. If it "
                "is lost, add another one with 'nacre key add', then remove it");
  }
  wanted.label = old.label;
  wanted.has_key_pair = !old.public_key.empty();
  keyring.generation = next_generation(keyring.generation);
  // The old recipient leaves the list first, so that making the new one counts it neither as one
  // more nor as a duplicate.
  const auto place =
      keyring.recipients.begin() + static_cast<std::ptrdiff_t>(access.recipient_index);
  keyring.recipients.erase(place);
  NACRE_TRY(append_recipient(keyring, access.volume_key.view(), std::move(wanted)));
  std::rotate(keyring.recipients.begin() + static_cast<std::ptrdiff_t>(access.recipient_index),
              keyring.recipients.end() - 1, keyring.recipients.end());
  return keyring;
}

}  // namespace nacre::metadata

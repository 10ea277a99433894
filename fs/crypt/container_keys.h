// SPDX-License-Identifier: Apache-2.0
// The keys of containers: a keyring like that of a volume, with one epoch and an id of its own. All
// containers of a run share it, so that the slow steps of making or opening a keyring (Argon2id,
// RSA) are done once for thousands of files.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>

#include "fs/crypt/container_format.h"
#include "metadata/keys/keyring.h"
#include "metadata/keys/keys.h"

namespace nacre::fs {

// The keys of an encryption run. Immutable and thread-safe.
struct ContainerKeys {
  std::shared_ptr<const metadata::KeyTree> tree;
  Bytes preamble;  // header and keyring text, with which each container begins
  unsigned chunk_bits = container_chunk_bits_default;
};
// Makes a new keyring for these recipients. Errors: those of metadata::create_keyring().
Result<ContainerKeys> make_container_keys(engine::CipherSuite suite,
                                          std::span<const metadata::NewRecipient> recipients,
                                          unsigned chunk_bits = container_chunk_bits_default);

// Parses the keyring of a container, which has one epoch and no rotation under way. Error: corrupt.
Result<metadata::Unverified<metadata::Keyring>> parse_container_keyring(ByteView text);

// Opens the keyrings of containers with one secret, each text once. Not thread-safe.
class ContainerUnlocker {
 public:
  using BeforeOpening = std::function<void(const metadata::Keyring& claims)>;
  // secret outlives this object. before_opening is called with each keyring before it is tried.
  explicit ContainerUnlocker(const metadata::VolumeSecret& secret,
                             BeforeOpening before_opening = {})
      : secret_(secret), before_opening_(std::move(before_opening)) {}

  // Errors: those of parse_container_keyring() and metadata::open_keyring(). A text that was
  // refused before gets the same error again.
  Result<std::shared_ptr<const metadata::KeyTree>> unlock(ByteView keyring_text);

 private:
  Result<std::shared_ptr<const metadata::KeyTree>> open(ByteView keyring_text) const;

  const metadata::VolumeSecret& secret_;
  const BeforeOpening before_opening_;
  std::map<engine::Sha256Digest, Result<std::shared_ptr<const metadata::KeyTree>>> known_;
};

}  // namespace nacre::fs

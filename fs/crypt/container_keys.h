// SPDX-License-Identifier: Apache-2.0
// The keys of containers: a keyring as volumes have it, with one epoch and an id of its own. All
// containers of one run share it, so that what makes and opens keyrings slow on purpose (Argon2id,
// RSA) happens once for thousands of files.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>

#include "fs/crypt/container_format.h"
#include "metadata/keys/keyring.h"
#include "metadata/keys/keys.h"

namespace nacre::fs {

// What a run of encryption uses: immutable, thread-safe.
struct ContainerKeys {
  std::shared_ptr<const metadata::KeyTree> tree;
  Bytes preamble;  // header and keyring text: how each container begins
  unsigned chunk_bits = container_chunk_bits_default;
};
// A new keyring for these recipients. The errors of metadata::create_keyring().
Result<ContainerKeys> make_container_keys(engine::CipherSuite suite,
                                          std::span<const metadata::NewRecipient> recipients,
                                          unsigned chunk_bits = container_chunk_bits_default);

// A parsed keyring that a container can have: one epoch, and no rotation under way. corrupt.
Result<metadata::Unverified<metadata::Keyring>> parse_container_keyring(ByteView text);

// Opens the keyrings of containers with one secret, each text once. Not thread-safe.
class ContainerUnlocker {
 public:
  using BeforeOpening = std::function<void(const metadata::Keyring& claims)>;
  // secret outlives this. before_opening hears of each keyring that is tried.
  explicit ContainerUnlocker(const metadata::VolumeSecret& secret,
                             BeforeOpening before_opening = {})
      : secret_(secret), before_opening_(std::move(before_opening)) {}

  // The errors of parse_container_keyring() and metadata::open_keyring(); the same again for a text
  // that was refused before.
  Result<std::shared_ptr<const metadata::KeyTree>> unlock(ByteView keyring_text);

 private:
  Result<std::shared_ptr<const metadata::KeyTree>> open(ByteView keyring_text) const;

  const metadata::VolumeSecret& secret_;
  const BeforeOpening before_opening_;
  std::map<engine::Sha256Digest, Result<std::shared_ptr<const metadata::KeyTree>>> known_;
};

}  // namespace nacre::fs

// SPDX-License-Identifier: Apache-2.0
#include "fs/crypt/container_keys.h"

#include <string>

namespace nacre::fs {

namespace {

constexpr std::size_t known_keyring_count_max = 256;

}  // namespace

Result<ContainerKeys> make_container_keys(engine::CipherSuite suite,
                                          std::span<const metadata::NewRecipient> recipients,
                                          unsigned chunk_bits) {
  engine::VolumeId id;
  engine::random_bytes(id);
  NACRE_ASSIGN(const auto made, metadata::create_keyring(id, suite, recipients));
  const std::string text = metadata::encode_keyring(made.keyring, *made.keys);
  if (text.size() > metadata::keyring_size_bytes_max) {
    return fail(ErrorCode::too_big, "too many recipients for one container");
  }
  const auto header = encode(ContainerHeader{
      .chunk_bits = chunk_bits, .keyring_size = static_cast<std::uint32_t>(text.size())});
  ContainerKeys keys{
      .tree = made.keys, .preamble = Bytes(header.begin(), header.end()), .chunk_bits = chunk_bits};
  keys.preamble.insert(keys.preamble.end(), text.begin(), text.end());
  return keys;
}

// A keyring's messages speak of the volume that it usually lies in.
static Error about_a_file(Error error) {
  constexpr std::string_view volume = "this volume";
  if (const auto at = error.message.find(volume); at != std::string::npos) {
    error.message.replace(at, volume.size(), "this file");
  }
  return error;
}

Result<metadata::Unverified<metadata::Keyring>> parse_container_keyring(ByteView text) {
  NACRE_ASSIGN(auto keyring, metadata::parse_keyring(text));
  const metadata::Keyring& claims = keyring.claims;
  if (claims.epochs.size() != 1 || claims.epochs.front().number != container_epoch ||
      metadata::is_of_format_2(claims) || !claims.sealed_previous_volume_key.empty()) {
    return fail(ErrorCode::corrupt, "the keyring is that of a volume, not of a container");
  }
  return keyring;
}

Result<std::shared_ptr<const metadata::KeyTree>> ContainerUnlocker::open(
    ByteView keyring_text) const {
  NACRE_ASSIGN(const auto keyring, parse_container_keyring(keyring_text));
  if (before_opening_) before_opening_(keyring.claims);
  auto found = metadata::open_keyring(keyring, secret_);
  if (!found) return tl::unexpected(about_a_file(found.error()));
  metadata::OpenedKeyring opened = std::move(*found);
  // A keyring that was never rotated has all its MACs.
  if (opened.access.is_unconfirmed) {
    return fail(ErrorCode::tampered, "the passphrase's MAC was taken out of the keyring");
  }
  return std::shared_ptr<const metadata::KeyTree>(std::move(opened.keys));
}

Result<std::shared_ptr<const metadata::KeyTree>> ContainerUnlocker::unlock(ByteView keyring_text) {
  const engine::Sha256Digest digest = engine::sha256(keyring_text);
  const auto known = known_.find(digest);
  if (known != known_.end()) return known->second;
  if (known_.size() >= known_keyring_count_max) known_.clear();
  return known_.emplace(digest, open(keyring_text)).first->second;
}

}  // namespace nacre::fs

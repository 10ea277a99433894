// SPDX-License-Identifier: Apache-2.0
// Each key below another is HKDF-SHA256 of it with a purpose of its own, so no two uses share a
// key.
#include "metadata/keys/keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "gpu_engine/base/check.h"

namespace nacre::metadata {

namespace {

// How many session keys are cached. A volume has one session for each mount, so only old volumes
// come near this number.
constexpr std::size_t cached_session_count_max = 1024;
constexpr std::size_t subkey_size_bytes = 32;
constexpr std::string_view fingerprint_purpose = "fingerprint";

const EpochKey* find_epoch(const std::vector<EpochKey>& epochs, std::uint32_t number) {
  const auto at = std::lower_bound(
      epochs.begin(), epochs.end(), number,
      [](const EpochKey& epoch, std::uint32_t wanted) { return epoch.number < wanted; });
  return at != epochs.end() && at->number == number ? &*at : nullptr;
}

EpochKey copy_of(const EpochKey& epoch) {
  return {.number = epoch.number,
          .suite = epoch.suite,
          .key = epoch.key.clone(),
          .format = epoch.format};
}

engine::Sha256Digest fingerprint_under(const engine::VolumeId& volume_id,
                                       const SecretBytes& subkey) {
  Bytes message(volume_id.begin(), volume_id.end());
  message.insert(message.end(), subkey.view().begin(), subkey.view().end());
  const engine::Sha256Digest digest = engine::sha256(message);
  wipe(message);
  return digest;
}

tl::unexpected<Error> unknown_epoch(std::uint32_t number) {
  return fail(ErrorCode::corrupt, fmt::format("key epoch {} is not in the keyring", number));
}

}  // namespace

KeyTree::KeyTree(engine::VolumeId volume_id, SecretBytes volume_key, std::vector<EpochKey> epochs,
                 SecretBytes previous_volume_key,
                 std::optional<engine::Sha256Digest> previous_superblock)
    : volume_id_(volume_id),
      volume_key_(std::move(volume_key)),
      previous_volume_key_(std::move(previous_volume_key)),
      previous_superblock_(previous_superblock),
      epochs_(std::move(epochs)) {
  std::sort(epochs_.begin(), epochs_.end(),
            [](const EpochKey& a, const EpochKey& b) { return a.number < b.number; });
}

EpochKey KeyTree::current_epoch() const {
  const LockGuard lock(mutex_);
  return copy_of(epochs_.back());
}

std::uint32_t KeyTree::current_epoch_number() const {
  const LockGuard lock(mutex_);
  return epochs_.back().number;
}

std::vector<EpochKey> KeyTree::epochs() const {
  const LockGuard lock(mutex_);
  std::vector<EpochKey> copies;
  for (const EpochKey& epoch : epochs_)
    copies.push_back(copy_of(epoch));
  return copies;
}

SecretBytes KeyTree::volume_key() const {
  const LockGuard lock(mutex_);
  return volume_key_.clone();
}

bool KeyTree::is_rotating() const {
  const LockGuard lock(mutex_);
  return epochs_.size() > 1 || !previous_volume_key_.empty();
}

void KeyTree::begin_rotation(SecretBytes volume_key, EpochKey epoch,
                             std::optional<engine::Sha256Digest> previous_superblock) {
  const LockGuard lock(mutex_);
  NACRE_CHECK(epoch.number > epochs_.back().number, "epoch {} follows epoch {}", epoch.number,
              epochs_.back().number);
  previous_volume_key_ = std::exchange(volume_key_, std::move(volume_key));
  previous_superblock_ = previous_superblock;
  epochs_.push_back(std::move(epoch));
}

void KeyTree::end_rotation() {
  const LockGuard lock(mutex_);
  previous_volume_key_ = {};
  previous_superblock_.reset();
  epochs_.erase(epochs_.begin(), std::prev(epochs_.end()));
  std::erase_if(sessions_, [current = epochs_.back().number](const auto& known) {
    return known.first.first != current;
  });
}

Result<std::shared_ptr<const KeyTree::SessionKey>> KeyTree::session_key(
    std::uint32_t epoch, const engine::SessionSalt& salt) const {
  const LockGuard lock(mutex_);
  const auto id = std::pair(epoch, salt);
  if (const auto known = sessions_.find(id); known != sessions_.end()) return known->second;

  const EpochKey* from = find_epoch(epochs_, epoch);
  if (!from) return unknown_epoch(epoch);
  NACRE_ASSIGN(SecretBytes key, engine::hkdf_sha256(from->key.view(), salt,
                                                    fmt::format("nacre write session {}",
                                                                engine::to_string(from->suite)),
                                                    engine::key_size_bytes(from->suite)));
  auto session =
      std::make_shared<const SessionKey>(SessionKey{.suite = from->suite, .key = std::move(key)});
  if (sessions_.size() >= cached_session_count_max) sessions_.erase(sessions_.begin());
  sessions_.emplace(id, session);
  return session;
}

bool KeyTree::is_superseded(std::uint32_t epoch) const {
  const LockGuard lock(mutex_);
  return epochs_.back().format != EpochFormat::one && epoch < epochs_.back().number;
}

Result<EpochFormat> KeyTree::epoch_format(std::uint32_t epoch) const {
  const LockGuard lock(mutex_);
  const EpochKey* from = find_epoch(epochs_, epoch);
  if (!from) return unknown_epoch(epoch);
  return from->format;
}

Result<SecretBytes> KeyTree::database_file_key(std::uint32_t epoch, ByteView file_salt,
                                               std::string_view name, bool is_padded) const {
  const LockGuard lock(mutex_);
  const EpochKey* from = find_epoch(epochs_, epoch);
  if (!from) return unknown_epoch(epoch);
  const std::string info =
      from->format == EpochFormat::one
          ? "nacre database file"
          : fmt::format("nacre {}database file 2 {}", is_padded ? "padded " : "", name);
  return engine::hkdf_sha256(from->key.view(), file_salt, info,
                             engine::key_size_bytes(engine::CipherSuite::aes_256_gcm));
}

SecretBytes KeyTree::volume_subkey(std::string_view purpose) const {
  const LockGuard lock(mutex_);
  return derive_volume_subkey(volume_id_, volume_key_.view(), purpose);
}

std::optional<SecretBytes> KeyTree::previous_volume_subkey(std::string_view purpose) const {
  const LockGuard lock(mutex_);
  if (previous_volume_key_.empty()) return std::nullopt;
  return derive_volume_subkey(volume_id_, previous_volume_key_.view(), purpose);
}

std::optional<engine::Sha256Digest> KeyTree::previous_superblock() const {
  const LockGuard lock(mutex_);
  return previous_superblock_;
}

engine::Sha256Digest KeyTree::fingerprint() const {
  return fingerprint_under(volume_id_, volume_subkey(fingerprint_purpose));
}

std::optional<engine::Sha256Digest> KeyTree::previous_fingerprint() const {
  const auto subkey = previous_volume_subkey(fingerprint_purpose);
  if (!subkey) return std::nullopt;
  return fingerprint_under(volume_id_, *subkey);
}

SecretBytes derive_volume_subkey(const engine::VolumeId& volume_id, ByteView volume_key,
                                 std::string_view purpose) {
  return engine::hkdf_sha256(volume_key, volume_id, fmt::format("nacre {}", purpose),
                             subkey_size_bytes)
      .value();
}

}  // namespace nacre::metadata

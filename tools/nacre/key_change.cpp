// SPDX-License-Identifier: Apache-2.0
#include "tools/nacre/key_change.h"

#include <chrono>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "fs/control/control_client.h"
#include "metadata/backing/volume_lock.h"
#include "metadata/keys/keyring_keeper.h"
#include "metadata/text/exact_bytes.h"
#include "tools/cli/hardening.h"
#include "tools/cli/terminal.h"
#include "tools/nacre/offline_volume.h"

namespace nacre::tools {

namespace {

constexpr std::chrono::milliseconds info_patience{30'000};
// How long this waits for somebody else's change of the keyring.
constexpr std::chrono::seconds others_patience{30};
constexpr std::chrono::milliseconds others_pause{50};
constexpr int looks_at_disk_max = 3;

Result<nlohmann::json> ask_info(const fs::MountEntry& mount) {
  NACRE_ASSIGN(auto client, fs::ControlClient::connect(mount));
  return client.request("info", info_patience);
}

Result<metadata::Keyring> change_offline(const VolumePlace& place, const SecretOptions& options,
                                         const MakeKeyring& make) {
  // If another process holds the volume, the user learns it before typing a passphrase.
  NACRE_ASSIGN(const auto lock,
               metadata::VolumeLock::acquire(place.path, {.mode = metadata::LockMode::exclusive}));
  NACRE_ASSIGN(const auto secret, read_secret(options, place.path));
  NACRE_ASSIGN(const auto keys, unlock(place, secret, options));
  NACRE_ASSIGN(const auto next, make(keys));
  NACRE_ASSIGN(const auto volume, open_offline(place, keys, options));
  metadata::KeyringKeeper keeper(
      place.directory, keys.keys, keys.keyring,
      [&](std::uint64_t generation) { return volume->note_keyring_generation(generation); });
  const auto replaced = keeper.replace(next);
  const auto closed = close_offline(place, keys, *volume);
  NACRE_TRY(replaced);
  NACRE_TRY(closed);
  return next;
}

// The keyring on the disk must be the daemon's, or the next one would not fit.
Result<> check_same(const KeyTarget& target, std::uint64_t on_disk, std::uint64_t of_daemon) {
  if (on_disk == of_daemon) return {};
  if (on_disk < of_daemon) {
    return fail(ErrorCode::rolled_back,
                fmt::format("the keyring in {} is of generation {}, but the volume is mounted at "
                            "{} with generation {}: somebody put an older one back. 'nacre key "
                            "restore' with a backup of the keyring writes a good one",
                            target.place.path, on_disk, target.mount->mountpoint, of_daemon));
  }
  return fail(ErrorCode::busy, fmt::format("the keyring of {} is being changed by somebody else; "
                                           "try again",
                                           target.place.path));
}

// The daemon says that it has stored the keyring. The one on the disk must show it.
Result<> check_stored(const VolumePlace& place, const metadata::Keyring& stored) {
  NACRE_ASSIGN(const auto found, metadata::find_keyring(*place.directory));
  if (found.keyring.claims.generation >= stored.generation) return {};
  return fail(
      ErrorCode::io,
      fmt::format("the daemon says that it changed the keyring of {}, but the keyring there "
                  "is still of generation {}: nothing was changed",
                  place.path, found.keyring.claims.generation));
}

Result<metadata::Keyring> change_mounted(const KeyTarget& target, const SecretOptions& options,
                                         const MakeKeyring& make) {
  const fs::MountEntry& mount = *target.mount;
  NACRE_TRY(check_writable(mount));
  NACRE_ASSIGN(std::uint64_t generation, mounted_keyring_generation(mount));
  NACRE_ASSIGN(const auto secret, read_secret(options, target.place.path));
  const auto end = std::chrono::steady_clock::now() + others_patience;
  for (int attempt = 1;; ++attempt) {
    NACRE_ASSIGN(const auto keys, attempt == 1 ? unlock(target.place, secret, options)
                                               : unlock_quietly(target.place, secret, options));
    const auto same = check_same(target, keys.keyring.generation, generation);
    auto result = same;
    if (same) {
      NACRE_ASSIGN(const auto next, make(keys));
      result = hand_over_keyring(mount, next, *keys.keys);
      if (result) {
        NACRE_TRY(check_stored(target.place, next));
        return next;
      }
    }
    // Another command may change the keyring between the look at the daemon and at the disk. But if
    // the keyring on the disk is older, it stays older.
    const bool is_older_on_disk = !same && same.error().code == ErrorCode::rolled_back;
    const bool may_pass = result.error().code == ErrorCode::busy ||
                          (result.error().code == ErrorCode::rolled_back &&
                           (!is_older_on_disk || attempt < looks_at_disk_max));
    if (!may_pass || std::chrono::steady_clock::now() > end) return tl::unexpected(result.error());
    std::this_thread::sleep_for(others_pause);
    NACRE_ASSIGN(generation, mounted_keyring_generation(mount));
  }
}

}  // namespace

Result<KeyTarget> find_key_target(const std::string& path) {
  if (const auto mount = fs::find_nacre_mount(path)) {
    NACRE_ASSIGN(auto client, fs::ControlClient::connect(*mount));
    NACRE_ASSIGN(const auto info, client.request("info", info_patience));
    const auto volume = metadata::get_bytes(info, "volume");
    if (!volume) {
      return fail(ErrorCode::io, fmt::format("the daemon of {} does not say which volume it serves",
                                             mount->mountpoint));
    }
    NACRE_ASSIGN(auto place, find_volume(*volume));
    NACRE_TRY(client.check_serves(*mount, place.path));
    return KeyTarget{std::move(place), *mount};
  }
  auto place = find_unmounted_volume(path);
  if (!place) return tl::unexpected(place.error());
  auto mount = fs::find_mount_of_volume(place->path);
  return KeyTarget{std::move(*place), std::move(mount)};
}

Result<std::uint64_t> mounted_keyring_generation(const fs::MountEntry& mount) {
  NACRE_ASSIGN(const auto info, ask_info(mount));
  const auto generation = info.find("keyring_generation");
  if (generation != info.end() && generation->is_number_unsigned()) {
    return generation->get<std::uint64_t>();
  }
  return fail(
      ErrorCode::unsupported,
      fmt::format("the daemon of {} is of an older version, which cannot change the keyring "
                  "of a mounted volume: mount it anew",
                  mount.mountpoint));
}

Result<> hand_over_keyring(const fs::MountEntry& mount, const metadata::Keyring& keyring,
                           const metadata::KeyTree& keys) {
  NACRE_ASSIGN(auto client, fs::ControlClient::connect(mount));
  return client.replace_keyring(metadata::encode_keyring(keyring, keys));
}

Result<> check_writable(const fs::MountEntry& mount) {
  if (!mount.read_only) return {};
  return fail(ErrorCode::read_only,
              fmt::format("{} is mounted read-only: unmount it, or mount it for writing, to change "
                          "its keys",
                          mount.mountpoint));
}

Result<metadata::Keyring> change_keyring(const KeyTarget& target, const SecretOptions& options,
                                         const MakeKeyring& make) {
  harden_process();
  return target.mount ? change_mounted(target, options, make)
                      : change_offline(target.place, options, make);
}

}  // namespace nacre::tools

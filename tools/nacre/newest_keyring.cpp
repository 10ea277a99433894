// SPDX-License-Identifier: Apache-2.0
#include "tools/nacre/newest_keyring.h"

#include <utility>

#include <fmt/format.h>

#include "fs/mount/keyring_generation.h"
#include "metadata/format/rows.h"
#include "metadata/tables/database.h"
#include "tools/cli/terminal.h"

namespace nacre::tools {

Result<NewestKeyring> NewestKeyring::look(const KeyTarget& target) {
  NewestKeyring newest(target.place);
  if (target.mount) {
    NACRE_ASSIGN(newest.of_daemon_, mounted_keyring_generation(*target.mount));
    return newest;
  }
  auto lock =
      metadata::VolumeLock::acquire(target.place.path, {.mode = metadata::LockMode::shared});
  if (lock) newest.lock_ = std::move(*lock);
  return newest;
}

Result<> NewestKeyring::check(const metadata::Keyring& keyring,
                              const std::shared_ptr<const metadata::KeyTree>& keys) const {
  if (of_daemon_) return fs::check_keyring_generation(place_.path, keyring.generation, *of_daemon_);
  if (keys == nullptr) return {};
  const auto remembered = ask_database(keys);
  if (remembered) return fs::check_keyring_generation(place_.path, keyring.generation, *remembered);
  print_note(
      fmt::format("whether {} holds an older keyring that somebody put back is not known, "
                  "because its database cannot be asked: {}",
                  place_.path, remembered.error().message));
  return {};
}

Result<std::uint64_t> NewestKeyring::ask_database(
    const std::shared_ptr<const metadata::KeyTree>& keys) const {
  if (!lock_) return fail(ErrorCode::busy, "another process is changing the volume");
  return remembered_generation(place_, keys);
}

Result<std::uint64_t> remembered_generation(const VolumePlace& place,
                                            std::shared_ptr<const metadata::KeyTree> keys) {
  NACRE_ASSIGN(const auto database,
               metadata::Database::open(place.directory, std::move(keys), {.read_only = true}));
  NACRE_ASSIGN(const auto row,
               database->get(metadata::Table::system, metadata::system_key_keyring));
  if (!row) return fail(ErrorCode::corrupt, "the database has no row 'keyring_generation'");
  return metadata::decode_u64(*row);
}

}  // namespace nacre::tools

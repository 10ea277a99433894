// SPDX-License-Identifier: Apache-2.0
// For commands that only show or copy a volume's keyring: whether it is the newest one, by the rule
// of a mount. Of a mounted volume the daemon knows that, of another one the database, which opens
// with the volume's keys.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "metadata/backing/volume_lock.h"
#include "metadata/volume_files.h"
#include "tools/nacre/key_change.h"

namespace nacre::tools {

class NewestKeyring {
 public:
  // Called before the keyring is read. Meanwhile it may become newer, and never older. Error: of a
  // daemon that does not answer.
  static Result<NewestKeyring> look(const KeyTarget& target);
  // keys: null if none is at hand. Then only a mounted volume's keyring is compared. Prints a note
  // if the database cannot be asked. Error: rolled_back.
  Result<> check(const metadata::Keyring& keyring,
                 const std::shared_ptr<const metadata::KeyTree>& keys) const;

 private:
  explicit NewestKeyring(const VolumePlace& place) : place_(place) {}
  Result<std::uint64_t> ask_database(const std::shared_ptr<const metadata::KeyTree>& keys) const;

  VolumePlace place_;
  std::optional<std::uint64_t> of_daemon_;
  std::optional<metadata::VolumeLock> lock_;  // none if a command is changing the volume
};

// The generation that the database of a volume that is not mounted remembers. The caller holds a
// lock of the volume.
Result<std::uint64_t> remembered_generation(const VolumePlace& place,
                                            std::shared_ptr<const metadata::KeyTree> keys);

}  // namespace nacre::tools

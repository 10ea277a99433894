// SPDX-License-Identifier: Apache-2.0
// The keyring of a volume that is open for writing, and the one order in which another takes its
// place:
//
//   1. "keyring" is replaced, then "keyring.copy", each as a whole and durably (two_copies.h)
//   2. the database's row keyring_generation gets the new generation, durably
//   3. what the replaced files held is overwritten, where the file system writes in place and no
//      other name leads to them
//
// Why in that order. Opening takes the copy of the higher generation, and refuses a keyring older
// than the row. Power lost before the first rename is durable: the old keyring and the old row.
// Behind it, until 2. is durable: the new keyring, with an older copy or two new ones, and the old
// row, which refuses neither; opening for writing notes the newer generation. Behind 2.: the new
// one, and whoever puts the old one back is refused. The other way round, power lost between the
// row and the files would leave a volume that nobody can open. The caller hears of success behind
// 2., so that a secret which was taken away is not reported gone while an old file could still be
// put back.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "gpu_engine/base/mutex.h"
#include "metadata/backing/backing.h"
#include "metadata/keys/keyring.h"
#include "metadata/keys/keyring_rotation.h"
#include "metadata/keys/keys.h"

namespace nacre::metadata {

// Thread-safe.
class KeyringKeeper {
 public:
  // Makes the row keyring_generation durable: fs::Volume::note_keyring_generation().
  using NoteGeneration = std::function<Result<>(std::uint64_t generation)>;

  // current: verified, and not older than the row.
  KeyringKeeper(std::shared_ptr<BackingDirectory> directory, std::shared_ptr<const KeyTree> keys,
                Keyring current, NoteGeneration note_generation);

  Keyring current() const NACRE_EXCLUDES(mutex_);
  std::uint64_t generation() const NACRE_EXCLUDES(mutex_);

  // Puts next, which the caller vouches for, in place of the current one. invalid_argument unless
  // its generation is the next one. After any other error next may have taken its place or not;
  // current() says which, and the message what to do.
  Result<> replace(const Keyring& next) NACRE_EXCLUDES(mutex_);

  // The same for a text that somebody made who knows the volume key but is not trusted beyond that:
  // tampered without the MAC or for another volume; busy when its generation is not the next one,
  // so that it was made from another keyring than the current; not_permitted when it differs in
  // more than the recipients.
  Result<> replace_recipients(ByteView text) NACRE_EXCLUDES(mutex_);

  // For the beginning of a rotation: next is what make gives for the current one, under the volume
  // key of its own keys. taken is called once both copies are durable, before anybody else can
  // change anything; note_generation() is to follow. When writing fails nobody knows which of the
  // two will count: then every later change is refused until the volume is opened anew.
  using MakeKeyring = std::function<Result<KeyringRotation>(const Keyring& current)>;
  // around, where it is given, gets what the new keyring has and the function that writes it and
  // calls taken, which it calls once or not at all: what it does before that, is done when nobody
  // can change the keyring any more. It may take the locks of the database; whoever holds those
  // never comes here.
  using AroundCommit =
      std::function<Result<>(const KeyTree& next, const std::function<Result<>()>& commit)>;
  Result<> rotate(const MakeKeyring& make, const std::function<void(const KeyringRotation&)>& taken,
                  const AroundCommit& around = {});
  // Makes the row name the current generation.
  Result<> note_generation() NACRE_EXCLUDES(mutex_);
  // The keyring with nothing but the last epoch takes its place, as by replace().
  Result<> end_rotation() NACRE_EXCLUDES(mutex_);

  // Writes both copies of the current one again, when an update was interrupted between them.
  Result<> finish_update() NACRE_EXCLUDES(mutex_);

 private:
  Result<> check_usable() const NACRE_REQUIRES(mutex_);
  Result<> save_rotation(const KeyringRotation& next) NACRE_REQUIRES(mutex_);
  Result<> replace_locked(const Keyring& next) NACRE_REQUIRES(mutex_);
  void look_again() NACRE_REQUIRES(mutex_);

  const std::shared_ptr<BackingDirectory> directory_;
  const std::shared_ptr<const KeyTree> keys_;
  const NoteGeneration note_generation_;
  mutable Mutex mutex_;  // held while files are written
  Keyring current_ NACRE_GUARDED_BY(mutex_);
  bool is_unknown_ NACRE_GUARDED_BY(mutex_) = false;  // which keyring lies there: rotate() failed
};

}  // namespace nacre::metadata

// SPDX-License-Identifier: Apache-2.0
// The keyring of a volume that is open for writing, and the one order in which another keyring
// takes its place:
//
//   1. "keyring" is replaced, then "keyring.copy", each as a whole and durably (two_copies.h)
//   2. the database's row keyring_generation gets the new generation, durably
//   3. what the replaced files held is overwritten with zeros, unless another name leads to
//      them; on a file system that does not write in place, that erases nothing
//
// Opening takes the copy of the higher generation, and refuses a keyring older than the row. So the
// order has these effects:
//
//   power is lost                      | the volume then has
//   before the first rename is durable | the old keyring and the old row
//   later, before 2. is durable        | the new keyring, with an older copy or two new ones,
//                                      | and the old row, which refuses neither. Opening for
//                                      | writing notes the newer generation
//   after 2. is durable                | the new keyring. An old one that is put back is refused
//
// In the other order, power lost between the row and the files would leave a volume that no secret
// opens. The caller learns of the success only after 2. So a secret is never reported as removed
// while the volume would still accept the old keyring if it were put back. The keyring with which a
// rotation begins is the exception: rotate() takes steps 1 and 3, and its caller then takes step 2.
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
  // Makes the row keyring_generation durable, as fs::Volume::note_keyring_generation() does.
  using NoteGeneration = std::function<Result<>(std::uint64_t generation)>;

  // current must be verified, and not older than the row.
  KeyringKeeper(std::shared_ptr<BackingDirectory> directory, std::shared_ptr<const KeyTree> keys,
                Keyring current, NoteGeneration note_generation);

  Keyring current() const NACRE_EXCLUDES(mutex_);
  std::uint64_t generation() const NACRE_EXCLUDES(mutex_);

  // Puts next in place of the current keyring. The caller vouches for next. Error: invalid_argument
  // unless next's generation follows the current one. After any other error, next may or may not
  // have taken its place: current() says which keyring counts, and the message says what to do.
  Result<> replace(const Keyring& next) NACRE_EXCLUDES(mutex_);

  // The same for a text from a client that knows the volume key but is not trusted beyond that.
  // Errors: tampered (the MAC is wrong, or it is of another volume), busy (its generation is not
  // the next one, so it was made from another keyring than the current one), not_permitted (it
  // differs in more than the recipients).
  Result<> replace_recipients(ByteView text) NACRE_EXCLUDES(mutex_);

  // Begins a rotation. make gets the current keyring and returns the next one together with its
  // keys. The next keyring is written under the new volume key. taken is called once both copies
  // are durable, before any other thread can change the keyring. The caller must then call
  // note_generation(). If writing fails, it is unknown which of the two keyrings will count, so
  // every later change is refused until the volume is opened anew.
  using MakeKeyring = std::function<Result<KeyringRotation>(const Keyring& current)>;
  // around, if it is given, gets the new keyring's keys and a function, commit, that writes the
  // keyring and calls taken. It calls commit once or not at all. Before and after that call no
  // other thread can change the keyring. around may take the locks of the database, so no thread
  // may call rotate() while it holds one of these.
  using AroundCommit =
      std::function<Result<>(const KeyTree& next, const std::function<Result<>()>& commit)>;
  Result<> rotate(const MakeKeyring& make, const std::function<void(const KeyringRotation&)>& taken,
                  const AroundCommit& around = {});
  // Makes the row name the current generation.
  Result<> note_generation() NACRE_EXCLUDES(mutex_);
  // Ends a rotation: a keyring with only the last epoch takes the place of the current one, as by
  // replace().
  Result<> end_rotation() NACRE_EXCLUDES(mutex_);

  // Writes both copies of the current keyring again, after an update that was interrupted between
  // them.
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
  // Whether rotate() failed, so that it is unknown which keyring is on the medium.
  bool is_unknown_ NACRE_GUARDED_BY(mutex_) = false;
};

}  // namespace nacre::metadata

// SPDX-License-Identifier: Apache-2.0
#include "metadata/keys/keyring_keeper.h"

#include <fmt/format.h>

#include <array>

#include "gpu_engine/base/check.h"
#include "metadata/backing/two_copies.h"
#include "metadata/text/document.h"

namespace nacre::metadata {

namespace {

// The files that are about to be replaced. They hold wraps for recipients that may have been
// removed since.
class ReplacedFiles {
 public:
  explicit ReplacedFiles(BackingDirectory& directory) {
    const std::array names = {std::string(keyring_file), copy_name(keyring_file)};
    for (std::size_t i = 0; i < names.size(); ++i) {
      auto file = directory.open(names[i], OpenMode::read_write);
      if (file) files_[i] = std::move(*file);
    }
  }

  // Overwrites the files as well as it can be done: copy-on-write file systems, snapshots and flash
  // keep what was there. A file that has another name (a backup made of hard links) is left alone.
  void overwrite() {
    for (const auto& file : files_) {
      if (!file || !file->is_nameless()) continue;
      const auto size = file->size();
      if (!size || *size > keyring_size_bytes_max) continue;
      const Bytes zeros(*size);
      if (file->write(0, zeros)) static_cast<void>(file->sync());
    }
  }

 private:
  std::array<std::unique_ptr<BackingFile>, 2> files_;
};

}  // namespace

KeyringKeeper::KeyringKeeper(std::shared_ptr<BackingDirectory> directory,
                             std::shared_ptr<const KeyTree> keys, Keyring current,
                             NoteGeneration note_generation)
    : directory_(std::move(directory)),
      keys_(std::move(keys)),
      note_generation_(std::move(note_generation)),
      current_(std::move(current)) {}

Keyring KeyringKeeper::current() const {
  const LockGuard lock(mutex_);
  return current_;
}

std::uint64_t KeyringKeeper::generation() const {
  const LockGuard lock(mutex_);
  return current_.generation;
}

Result<> KeyringKeeper::check_usable() const {
  if (!is_unknown_) return {};
  return fail(
      ErrorCode::read_only,
      "a new keyring could not be written, and it is unknown which one will count: mount the "
      "volume anew, then the recipients can be changed again");
}

Result<> KeyringKeeper::rotate(const MakeKeyring& make,
                               const std::function<void(const KeyringRotation&)>& taken,
                               const AroundCommit& around) {
  const LockGuard lock(mutex_);
  NACRE_TRY(check_usable());
  NACRE_ASSIGN(const KeyringRotation next, make(current_));
  NACRE_TRY(check_generation(next.keyring.generation, "keyring"));
  NACRE_CHECK(next.keyring.generation == current_.generation + 1,
              "a keyring of generation {} follows one of {}", next.keyring.generation,
              current_.generation);
  ReplacedFiles replaced(*directory_);
  const auto commit = [&]() NACRE_REQUIRES(mutex_) -> Result<> {
    NACRE_TRY(save_rotation(next));
    taken(next);
    return {};
  };
  NACRE_TRY(around ? around(*next.keys, commit) : commit());
  replaced.overwrite();
  return {};
}

Result<> KeyringKeeper::save_rotation(const KeyringRotation& next) {
  if (const auto saved = save_keyring(*directory_, next.keyring, *next.keys); !saved) {
    is_unknown_ = true;
    return add_context(saved.error(),
                       "the new keyring could not be written; if one of its copies was, the "
                       "rotation begins at the next mount");
  }
  current_ = next.keyring;
  return {};
}

Result<> KeyringKeeper::note_generation() {
  const LockGuard lock(mutex_);
  return note_generation_(current_.generation);
}

Result<> KeyringKeeper::end_rotation() {
  const LockGuard lock(mutex_);
  NACRE_TRY(check_usable());
  Keyring next = end_keyring_rotation(current_);
  NACRE_TRY(check_generation(next.generation, "keyring"));
  return replace_locked(next);
}

Result<> KeyringKeeper::replace(const Keyring& next) {
  const LockGuard lock(mutex_);
  NACRE_TRY(check_usable());
  NACRE_TRY(check_generation(next.generation, "keyring"));
  if (next.generation != current_.generation + 1) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("a keyring of generation {} cannot follow one of generation {}",
                            next.generation, current_.generation));
  }
  return replace_locked(next);
}

Result<> KeyringKeeper::replace_recipients(ByteView text) {
  NACRE_ASSIGN(const auto parsed, parse_keyring(text));
  const LockGuard lock(mutex_);
  NACRE_TRY(check_usable());
  NACRE_TRY(verify(parsed.seal, keys_->volume_subkey("keyring mac").view(), "new keyring"));
  const Keyring& next = parsed.claims;
  if (next.volume_id != current_.volume_id) {
    return fail(ErrorCode::tampered, "the new keyring is that of another volume");
  }
  if (next.generation != current_.generation + 1) {
    return fail(ErrorCode::busy,
                fmt::format("the keyring was changed meanwhile: it is of generation {}, and the "
                            "new one was made to be generation {}; try again",
                            current_.generation, next.generation));
  }
  Keyring expected = current_;
  expected.generation = next.generation;
  expected.recipients = next.recipients;
  if (encode_keyring(expected, *keys_) != as_text(text)) {
    return fail(ErrorCode::not_permitted,
                "the new keyring has other epochs than the volume: only its recipients may differ");
  }
  return replace_locked(next);
}

Result<> KeyringKeeper::replace_locked(const Keyring& next) {
  NACRE_CHECK(next.generation == current_.generation + 1,
              "a keyring of generation {} replaces one of {}", next.generation,
              current_.generation);
  ReplacedFiles replaced(*directory_);
  if (const auto saved = save_keyring(*directory_, next, *keys_); !saved) {
    // The row stays as it is, because it must not require a rename that may not be durable.
    look_again();
    const std::string_view state =
        current_.generation == next.generation
            ? "the new keyring may be in place already: see 'nacre key list', and repeat the "
              "command once the cause is mended, so that both copies are written"
            : "the keyring is as it was";
    return add_context(saved.error(), fmt::format("writing the keyring ({})", state));
  }
  current_ = next;
  if (const auto noted = note_generation_(next.generation); !noted) {
    return add_context(noted.error(),
                       "the new keyring is in place, but the database could not take note: until "
                       "the next mount an older one that is put back would not be noticed");
  }
  replaced.overwrite();
  return {};
}

void KeyringKeeper::look_again() {
  const auto found = find_keyring(*directory_);
  if (!found || found->keyring.claims.generation <= current_.generation) return;
  if (verify(found->keyring.seal, keys_->volume_subkey("keyring mac").view(), "keyring")) {
    current_ = found->keyring.claims;
  }
}

Result<> KeyringKeeper::finish_update() {
  const LockGuard lock(mutex_);
  NACRE_TRY(check_usable());
  ReplacedFiles replaced(*directory_);
  NACRE_TRY(save_keyring(*directory_, current_, *keys_));
  replaced.overwrite();
  return {};
}

}  // namespace nacre::metadata

// SPDX-License-Identifier: Apache-2.0
// From a path on the command line to an unlocked volume: what all commands that need keys do, in
// the order that keeps a passphrase from being typed into the wrong volume.
//
//   1. find_volume()    the directory, its superblock; the id is compared with known_volumes
//   2. read_secret()    only now is anybody asked for a passphrase
//   3. unlock()         keyring and MACs; the fingerprint is compared with --fingerprint and
//                       known_volumes, or pinned
#pragma once

#include <memory>
#include <string>

#include "gpu_engine/base/result.h"
#include "metadata/backing/backing.h"
#include "metadata/volume_files.h"
#include "tools/cli/secret_source.h"

namespace nacre::tools {

struct VolumePlace {
  std::string path;  // absolute, links resolved
  std::shared_ptr<metadata::BackingDirectory> directory;
};

// not_found, not_directory, permission.
Result<VolumePlace> open_place(const std::string& path);
// The same for a directory that holds a volume. not_found when it does not, with what to do; the
// errors of find_superblock(); not_permitted when another volume was there before.
Result<VolumePlace> find_volume(const std::string& path);
// The same where a mount would do as well, and none is there: its words say so.
Result<VolumePlace> find_unmounted_volume(const std::string& path);

// A passphrase, or the private key in options.identity (whose own passphrase then comes from the
// same sources).
Result<metadata::VolumeSecret> read_secret(const SecretOptions& options, const std::string& volume);

// Prints warnings about damaged copies and legacy ciphers, and a note when the volume is used for
// the first time.
Result<metadata::VolumeKeys> unlock(const VolumePlace& place, const metadata::VolumeSecret& secret,
                                    const SecretOptions& options);
// The same without the warnings, for callers that report them themselves.
Result<metadata::VolumeKeys> unlock_quietly(const VolumePlace& place,
                                            const metadata::VolumeSecret& secret,
                                            const SecretOptions& options);

// Compares the fingerprint with the one in options and with known_volumes, or pins it, with a note,
// when the volume is used for the first time. not_permitted when it is another one; and when it was
// neither known nor named, and a passphrase without its MAC opened it, unless somebody at a
// terminal confirms it. So the MAC in access may be completed once this has succeeded.
Result<> recognise(const VolumePlace& place, const metadata::KeyTree& keys,
                   const metadata::KeyringAccess& access, const SecretOptions& options);

// What everybody who uses a volume is told when some of it is sealed with DES or 3DES; empty when
// nothing is. Whatever unlocks a volume says it: unlock() by itself, others where their words go.
std::string legacy_cipher_warning(const VolumePlace& place, const metadata::Superblock& superblock,
                                  const metadata::Keyring& keyring);
void warn_of_legacy_cipher(const VolumePlace& place, const metadata::Superblock& superblock,
                           const metadata::Keyring& keyring);

// For mkfs: what is made there is known from now on, whatever was known before.
void remember_new_volume(const VolumePlace& place, const metadata::KeyTree& keys);
// The same where only the fingerprint is known, of a volume that a daemon rotates.
void remember_fingerprint(const VolumePlace& place, const std::string& volume_id,
                          const std::string& fingerprint);

std::string fingerprint_of(const metadata::KeyTree& keys);

}  // namespace nacre::tools

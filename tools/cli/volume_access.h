// SPDX-License-Identifier: Apache-2.0
// From a path on the command line to an unlocked volume. All commands that need keys do this, in an
// order that keeps a passphrase from being typed into the wrong volume.
//
//   1. find_volume()    the directory, its superblock; the id is compared with known_volumes
//   2. read_secret()    only now the user is asked for a passphrase
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

// Errors: not_found, not_directory, permission.
Result<VolumePlace> open_place(const std::string& path);
// The same for a directory that holds a volume. Errors: not_found, with what to do, if it holds
// none; those of find_superblock(); not_permitted if another volume was there before.
Result<VolumePlace> find_volume(const std::string& path);
// The same for commands that also take a mount point; the message says that neither was found.
Result<VolumePlace> find_unmounted_volume(const std::string& path);

// A passphrase, or the private key in options.identity (whose own passphrase then comes from the
// same sources).
Result<metadata::VolumeSecret> read_secret(const SecretOptions& options, const std::string& volume);

// Prints warnings about damaged copies and legacy ciphers, and a note if the volume is used for the
// first time.
Result<metadata::VolumeKeys> unlock(const VolumePlace& place, const metadata::VolumeSecret& secret,
                                    const SecretOptions& options);
// The same without the warnings, for callers that report them themselves.
Result<metadata::VolumeKeys> unlock_quietly(const VolumePlace& place,
                                            const metadata::VolumeSecret& secret,
                                            const SecretOptions& options);

// Compares the volume's fingerprint with the one in options and with known_volumes.
//
// Success: the fingerprint is the one that was named or known. It is pinned, with a note, if the
// volume is used for the first time, and also if its key follows the known one: because the
// passphrase vouches for that, or because the new fingerprint was named. Once this has succeeded,
// what access would complete may be written.
//
// Error: not_permitted, if the fingerprint is another one. Also in two cases in which the
// fingerprint is neither known nor named, unless a person at a terminal confirms it: a passphrase
// without its MAC or seal opened the volume, or nothing vouches for the rotation that replaced the
// key.
Result<> recognise(const VolumePlace& place, const metadata::KeyTree& keys,
                   const metadata::KeyringAccess& access, const SecretOptions& options);

// What format 1 does not protect, for a volume that is of it, or some of which still is; empty for
// others. A mount says it once, where format 2 is settled or asked for.
std::string older_format_warning(const VolumePlace& place, const metadata::Keyring& keyring);

// The warning for a volume of which some data is sealed with DES or 3DES; empty if none is.
// unlock() prints it; other callers that unlock a volume print it where their messages go.
std::string legacy_cipher_warning(const VolumePlace& place, const metadata::Superblock& superblock,
                                  const metadata::Keyring& keyring);
void warn_of_legacy_cipher(const VolumePlace& place, const metadata::Superblock& superblock,
                           const metadata::Keyring& keyring);

// For mkfs, and for a daemon that has begun a rotation: the volume is known with this key from now
// on, whatever was known there before.
void remember_new_volume(const VolumePlace& place, const metadata::KeyTree& keys);
// For a rotation that is about to write a keyring with the keys next: after a crash the volume is
// known with either key.
void remember_next_key(const VolumePlace& place, const metadata::KeyTree& keys,
                       const metadata::KeyTree& next);
// Once the volume is open for writing, so that no rotation is about to change its key: the volume
// is known with this key alone.
void settle_next_key(const VolumePlace& place, const metadata::KeyTree& keys);
// Like remember_new_volume(), for a volume that a daemon rotates, of which only the fingerprint is
// known.
void remember_fingerprint(const VolumePlace& place, const std::string& volume_id,
                          const std::string& fingerprint, bool is_format_2);

std::string fingerprint_of(const metadata::KeyTree& keys);

}  // namespace nacre::tools

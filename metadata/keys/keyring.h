// SPDX-License-Identifier: Apache-2.0
// The keyring: the recipients that can open a volume, and its epoch keys. Files "keyring" and
// "keyring.copy" (two_copies.h), in the form of document.h with the MAC key
// volume_subkey("keyring mac"):
//   {
//     "crc32": "89abcdef",
//     "epochs": [                               1 … 4096, numbers ascending
//       {
//         "cipher": "aes-256-gcm",
//         "format": 2,                          not there when it is 1
//         "number": 1,                          1 … 2^32 - 1
//         "wrapped_key": "base64"               sealed under volume_subkey("epoch wrap"), AAD:
//       }                                       volume id [16] | number u32 | suite u8, and the
//                                               format u8 unless it is 1
//     ],
//     "format": "nacre keyring",
//     "generation": 1,
//     "mac": "64 hex digits",
//     "previous_superblock": "64 hex digits",   only while the volume is rotated: SHA-256 of the
//                                               canonical dump, without mac and crc32, of the one
//                                               superblock that counts under the previous key
//     "previous_volume_key": "base64",          only while the volume is rotated: sealed under
//                                               volume_subkey("previous volume key"),
//                                               AAD: volume id [16]
//     "recipients": [                           1 … 1000, of which at most 32 passphrases
//       {
//         "created": "2026-01-31T23:59:59Z",
//         "fingerprint": "64 hex digits",       SHA-256 of public_key
//         "kdf": {                              passphrase only
//           "lanes": 2,                         1 … 16
//           "memory_kib": 1048576,              8192 … 4194304
//           "name": "argon2id",
//           "passes": 1,                        1 … 64
//           "salt": "base64"                    16 … 64 bytes
//         },
//         "kind": "passphrase",                 or "rsa"
//         "label": "",
//         "mac": "64 hex digits",               passphrase only: HMAC-SHA256 under K2 of
//                                               "nacre recipient" | volume id [16] |
//                                               fingerprint [32] | wrapped volume key. Missing
//                                               if the volume key was changed without it
//         "private_key": "base64",              passphrase only: PKCS#8, sealed under K1,
//                                               AAD: "nacre private key"
//         "public_key": "base64",               DER SubjectPublicKeyInfo
//         "wrapped_volume_key": "base64"        RSA-OAEP-SHA256, label: "nacre volume key" and
//       }                                       directly after it the volume id's 32 hex digits
//     ],
//     "version": 1,
//     "volume_id": "32 hex digits"
//   }
// K1 | K2 = Argon2id(passphrase, salt), 64 bytes. A sealed secret is: nonce [12], random |
// AES-256-GCM ciphertext | tag [16]. Integers in AADs are little-endian.
//
// A keyring whose last epoch is of format 2 has these recipients, too (docs/FORMAT.md):
//       {                                       a passphrase that seals the volume key itself
//         "check", "fingerprint": 64 hex digits, "created", "kdf", "kind", "label": as above,
//         "sealed_volume_key": "base64",        missing if the volume key was changed without it
//         "follows": "64 hex digits",           may be missing: fingerprint of the key before
//         "public_key", "private_key",          both or neither
//         "wrapped_volume_key"                  only without sealed_volume_key
//       },
//       {                                       a kind that this version does not know
//         "body": "base64", "created", "fingerprint", "label",
//         "kind": 3                             3 … 65535
//       }
//
// The recipient of each passphrase has its own MAC (in format 2 a seal), for this reason: an
// attacker who has seen a public key can wrap another volume key for it, and make a whole keyring
// around that key. This shows the holder of a secret that a volume is genuine:
//
//   the secret                        | what shows it
//   a passphrase with its MAC or seal | the MAC or seal, which only the passphrase can make
//   a passphrase without              | only the pinned KeyTree::fingerprint()
//   a bare RSA key                    | only the pinned KeyTree::fingerprint()
//
// A program that changes the volume key wraps the new one for every passphrase that has a key pair,
// but cannot make the MACs or seals of passphrases that it was not given. The recipients of these
// have none until the passphrase is used to open the volume for writing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "gpu_engine/cipher/suite.h"
#include "gpu_engine/kdf/kdf.h"
#include "gpu_engine/publickey/rsa.h"
#include "gpu_engine/record/record.h"
#include "metadata/backing/backing.h"
#include "metadata/keys/keys.h"
#include "metadata/text/unverified.h"

namespace nacre::metadata {

inline constexpr std::string_view keyring_file = "keyring";
inline constexpr std::size_t keyring_size_bytes_max = 16u << 20;
inline constexpr std::size_t recipient_count_max = 1000;
inline constexpr std::size_t passphrase_count_max = 32;  // an opening may have to try each
inline constexpr std::size_t epoch_count_max = 4096;

// What makes a recipient a passphrase recipient.
struct PassphraseLock {
  engine::Argon2Parameters kdf = {};
  Bytes salt;
  Bytes sealed_private_key;  // empty if it has no key pair, as it may be in format 2
  // In the form of format 1 only. None if the volume key was changed without the passphrase.
  std::optional<engine::Sha256Digest> mac;
  // In the form of format 2 only, and always there. It commits to the passphrase.
  std::optional<engine::Sha256Digest> check;
  // In the form of format 2 only. Empty if the volume key was changed without the passphrase.
  Bytes sealed_volume_key;
  // Only together with the seal: the fingerprint of the previous volume key, if it was known.
  std::optional<engine::Sha256Digest> follows;
};
// A recipient of a kind that this version does not know. This version keeps it as it is, and cannot
// open a volume with it.
struct OtherKind {
  std::uint16_t number = 0;
  Bytes body;
};
inline constexpr std::uint16_t recipient_kind_min = 3;
inline constexpr std::size_t recipient_body_size_max = 16u << 10;
struct Recipient {
  std::string label;
  std::string created;  // RFC 3339
  engine::Sha256Digest fingerprint = {};
  Bytes public_key;          // empty if it has no key pair
  Bytes wrapped_volume_key;  // empty if the volume key is sealed without the key pair
  std::optional<PassphraseLock> passphrase;
  std::optional<OtherKind> other_kind;
};
struct WrappedEpoch {
  std::uint32_t number = 0;
  engine::CipherSuite suite = engine::CipherSuite::aes_256_gcm;
  Bytes wrapped_key;
  EpochFormat format = EpochFormat::one;
};
struct Keyring {
  engine::VolumeId volume_id = {};
  std::uint64_t generation = 1;
  std::vector<WrappedEpoch> epochs;
  std::vector<Recipient> recipients;
  Bytes sealed_previous_volume_key;  // empty except during a rotation
  // KeyTree::previous_superblock().
  std::optional<engine::Sha256Digest> previous_superblock;
};

// Whether the last epoch is of format 2. Everything new is sealed under the last epoch, and so in
// its format.
bool is_of_format_2(const Keyring& keyring);
// False for a passphrase's recipient that lacks what only the passphrase can make (in format 1 the
// MAC, in format 2 the seal), because the volume key was changed without the passphrase.
bool is_confirmed(const Recipient& recipient);

// What is derived from a passphrase for its recipient of format 2 (passphrase_seal.h). With it, the
// volume key that is sealed for the recipient can be opened, and another one sealed. Opening a
// keyring with a passphrase gives it.
struct RecipientSeal {
  engine::Sha256Digest fingerprint = {};
  engine::Sha256Digest check = {};
  SecretBytes key;  // 32 bytes
  // The recipient's private key under that key, if the recipient was made in format 1. Else empty.
  Bytes sealed_private_key;
  RecipientSeal clone() const { return {fingerprint, check, key.clone(), sealed_private_key}; }
};

inline constexpr std::size_t volume_key_size_bytes = 32;

// A secret that opens a volume: a passphrase, or the private key of an RSA recipient.
using VolumeSecret = std::variant<SecretBytes, engine::RsaPrivateKey>;

// What deriving keys from passphrases may cost while nothing shows yet that the keyring is genuine:
// an attacker who can write to the keyring chooses the costs in it.
struct KdfLimit {
  std::uint64_t work_kib = 16u << 20;   // memory times passes, over all passphrases that are tried
  std::uint64_t memory_kib = 1u << 20;  // of one
};
// The limit of this process. It is set at the start, before there are threads.
const KdfLimit& kdf_limit();
void set_kdf_limit(const KdfLimit& limit);
// Memory times passes.
std::uint64_t work_kib_of(const engine::Argon2Parameters& kdf);
// Error: not_permitted if the cost is more than the limit allows, after spent_kib of work for other
// recipients. The message names the option that allows it.
Result<void> check_kdf_cost(const engine::Argon2Parameters& kdf, const KdfLimit& limit,
                            std::uint64_t spent_kib = 0);

struct NewPassphrase {
  std::string label;
  SecretBytes passphrase;  // not empty
  engine::Argon2Parameters kdf = {};
  int rsa_bits = engine::rsa_bits_default;
  // In format 2: whether it gets an RSA key pair, so that other recipients can give it another
  // volume key. In format 1 all have one.
  bool has_key_pair = true;
};
struct NewPublicKey {
  std::string label;
  engine::RsaPublicKey key;
};
using NewRecipient = std::variant<NewPassphrase, NewPublicKey>;

struct NewKeyring {
  Keyring keyring;
  std::shared_ptr<KeyTree> keys;
};
// Makes a new volume key and epoch 1, of that format. Errors: invalid_argument (no recipient, a
// recipient given twice, an empty passphrase, a bad label, KDF parameters out of bounds),
// not_permitted (the passphrases together cost more than kdf_limit() lets an opening try).
Result<NewKeyring> create_keyring(const engine::VolumeId& volume_id, engine::CipherSuite suite,
                                  std::span<const NewRecipient> recipients,
                                  EpochFormat format = EpochFormat::one);

std::string encode_keyring(const Keyring& keyring, const KeyTree& keys);
// Takes no more memory than a few times the text's size. Errors: corrupt, also for KDF parameters
// out of bounds; unsupported for a later version or a suite that this build does not have.
Result<Unverified<Keyring>> parse_keyring(ByteView text);

// What opening a keyring gives for changing its recipients (keyring_recipients.h).
struct KeyringAccess {
  SecretBytes volume_key;           // only for changing recipients; wiped with this object
  std::size_t recipient_index = 0;  // of the recipient that opened it
  // Whether a passphrase opened it for whose recipient is_confirmed() is false.
  bool is_unconfirmed = false;
  // What that recipient becomes when the keyring is next written: with the MAC or seal that was
  // missing, and in the form of the keyring's format. None if there is nothing to change.
  std::optional<Recipient> completed;
  // The fingerprint of the volume key that this one follows, if a passphrase opened the keyring and
  // its MAC or seal vouches for that.
  std::optional<engine::Sha256Digest> follows;
  std::optional<RecipientSeal> seal;  // of a passphrase
};
struct OpenedKeyring {
  std::shared_ptr<KeyTree> keys;
  KeyringAccess access;
};
// Finds the recipient of this secret, opens the volume key and the epoch keys, and checks the MACs
// on the way. If this succeeds, all that the keyring claims was written by a holder of its volume
// key. That this key is that of the user's own volume is shown only if a passphrase opened it and
// is_unconfirmed is false: with a private key, only the pinned fingerprint shows that. A passphrase
// is tried with every passphrase's recipient, the cheapest first, within the limit. Errors:
// wrong_key (whatever keeps a passphrase of format 2 from the volume key), tampered (also if a
// recipient is there twice), out_of_memory, not_permitted (not all were tried, because of the
// limit).
Result<OpenedKeyring> open_keyring(const Unverified<Keyring>& keyring, const VolumeSecret& secret,
                                   const KdfLimit& limit = kdf_limit());

// The same for a volume key that another process got by open_keyring(). Error: tampered, also if
// the keyring is another volume's.
Result<std::shared_ptr<KeyTree>> open_keyring_by_volume_key(const Unverified<Keyring>& keyring,
                                                            ByteView volume_key);

struct FoundKeyring {
  Unverified<Keyring> keyring;
  std::vector<Error> warnings;  // about its other copy
  bool is_torn = false;         // whether the other copy is whole, but of an earlier generation
  Bytes text;                   // of the file that is used
};
// Needs no keys. Errors: missing if neither copy is there; else as of parse_keyring() and
// read_copies().
Result<FoundKeyring> find_keyring(BackingDirectory& directory);
// Writes both copies. The caller has raised the generation. If the volume is in use, KeyringKeeper
// does this.
Result<void> save_keyring(BackingDirectory& directory, const Keyring& keyring, const KeyTree& keys);

}  // namespace nacre::metadata

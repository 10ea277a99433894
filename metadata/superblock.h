// SPDX-License-Identifier: Apache-2.0
// The superblock: the properties of a volume. Files "superblock" and "superblock.copy"
// (two_copies.h), in the form of document.h with the MAC key
// KeyTree::volume_subkey("superblock mac"):
//   {
//     "chunk_size_bytes": 65536,             a power of two, 4096 … 1048576
//     "cipher": "aes-256-gcm",               suite of new epochs
//     "codec": "lz77",                       of new records
//     "crc32": "89abcdef",
//     "created": "2026-01-31T23:59:59Z",
//     "features": {                          names; this version of Nacre knows format_2_feature
//       "compatible": [],                    an older Nacre may ignore them
//       "incompatible": [],                  it must not open the volume
//       "read_only_compatible": []           it may open it for reading
//     },
//     "format": "nacre",
//     "generation": 1,
//     "label": "",
//     "level": 0,                            of the codec: 0 its default, 1 fastest … 9 smallest
//     "mac": "64 hex digits",
//     "padding": "none",                     or "padme"
//     "version": 1,
//     "volume_id": "32 hex digits"
//   }
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu_engine/base/limits.h"
#include "gpu_engine/cipher/suite.h"
#include "gpu_engine/codec/codec.h"
#include "gpu_engine/record/record.h"
#include "metadata/backing/backing.h"
#include "metadata/keys/keys.h"
#include "metadata/text/generation.h"
#include "metadata/text/unverified.h"

namespace nacre::metadata {

inline constexpr std::string_view superblock_file = "superblock";
inline constexpr int codec_level_max = 9;
// An incompatible feature: the volume's keyring may have epochs of format 2. docs/FORMAT.md.
inline constexpr std::string_view format_2_feature = "format-2-draft";

struct Superblock {
  engine::VolumeId volume_id = {};
  std::uint64_t generation = 1;  // of the superblock: counts its updates
  std::string label;
  std::string created;  // RFC 3339
  std::uint32_t chunk_size_bytes = chunk_size_bytes_default;
  engine::Padding padding = engine::Padding::none;
  engine::Codec codec = engine::Codec::lz77;
  int level = 0;
  engine::CipherSuite cipher = engine::CipherSuite::aes_256_gcm;
  bool has_format_2 = false;  // format_2_feature
  std::vector<std::string> compatible_features;
  std::vector<std::string> read_only_features;
};

std::string_view padding_name(engine::Padding padding);
Result<engine::Padding> padding_from_name(std::string_view name);  // invalid_argument

std::string encode_superblock(const Superblock& superblock, const KeyTree& keys);
// Errors: corrupt; unsupported for a later version, an incompatible feature, or a codec or suite
// that this build does not have.
Result<Unverified<Superblock>> parse_superblock(ByteView text);
// Error: tampered if the MAC is not made with these keys, or the volume id is not theirs. While
// keys are rotated, a MAC under the volume key before is accepted for one superblock only, that of
// KeyTree::previous_superblock(), if there is one.
Result<Superblock> verify_superblock(const Unverified<Superblock>& superblock, const KeyTree& keys);

// The digest that KeyTree::previous_superblock() holds: SHA-256 of all that the MAC covers.
engine::Sha256Digest superblock_digest(const Unverified<Superblock>& superblock);
// The same for a superblock that save_superblock() writes.
engine::Sha256Digest superblock_digest(const Superblock& superblock, const KeyTree& keys);

// The generation to write to the row superblock_generation, for which an older superblock is
// refused. 0 for a volume without format 2, which has no such row.
std::uint64_t generation_to_note(const Superblock& superblock);
// Error: rolled_back if a newer generation than this was noted. No error if none was noted.
Result<void> check_noted_generation(std::uint64_t generation, std::optional<std::uint64_t> noted);

// Error: read_only, with the feature that lets this build read the volume but not write to it.
Result<void> check_writable(const Superblock& superblock);

struct FoundSuperblock {
  Unverified<Superblock> superblock;
  std::vector<Error> warnings;  // about its other copy
};
// Needs no keys. Errors: not_found if neither copy is there; else as of parse_superblock() and
// read_copies().
Result<FoundSuperblock> find_superblock(BackingDirectory& directory);
// Writes both copies. The caller has raised the generation.
Result<void> save_superblock(BackingDirectory& directory, const Superblock& superblock,
                             const KeyTree& keys);

}  // namespace nacre::metadata

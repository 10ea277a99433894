// SPDX-License-Identifier: Apache-2.0
// One random change of one file of a volume. It is a change that decay makes, or one of an attacker
// who knows the format and puts checksums right, but has no key.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/support/memory_backing.h"

namespace nacre::tests {

// The pieces of which a file of a volume is made, as the sound file shows them.
enum class PieceKind : std::uint8_t {
  text,            // superblock, keyring, and files without parts
  segment_header,  // the first 64 bytes
  record,
  file_header,  // of a file under db/
  page,
  frame,
};
struct Piece {
  PieceKind kind = PieceKind::text;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};
// Returns the pieces in order, without gaps. Bytes after the last one (space written ahead) are in
// none.
std::vector<Piece> pieces_of(const std::string& path, ByteView content);

enum class MutationKind : std::uint8_t {
  flip,       // one bit
  overwrite,  // some bytes, with noise
  zero,       // a stretch: some bytes, a sector, a piece, or all to the end
  cut,
  extend,
  remove,
  swap,          // with another piece of the same file
  borrow,        // a piece of another file in its place
  other_file,    // the content of another file of the volume
  other_volume,  // the file of that name of another volume
  older,         // the file as it once was
};
inline constexpr std::size_t mutation_kind_count = 11;
std::string_view to_string(MutationKind kind);

struct Mutation {
  MutationKind kind = MutationKind::flip;
  std::string path;
  PieceKind piece = PieceKind::text;
  std::uint64_t offset = 0;     // where the change begins
  std::uint64_t in_piece = 0;   // the same place, within its piece
  bool is_forged = false;       // whether checksums were put right
  bool is_whole_piece = false;  // whether a piece took the place of one of the same size
  std::string text;             // the change in words, for messages
};

struct MutationSources {
  MemoryBacking& early;
  MemoryBacking& other;
};
// Changes the file. Returns none if this kind of change is not possible there, or changes nothing.
std::optional<Mutation> mutate(MemoryBacking& backing, const std::string& path, MutationKind kind,
                               const MutationSources& sources, std::mt19937_64& random);

}  // namespace nacre::tests

// SPDX-License-Identifier: Apache-2.0
// Sizes and checksums follow docs/FORMAT.md, not the code under test.
#include "tests/hostile/mutation.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "gpu_engine/checksum/crc32.h"
#include "tests/metadata/forge.h"

namespace nacre::tests {

namespace {

constexpr std::uint64_t header_size = 64;  // of segments and of files under db/
constexpr std::uint64_t page_size = 4096;
constexpr std::uint64_t record_crc_offset = 36;
constexpr std::uint64_t frame_crc_offset = 28;

bool is_magic(ByteView content, std::uint64_t offset, std::string_view magic) {
  return offset + magic.size() <= content.size() &&
         as_text(content.subspan(offset, magic.size())) == magic;
}

void add_sized(std::string_view magic, std::uint64_t size_offset, std::uint64_t overhead,
               PieceKind kind, ByteView content, std::vector<Piece>& pieces) {
  for (std::uint64_t at = header_size; is_magic(content, at, magic);) {
    const std::uint64_t size = load_le<std::uint32_t>(content.data() + at + size_offset) + overhead;
    pieces.push_back({kind, at, size});
    at += size;
  }
}

// A checksum that covers the piece's bytes before and after itself, but not itself.
void put_crc(Bytes& content, std::uint32_t seed, const Piece& piece, std::uint64_t crc_offset) {
  const ByteView bytes = ByteView(content).subspan(piece.offset, piece.size);
  std::uint32_t crc = engine::crc32(seed, bytes.first(crc_offset));
  crc = engine::crc32(crc, bytes.subspan(crc_offset + 4));
  store_le(content.data() + piece.offset + crc_offset, crc);
}

void put_crc_right(Bytes& content, const Piece& piece) {
  const std::uint32_t salted = engine::crc32(0, ByteView(content).subspan(32, 16));
  Byte* begin = content.data() + piece.offset;
  switch (piece.kind) {
    case PieceKind::text:
      return;
    case PieceKind::segment_header:
      store_le(begin + 52, engine::crc32(0, ByteView(begin, 52)));
      return;
    case PieceKind::file_header:
      store_le(begin + 60, engine::crc32(0, ByteView(begin, 60)));
      return;
    case PieceKind::record:
      return put_crc(content, 0, piece, record_crc_offset);
    case PieceKind::frame:
      return put_crc(content, salted, piece, frame_crc_offset);
    case PieceKind::page: {
      std::array<Byte, 8> index;
      store_le(index.data(), (piece.offset - header_size) / page_size);
      const std::uint32_t crc =
          engine::crc32(engine::crc32(salted, index), ByteView(begin, piece.size - 4));
      store_le(begin + piece.size - 4, crc);
    }
  }
}

// Changes a letter or digit of a value, and puts the checksum right. Then only the MAC shows the
// change.
std::optional<Bytes> forge_document(ByteView content, std::mt19937_64& random) {
  const auto parsed = nlohmann::json::parse(as_text(content), nullptr, false);
  if (!parsed.is_object()) return std::nullopt;
  const nlohmann::json flat = parsed.flatten();
  std::vector<std::string> names;
  for (const auto& [name, value] : flat.items()) {
    if (name == "/crc32" || name == "/format" || name == "/version") continue;
    if (value.is_number() || (value.is_string() && !value.get<std::string>().empty())) {
      names.push_back(name);
    }
  }
  const std::string name = names[random() % names.size()];
  const std::string forged = forge(as_text(content), [&](nlohmann::json& fields) {
    auto& value = fields[nlohmann::json::json_pointer(name)];
    if (value.is_number()) {
      value = value.get<std::uint64_t>() + 1 + random() % 3;
      return;
    }
    std::string words = value.get<std::string>();
    char& letter = words[random() % words.size()];
    letter = std::isdigit(letter) ? static_cast<char>('0' + (letter - '0' + 1 + random() % 9) % 10)
             : letter == 'a'      ? 'b'
                                  : 'a';
    value = words;
  });
  const ByteView bytes = as_bytes(forged);
  return Bytes(bytes.begin(), bytes.end());
}

class Mutator {
 public:
  Mutator(MemoryBacking& backing, const std::string& path, MutationKind kind,
          const MutationSources& sources, std::mt19937_64& random)
      : backing_(backing), sources_(sources), random_(random) {
    made_.kind = kind;
    made_.path = path;
  }

  std::optional<Mutation> run() {
    const auto sound = backing_.load(made_.path);
    if (!sound) return std::nullopt;
    content_ = *sound;
    pieces_ = pieces_of(made_.path, *sound);
    if (pieces_.empty()) pieces_ = {{PieceKind::text, 0, content_.size()}};
    piece_ = pieces_[pick(pieces_.size())];
    if (!change() || content_ == *sound) return std::nullopt;
    describe();
    if (made_.kind == MutationKind::remove) {
      backing_.erase(made_.path);
    } else {
      backing_.store(made_.path, content_);
    }
    return made_;
  }

 private:
  std::uint64_t pick(std::uint64_t count) { return random_() % count; }

  // Half of the changes are in the piece's first bytes, where its fields are.
  void choose_place() {
    const std::uint64_t range =
        pick(2) == 0 ? std::min<std::uint64_t>(piece_.size, 44) : piece_.size;
    place_at(piece_.offset + pick(range));
  }
  void place_at(std::uint64_t offset) {
    made_.offset = offset;
    made_.in_piece = offset - piece_.offset;
    made_.piece = piece_.kind;
  }
  void forge_sometimes() {
    if (piece_.kind == PieceKind::text || pick(2) == 0) return;
    put_crc_right(content_, piece_);
    made_.is_forged = true;
  }

  bool change() {
    if (content_.empty() && made_.kind != MutationKind::extend) return false;
    switch (made_.kind) {
      case MutationKind::flip:
        return flip();
      case MutationKind::overwrite:
        choose_place();
        for (std::uint64_t i = 0, count = 1 + pick(64); i < count; ++i) {
          if (made_.offset + i < piece_.offset + piece_.size) {
            content_[made_.offset + i] = static_cast<Byte>(random_());
          }
        }
        forge_sometimes();
        return true;
      case MutationKind::zero:
        return zero();
      case MutationKind::cut:
        place_at(pick(3) == 0 ? pick(content_.size()) : piece_.offset);
        content_.resize(made_.offset);
        return true;
      case MutationKind::extend: {
        place_at(content_.size());
        const Byte filler = pick(2) == 0 ? Byte{0} : Byte{0x5a};
        content_.resize(content_.size() + 1 + pick(pick(2) == 0 ? 100 : 9000), filler);
        return true;
      }
      case MutationKind::remove:
        content_.clear();
        return true;
      case MutationKind::swap:
        return swap();
      case MutationKind::borrow:
        return borrow();
      case MutationKind::other_file:
        return replace_by(backing_, other_path());
      case MutationKind::other_volume:
        return replace_by(sources_.other, like(sources_.other));
      case MutationKind::older:
        return replace_by(sources_.early, made_.path);
    }
    return false;
  }

  bool flip() {
    if (piece_.kind == PieceKind::text && pick(2) == 0) {
      if (auto forged = forge_document(content_, random_)) {
        content_ = std::move(*forged);
        made_.is_forged = true;
        return true;
      }
    }
    choose_place();
    content_[made_.offset] ^= static_cast<Byte>(1u << pick(8));
    forge_sometimes();
    return true;
  }

  bool zero() {
    choose_place();
    std::uint64_t end = made_.offset + 1 + pick(64);
    switch (pick(4)) {
      case 0:
        place_at(piece_.offset);
        end = piece_.offset + piece_.size;
        break;
      case 1:
        made_.offset = made_.offset / 512 * 512;
        end = made_.offset + 512;
        break;
      case 2:
        end = content_.size();
        break;
      default:
        break;
    }
    end = std::min<std::uint64_t>(end, content_.size());
    std::fill(content_.begin() + static_cast<std::ptrdiff_t>(made_.offset),
              content_.begin() + static_cast<std::ptrdiff_t>(end), Byte{0});
    return true;
  }

  bool swap() {
    std::vector<Piece> others;
    for (const Piece& other : pieces_) {
      if (other.kind == piece_.kind && other.offset != piece_.offset) others.push_back(other);
    }
    if (others.empty()) return false;
    const Piece other = others[pick(others.size())];
    place_at(piece_.offset);
    const std::uint64_t size = std::min(piece_.size, other.size);
    std::swap_ranges(content_.begin() + static_cast<std::ptrdiff_t>(piece_.offset),
                     content_.begin() + static_cast<std::ptrdiff_t>(piece_.offset + size),
                     content_.begin() + static_cast<std::ptrdiff_t>(other.offset));
    made_.is_whole_piece = piece_.size == other.size;
    if (made_.is_whole_piece && piece_.kind != PieceKind::record && pick(2) == 0) {
      put_crc_right(content_, piece_);
      put_crc_right(content_, other);
      made_.is_forged = true;
    }
    return true;
  }

  bool borrow() {
    MemoryBacking& source = pick(2) == 0 ? sources_.other : backing_;
    const std::string path = &source == &backing_ ? other_path() : like(source);
    const auto lender = source.load(path);
    if (!lender) return false;
    for (const Piece& lent : pieces_of(path, *lender)) {
      if (lent.kind != piece_.kind || (lent.size != piece_.size && pick(3) != 0)) continue;
      place_at(piece_.offset);
      const std::uint64_t size = std::min(piece_.size, lent.size);
      std::copy_n(lender->begin() + static_cast<std::ptrdiff_t>(lent.offset), size,
                  content_.begin() + static_cast<std::ptrdiff_t>(piece_.offset));
      made_.is_whole_piece = piece_.size == lent.size;
      source_ = path;
      if (made_.is_whole_piece) forge_sometimes();
      return true;
    }
    return false;
  }

  bool replace_by(MemoryBacking& source, const std::string& path) {
    auto content = source.load(path);
    if (!content) return false;
    source_ = path;
    place_at(0);
    content_ = std::move(*content);
    return true;
  }

  // Chooses another file of the same folder. Files of the same kind are likelier.
  std::string other_path() {
    std::vector<std::string> near;
    const std::string folder = made_.path.substr(0, made_.path.find('/') + 1);
    for (const auto& path : backing_.files()) {
      if (path != made_.path && path.starts_with(folder) &&
          (folder.empty() == (path.find('/') == std::string::npos))) {
        near.push_back(path);
        if (ending(path) == ending(made_.path)) near.insert(near.end(), 4, path);
      }
    }
    return near.empty() ? "" : near[pick(near.size())];
  }
  // Returns the other volume's file of this name, or its first file of this kind.
  std::string like(MemoryBacking& source) {
    std::string found;
    for (const auto& path : source.files()) {
      if (path == made_.path) return path;
      if (found.empty() && path.substr(0, 3) == made_.path.substr(0, 3) &&
          ending(path) == ending(made_.path)) {
        found = path;
      }
    }
    return found;
  }
  static std::string ending(const std::string& path) {
    const auto dot = path.rfind('.');
    if (dot != std::string::npos) return path.substr(dot);
    return path.substr(0, path.find('-'));
  }

  void describe() {
    made_.text = fmt::format("{}{} of {} at {} (piece of kind {} at {}, {} bytes{})",
                             made_.is_forged ? "forged " : "", to_string(made_.kind), made_.path,
                             made_.offset, static_cast<int>(piece_.kind), piece_.offset,
                             piece_.size, source_.empty() ? "" : ", from " + source_);
  }

  MemoryBacking& backing_;
  const MutationSources& sources_;
  std::mt19937_64& random_;
  Mutation made_;
  Bytes content_;
  std::vector<Piece> pieces_;
  Piece piece_;
  std::string source_;
};

}  // namespace

std::vector<Piece> pieces_of(const std::string& path, ByteView content) {
  std::vector<Piece> pieces;
  if (is_magic(content, 0, "NSEG") && content.size() >= header_size) {
    pieces.push_back({PieceKind::segment_header, 0, header_size});
    add_sized("NREC", 8, 0, PieceKind::record, content, pieces);
  } else if (is_magic(content, 0, "NDBF") && content.size() >= header_size) {
    pieces.push_back({PieceKind::file_header, 0, header_size});
    if (path.ends_with(".sst")) {
      for (std::uint64_t at = header_size; at < content.size(); at += page_size) {
        pieces.push_back({PieceKind::page, at, std::min(page_size, content.size() - at)});
      }
    } else {
      add_sized("NFRM", 4, 48, PieceKind::frame, content, pieces);
    }
  } else if (!content.empty()) {
    pieces.push_back({PieceKind::text, 0, content.size()});
  }
  return pieces;
}

std::string_view to_string(MutationKind kind) {
  static constexpr std::string_view names[mutation_kind_count] = {
      "flip", "overwrite", "zero",       "cut",          "extend", "remove",
      "swap", "borrow",    "other file", "other volume", "older"};
  return names[static_cast<std::size_t>(kind)];
}

std::optional<Mutation> mutate(MemoryBacking& backing, const std::string& path, MutationKind kind,
                               const MutationSources& sources, std::mt19937_64& random) {
  return Mutator(backing, path, kind, sources, random).run();
}

}  // namespace nacre::tests

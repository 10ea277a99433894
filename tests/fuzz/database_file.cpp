// SPDX-License-Identifier: Apache-2.0
// Files under db/, sealed under a known key: frames and pages of any fields, in any order, each
// with a right tag and checksum. Input: a byte, then pieces: kind, place, a field, flags, size (one
// byte each), content. Where the first byte is 0 mod 4, the rest is the file as it lies on disk.
#include <algorithm>
#include <cstdlib>

#include "gpu_engine/checksum/crc32.h"
#include "metadata/sealed_fs/frame_file.h"
#include "metadata/sealed_fs/page_file.h"
#include "metadata/sealed_fs/page_layout.h"
#include "tests/fuzz/entry.h"
#include "tests/support/memory_backing.h"

namespace {

using namespace nacre;
using namespace nacre::metadata;

KeyTree make_keys(EpochFormat format) {
  std::vector<EpochKey> epochs;
  epochs.push_back({.number = 1, .key = SecretBytes(Bytes(32, 7)), .format = format});
  return KeyTree(engine::VolumeId{1, 2, 3}, SecretBytes(Bytes(32, 9)), std::move(epochs));
}

// Half of the inputs are files of format 2.
const KeyTree& keys(std::size_t input_size) {
  static const KeyTree first = make_keys(EpochFormat::one);
  static const KeyTree second = make_keys(EpochFormat::two);
  return input_size % 2 == 0 ? first : second;
}

struct Input {
  ByteView rest;
  Byte byte() {
    if (rest.empty()) return 0;
    const Byte first = rest[0];
    rest = rest.subspan(1);
    return first;
  }
  ByteView take(std::size_t size) {
    const auto taken = rest.first(std::min(size, rest.size()));
    rest = rest.subspan(taken.size());
    return taken;
  }
};

Bytes begin_file(const FileSeal& seal) {
  const auto header = encode(seal.header());
  return Bytes(header.begin(), header.end());
}

void add_frame(Bytes& file, const FileSeal& seal, const FrameHeader& header, ByteView plain) {
  Bytes frame(frame_overhead_bytes + plain.size());
  const MutableByteView out(frame);
  encode_frame_header(header, out);
  seal.seal(header.sequence, 0, out.first(frame_authenticated_bytes), plain,
            out.subspan(frame_header_size_bytes, plain.size()), out.last(frame_tag_size_bytes));
  store_le(&frame[frame_authenticated_bytes], frame_crc(seal.header().salt, frame));
  file.insert(file.end(), frame.begin(), frame.end());
}

void try_frames(Input input, std::string_view path, bool is_raw) {
  const auto seal = FileSeal::create(keys(input.rest.size()), path, engine::Padding::none).value();
  Bytes file = begin_file(seal);
  Bytes expected;
  if (is_raw) file.insert(file.end(), input.rest.begin(), input.rest.end());
  for (std::uint64_t number = 0; !is_raw && !input.rest.empty(); ++number) {
    const auto shift = static_cast<std::int8_t>(input.byte());
    const Byte synced = input.byte();
    const Byte flags = input.byte();
    const ByteView plain = input.take(input.byte());
    if (shift == 127) {  // what is left of a write
      file.insert(file.end(), plain.begin(), plain.end());
      continue;
    }
    const std::uint64_t sequence = number + static_cast<std::uint64_t>(std::int64_t{shift / 16});
    add_frame(file, seal,
              {.plain_size = static_cast<std::uint32_t>(plain.size()),
               .sequence = sequence,
               .synced_up_to = std::min<std::uint64_t>(sequence, synced % 8),
               .flags = flags % 8u},
              plain);
    expected.insert(expected.end(), plain.begin(), plain.end());
  }
  Bytes plain;
  const auto opened = walk_frames(path, seal.header(), file, &seal, &plain);
  const auto scrubbed = walk_frames(path, seal.header(), file, nullptr, nullptr);
  if (opened && !scrubbed) std::abort();
  if (opened && (opened->plain_size != plain.size() || opened->end > file.size())) std::abort();
  if (opened && plain.size() > expected.size() && !is_raw) std::abort();
}

void try_pages(Input input, bool is_raw) {
  constexpr std::string_view path = "db/000012.sst";
  const KeyTree& tree = keys(input.rest.size());
  const auto seal = FileSeal::create(tree, path, engine::Padding::none).value();
  Bytes file = begin_file(seal);
  if (is_raw) file.insert(file.end(), input.rest.begin(), input.rest.end());
  for (std::uint64_t number = 0; !is_raw && !input.rest.empty(); ++number) {
    const auto shift = static_cast<std::int8_t>(input.byte());
    const std::uint64_t page = number + static_cast<std::uint64_t>(std::int64_t{shift / 32});
    const std::uint32_t generation = input.byte() % 4u;
    const Byte flags = input.byte();
    const ByteView given = input.take(input.byte());
    Bytes plain(given.begin(), given.end());
    if (flags % 2 == 0) plain.resize(page_plain_bytes);
    const std::uint32_t state = generation | (flags % 4 == 1 ? page_final_bit : 0);
    Bytes stored(plain.size() + page_overhead_bytes);
    const MutableByteView out(stored);
    std::array<Byte, 12> fields;
    store_le(&fields[0], page);
    store_le(&fields[8], state);
    seal.seal(page, generation, fields, plain, out.first(plain.size()),
              out.subspan(plain.size(), page_tag_size_bytes));
    store_le(&stored[plain.size() + page_tag_size_bytes], state);
    std::array<Byte, 8> index;
    store_le(index.data(), page);
    const std::uint32_t crc = engine::crc32(
        engine::crc32(engine::crc32(0, seal.header().salt), index), out.first(stored.size() - 4));
    store_le(&stored[stored.size() - 4], crc);
    file.insert(file.end(), stored.begin(), stored.end());
  }
  const auto backing = tests::MemoryBacking::create();
  backing->store(path, file);
  const auto reader = PageReader::open(*backing, path, tree);
  if (!reader) return;
  if ((*reader)->size() > file.size()) std::abort();
  Bytes whole((*reader)->size());
  const auto read = (*reader)->read(0, whole);
  if (read && *read != whole.size()) std::abort();
  Bytes part(std::min<std::size_t>(5000, whole.size()));
  const auto again = (*reader)->read(whole.size() / 3, part);
  if (read && again &&
      !std::equal(part.begin(), part.begin() + static_cast<std::ptrdiff_t>(*again),
                  whole.begin() + static_cast<std::ptrdiff_t>(whole.size() / 3))) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  constexpr std::string_view paths[] = {"db/000007.log", "db/MANIFEST-000004", "db/CURRENT"};
  const Input input{ByteView(data + 1, size - 1)};
  const bool is_raw = data[0] % 4 == 0;
  const std::size_t kind = data[0] / 4 % 4;
  kind < 3 ? try_frames(input, paths[kind], is_raw) : try_pages(input, is_raw);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Containers that an attacker damaged, cut, joined or made up. None is accepted, and no bytes come
// out that were not in the original file at that place.
#include <algorithm>
#include <cstdlib>
#include <string>

#include <fmt/format.h>

#include "tests/fs/container_fixture.h"

namespace nacre::fs {
namespace {

constexpr std::size_t chunk = 4096;

class HostileContainer : public ContainerFixture {
 protected:
  void SetUp() override {
    // Without compression all records of chunks have the same length, so parts of one could stand
    // in for parts of another.
    container_ = seal(plain_, keys_, packing_);
    offsets_ = record_offsets(container_);
  }

  ByteView record(const Bytes& container, std::size_t index) const {
    return ByteView(container).subspan(offsets_[index], offsets_[index + 1] - offsets_[index]);
  }
  Bytes start() const {
    return Bytes(container_.begin(), container_.begin() + static_cast<std::ptrdiff_t>(offsets_[0]));
  }
  // Header and keyring, and then these records.
  Bytes with_records(std::initializer_list<ByteView> records) const {
    Bytes bytes = start();
    for (const ByteView one : records)
      bytes.insert(bytes.end(), one.begin(), one.end());
    return bytes;
  }
  // The bytes at the offset of a container's header become others, and the CRC fits.
  static Bytes with_header(Bytes container, std::size_t offset, unsigned value) {
    container[offset] = static_cast<Byte>(value);
    store_le(container.data() + 12, engine::crc32(0, ByteView(container).first(12)));
    return container;
  }

  const ContainerKeys keys_ = make_keys();
  const ContainerPacking packing_{.codec = engine::Codec::none};
  const Bytes plain_ = random_content(3 * chunk, 11);
  Bytes container_;  // of three chunks and an end
  std::vector<std::size_t> offsets_;
};

TEST_F(HostileContainer, cut_off_anywhere) {
  ASSERT_EQ(offsets_.size(), 5u);
  std::vector<MemoryFile> files;
  for (std::size_t size = 0; size < container_.size(); size += size < 64 ? 1 : 37)
    files.push_back({.source = Bytes(container_.begin(),
                                     container_.begin() + static_cast<std::ptrdiff_t>(size))});
  // Between two records, too.
  for (std::size_t i = 0; i + 1 < offsets_.size(); ++i)
    files.push_back(
        {.source = Bytes(container_.begin(),
                         container_.begin() + static_cast<std::ptrdiff_t>(offsets_[i]))});
  decrypt(files);
  for (const MemoryFile& file : files) {
    EXPECT_EQ(error_of(*file.outcome), ErrorCode::corrupt) << file.source.size();
    EXPECT_TRUE(std::equal(file.sink.begin(), file.sink.end(), plain_.begin()));
  }
}

TEST_F(HostileContainer, any_byte_changed) {
  std::vector<MemoryFile> files;
  for (std::size_t at = 0; at < container_.size(); at += at < 4000 ? 1 : 61) {
    files.push_back({.source = container_});
    files.back().source[at] ^= static_cast<Byte>(1u << (at % 8));
  }
  decrypt(files);
  for (std::size_t i = 0; i < files.size(); ++i) {
    EXPECT_FALSE(*files[i].outcome) << i;
    EXPECT_TRUE(std::equal(files[i].sink.begin(), files[i].sink.end(), plain_.begin()));
  }
}

TEST_F(HostileContainer, records_moved_left_out_or_repeated) {
  const auto own = [&](std::size_t i) { return record(container_, i); };
  ASSERT_EQ(open(with_records({own(0), own(1), own(2), own(3)})).sink, plain_);
  for (const auto& bytes : {
           with_records({own(1), own(0), own(2), own(3)}),
           with_records({own(0), own(2), own(3)}),
           with_records({own(1), own(2), own(3)}),
           with_records({own(0), own(1), own(3)}),
           with_records({own(3)}),
           with_records({own(0), own(0), own(1), own(2), own(3)}),
           with_records({own(0), own(1), own(2), own(3), own(3)}),
           with_records({own(0), own(1), own(2), own(3), own(0)}),
       })
    EXPECT_EQ(refused(bytes, plain_), ErrorCode::tampered);
  EXPECT_EQ(refused(with_records({own(0), own(1), own(2)}), plain_), ErrorCode::corrupt);
  EXPECT_EQ(refused(start(), plain_), ErrorCode::corrupt);
}

TEST_F(HostileContainer, parts_of_another_under_the_same_keyring) {
  const Bytes other_plain = random_content(3 * chunk, 12);
  const Bytes other = seal(other_plain, keys_, packing_);
  ASSERT_EQ(record_offsets(other), offsets_);
  for (std::size_t i = 0; i < 4; ++i) {
    Bytes bytes = start();
    for (std::size_t j = 0; j < 4; ++j) {
      const ByteView one = record(i == j ? other : container_, j);
      bytes.insert(bytes.end(), one.begin(), one.end());
    }
    // A container that begins like the other one counts as the other one, as far as its bytes go.
    EXPECT_EQ(refused(bytes, i == 0 ? other_plain : plain_), ErrorCode::tampered) << i;
  }
  // One behind the other.
  Bytes both = container_;
  both.insert(both.end(), other.begin(), other.end());
  EXPECT_EQ(refused(both, plain_), ErrorCode::tampered);
  Bytes with_nothing = container_;
  with_nothing.push_back(0);
  EXPECT_EQ(refused(with_nothing, plain_), ErrorCode::tampered);
  // With all records of the other container, this is the other container: both share the keyring,
  // and containers are not bound to file names.
  Bytes swapped = start();
  swapped.insert(swapped.end(), other.begin() + static_cast<std::ptrdiff_t>(offsets_[0]),
                 other.end());
  EXPECT_EQ(open(swapped).sink, other_plain);
}

TEST_F(HostileContainer, another_keyring_in_front) {
  const ContainerKeys strange = make_keys();
  Bytes bytes = strange.preamble;
  bytes.insert(bytes.end(), container_.begin() + static_cast<std::ptrdiff_t>(offsets_[0]),
               container_.end());
  EXPECT_EQ(refused(bytes, plain_), ErrorCode::tampered);
}

TEST_F(HostileContainer, a_header_that_says_something_else) {
  EXPECT_EQ(refused(with_header(container_, 0, 'X'), plain_), ErrorCode::corrupt);
  EXPECT_EQ(refused(with_header(container_, 4, 2), plain_), ErrorCode::unsupported);
  EXPECT_EQ(refused(with_header(container_, 4, 0), plain_), ErrorCode::corrupt);
  EXPECT_EQ(refused(with_header(container_, 6, 1), plain_), ErrorCode::corrupt);
  for (const unsigned bits : {0u, 11u, 21u, 255u})
    EXPECT_EQ(refused(with_header(container_, 5, bits), plain_), ErrorCode::corrupt);
  // Larger chunks than there are.
  EXPECT_EQ(refused(with_header(container_, 5, 13), plain_), ErrorCode::corrupt);
  const Bytes one_chunk = seal(random_content(chunk / 2, 4), keys_);
  EXPECT_EQ(refused(with_header(one_chunk, 5, 20), random_content(chunk / 2, 4)),
            ErrorCode::tampered);
  // Smaller ones.
  const auto large = make_keys(engine::CipherSuite::aes_256_gcm, 16);
  const Bytes plain = random_content(60000, 4);
  EXPECT_EQ(refused(with_header(seal(plain, large), 5, 12), plain), ErrorCode::corrupt);
  // A keyring without end.
  for (const unsigned high : {0x01u, 0x02u, 0xffu})
    EXPECT_EQ(refused(with_header(container_, 11, high), plain_), ErrorCode::corrupt);
}

TEST_F(HostileContainer, any_bytes_behind_the_header) {
  const char* const given = std::getenv("NACRE_TEST_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 0) : 20261121;
  fmt::print("seed {}\n", seed);
  std::mt19937_64 random(seed);
  std::vector<MemoryFile> files;
  for (int i = 0; i < 300; ++i) {
    MemoryFile file{.source = container_};
    for (std::size_t n = 1 + random() % 20; n > 0; --n) {
      const std::size_t at = random() % file.source.size();
      switch (random() % 4) {
        case 0:
          file.source[at] = static_cast<Byte>(random());
          break;
        case 1:
          file.source.insert(file.source.begin() + static_cast<std::ptrdiff_t>(at), random() % 100,
                             static_cast<Byte>(random()));
          break;
        case 2:
          file.source.resize(std::max<std::size_t>(at, 1));
          break;
        default: {
          const std::size_t to = random() % file.source.size();
          file.source[at] = file.source[to];
        }
      }
    }
    if (file.source != container_) files.push_back(std::move(file));
  }
  decrypt(files);
  for (std::size_t i = 0; i < files.size(); ++i) {
    EXPECT_FALSE(*files[i].outcome) << i;
    EXPECT_TRUE(files[i].sink.size() <= plain_.size() &&
                std::equal(files[i].sink.begin(), files[i].sink.end(), plain_.begin()));
  }
}

}  // namespace
}  // namespace nacre::fs

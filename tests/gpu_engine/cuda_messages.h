// SPDX-License-Identifier: Apache-2.0
// Messages under block ciphers for the kernels: what tests of AES and of DES share.
#pragma once

#include "gpu_engine/cipher/block_cipher.h"
#include "gpu_engine/cuda/kernels/crypt.h"
#include "tests/gpu_engine/cuda_test_device.h"

namespace nacre::engine::cuda {

struct Mode {
  CryptMode mode;
  CipherMode cpu_mode;
  const char* name;
};
inline constexpr Mode modes[] = {{CryptMode::ecb, CipherMode::ecb, "ecb"},
                                 {CryptMode::cbc, CipherMode::cbc, "cbc"},
                                 {CryptMode::ofb, CipherMode::ofb, "ofb"},
                                 {CryptMode::ctr, CipherMode::ctr, "ctr"}};

inline CryptDirection on_device(Direction direction) {
  return direction == Direction::encrypt ? CryptDirection::encrypt : CryptDirection::decrypt;
}

inline std::vector<RawKey> raw_keys(const std::vector<Bytes>& keys) {
  std::vector<RawKey> raw;
  for (const Bytes& key : keys) {
    raw.push_back({});
    std::copy(key.begin(), key.end(), raw.back().bytes);
    raw.back().cipher_key_size = static_cast<std::uint32_t>(key.size());
    raw.back().form = KeyForm::block_cipher;
  }
  return raw;
}

// A message with offsets where the task will have addresses.
struct PlannedMessage {
  std::size_t in, out, size;
  std::uint32_t key;
  CipherIv iv;
};

// The tasks of messages on the device, in an arena of the device.
struct PlannedTasks {
  std::vector<CryptTask> tasks;
  std::uint64_t total_bytes = 0;
  std::uint64_t size_max = 0;

  PlannedTasks(const std::vector<PlannedMessage>& messages, Byte* arena) {
    for (const PlannedMessage& message : messages) {
      CryptTask task = {arena + message.in, arena + message.out, message.size, message.key, {}};
      std::copy(message.iv.begin(), message.iv.end(), task.iv);
      tasks.push_back(task);
      total_bytes += message.size;
      size_max = std::max<std::uint64_t>(size_max, message.size);
    }
  }
  std::uint32_t count() const { return static_cast<std::uint32_t>(tasks.size()); }
};

// The arena after the cpu has processed the messages in it. cipher_of(key size): the cipher of a
// key.
template <typename CipherOf>
Bytes judge(CipherOf cipher_of, const Mode& mode, Direction direction, const Bytes& arena,
            const std::vector<PlannedMessage>& messages, const std::vector<Bytes>& keys) {
  Bytes expected = arena;
  for (const PlannedMessage& message : messages) {
    const MutableByteView out = MutableByteView(expected).subspan(message.out, message.size);
    if (message.key == no_key) {
      std::fill(out.begin(), out.end(), Byte{0});
      continue;
    }
    const Bytes& key = keys[message.key];
    CipherKey::create(cipher_of(key.size()), mode.cpu_mode, key)
        .value()
        ->crypt(direction, message.iv, ByteView(arena).subspan(message.in, message.size), out);
  }
  return expected;
}

// result: of a device; what judge() expects and nothing else.
inline void expect_bytes(const std::vector<PlannedMessage>& messages, const Bytes& expected,
                         const Bytes& result) {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const PlannedMessage& message = messages[i];
    ASSERT_TRUE(std::equal(&result[message.out], &result[message.out] + message.size,
                           &expected[message.out]))
        << "message " << i << " of " << message.size << " bytes at " << message.in << " to "
        << message.out;
  }
  EXPECT_TRUE(result == expected) << "bytes beside the messages changed";
}

}  // namespace nacre::engine::cuda

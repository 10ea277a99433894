// SPDX-License-Identifier: Apache-2.0
// A volume for files that are written and read by themselves, and what comes back of them.
#pragma once

#include <gtest/gtest.h>

#include <random>

#include "metadata/sealed_fs/frame_file.h"
#include "tests/metadata/database_fixture.h"

namespace nacre::tests {

inline constexpr std::string_view table_path = "db/000012.sst";
inline constexpr std::string_view log_path = "db/000007.log";

inline Bytes random_bytes(std::mt19937_64& random, std::size_t size) {
  Bytes bytes(size);
  for (Byte& byte : bytes)
    byte = static_cast<Byte>(random());
  return bytes;
}

inline std::shared_ptr<MemoryBacking> make_volume() {
  auto backing = MemoryBacking::create();
  EXPECT_TRUE(backing->make_directory("db"));
  EXPECT_TRUE(backing->sync_directory(""));
  return backing;
}

inline Result<Bytes> read_content(MemoryBacking& backing, std::string_view path, Byte id = 7) {
  NACRE_ASSIGN(metadata::FramesContent content,
               metadata::read_frames(backing, path, *make_keys(id)));
  return std::move(content.plain);
}

template <typename T>
ErrorCode code_of(const Result<T>& result) {
  EXPECT_FALSE(result);
  return result ? ErrorCode::cancelled : result.error().code;
}

inline bool is_verdict(ErrorCode code) {
  return code == ErrorCode::corrupt || code == ErrorCode::tampered;
}

}  // namespace nacre::tests

// SPDX-License-Identifier: Apache-2.0
// CRC-32 (IEEE 802.3, reflected, polynomial 0xEDB88320), as zlib's crc32(), and CRC-32C
// (Castagnoli, RFC 3720, reflected, polynomial 0x82F63B78). Thread-safe, no state.
#pragma once

#include <cstdint>

#include "gpu_engine/base/bytes.h"

namespace nacre::engine {

// The CRC of all bytes that crc covers, followed by these bytes. crc is 0 at the beginning.
// Computed by ISA-L.
std::uint32_t crc32(std::uint32_t crc, ByteView bytes);
std::uint32_t crc32c(std::uint32_t crc, ByteView bytes);

// The CRC of two pieces in a row, from the CRC of each piece and the second piece's size in bytes.
// 32 steps for each bit set in second_size.
std::uint32_t crc32_combine(std::uint32_t first, std::uint32_t second, std::uint64_t second_size);
std::uint32_t crc32c_combine(std::uint32_t first, std::uint32_t second, std::uint64_t second_size);

// The definitions, one byte a step (Sarwate 1988; for combining, one zero byte a step): the
// references that tests compare with.
std::uint32_t crc32_reference(std::uint32_t crc, ByteView bytes);
std::uint32_t crc32c_reference(std::uint32_t crc, ByteView bytes);
std::uint32_t crc32_combine_reference(std::uint32_t first, std::uint32_t second,
                                      std::uint64_t second_size);
std::uint32_t crc32c_combine_reference(std::uint32_t first, std::uint32_t second,
                                       std::uint64_t second_size);

}  // namespace nacre::engine

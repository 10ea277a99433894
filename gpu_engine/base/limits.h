// SPDX-License-Identifier: Apache-2.0
// Bounds that the formats on disk and the engine share. A bound in a format never grows without a
// version.
#pragma once

#include <cstdint>

namespace nacre {

inline constexpr std::uint32_t chunk_size_bytes_min = 4u << 10;
inline constexpr std::uint32_t chunk_size_bytes_max = 1u << 20;
inline constexpr std::uint32_t chunk_size_bytes_default = 64u << 10;

// A codec works on sub-blocks of at most this many plain bytes, each independent of the others.
inline constexpr std::uint32_t sub_block_size_bytes = 64u << 10;

// The longest message of an operation other than seal, unseal and reseal. Those take at most
// chunk_size_bytes_max plain bytes.
inline constexpr std::uint64_t message_size_bytes_max = 1ull << 30;

// Records that one write session may seal before a new salt must be drawn (128-bit block ciphers).
inline constexpr std::uint64_t session_record_count_max = 1ull << 32;

}  // namespace nacre

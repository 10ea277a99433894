// SPDX-License-Identifier: Apache-2.0
// Writes the blocks of a page.
#pragma once

#include <span>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/codec/gdeflate/block_codes.h"
#include "gpu_engine/codec/gdeflate/items.h"
#include "gpu_engine/codec/gdeflate/page_writer.h"

namespace nacre::engine::gdeflate {

inline constexpr std::size_t stored_size_max = (1u << stored_size_bits) - 1;

void write_block_head(PageWriter& page, bool is_last, BlockKind kind);

// Follows the head. At most stored_size_max bytes.
void write_stored(PageWriter& page, ByteView plain);
// Follows the head, and the description of the codes where there is one.
void write_items(PageWriter& page, const BlockCodes& codes, std::span<const Item> items);
// The same for literals alone.
void write_literals(PageWriter& page, const BlockCodes& codes, ByteView plain);

}  // namespace nacre::engine::gdeflate

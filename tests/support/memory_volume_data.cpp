// SPDX-License-Identifier: Apache-2.0
// Content of the volume in memory: blocks, where a block that is not there is a hole.
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "fs/volume/kernel_clock.h"
#include "tests/support/memory_volume.h"

namespace nacre::tests {

namespace {

constexpr std::uint64_t file_size_max = INT64_MAX;

// Calls visit(block index, offset in the block, size, bytes before) for each block that the range
// touches.
template <typename Visit>
void for_each_block(std::uint64_t block_size, std::uint64_t offset, std::uint64_t length,
                    Visit visit) {
  for (std::uint64_t done = 0; done < length;) {
    const std::uint64_t position = offset + done;
    const std::uint64_t within = position % block_size;
    const std::uint64_t size = std::min(block_size - within, length - done);
    visit(position / block_size, static_cast<std::size_t>(within), static_cast<std::size_t>(size),
          static_cast<std::size_t>(done));
    done += size;
  }
}

}  // namespace

void MemoryVolume::copy_out(const Node& node, std::uint64_t offset, MutableByteView out) {
  for_each_block(block_size_bytes, offset, out.size(),
                 [&](std::uint64_t index, std::size_t within, std::size_t size, std::size_t done) {
                   const auto block = node.blocks.find(index);
                   if (block == node.blocks.end()) {
                     std::memset(out.data() + done, 0, size);
                   } else {
                     std::memcpy(out.data() + done, block->second->data() + within, size);
                   }
                 });
}

void MemoryVolume::copy_in(Node& node, std::uint64_t offset, ByteView bytes) {
  for_each_block(block_size_bytes, offset, bytes.size(),
                 [&](std::uint64_t index, std::size_t within, std::size_t size, std::size_t done) {
                   std::unique_ptr<Block>& block = node.blocks[index];
                   if (!block) {
                     block = size == block_size_bytes ? std::make_unique_for_overwrite<Block>()
                                                      : std::make_unique<Block>();
                   }
                   std::memcpy(block->data() + within, bytes.data() + done, size);
                 });
}

void MemoryVolume::zero(Node& node, std::uint64_t offset, std::uint64_t length) {
  // Only existing blocks are visited, since the range may be far longer than they are.
  const std::uint64_t end = offset + length;
  auto block = node.blocks.lower_bound(offset / block_size_bytes);
  while (block != node.blocks.end() && block->first * block_size_bytes < end) {
    const std::uint64_t begin = block->first * block_size_bytes;
    const std::uint64_t from = std::max(begin, offset) - begin;
    const std::uint64_t to = std::min(begin + block_size_bytes, end) - begin;
    if (from == 0 && to == block_size_bytes) {
      block = node.blocks.erase(block);
      continue;
    }
    std::memset(block->second->data() + from, 0, to - from);
    ++block;
  }
}

void MemoryVolume::resize(Node& node, std::uint64_t size) {
  std::lock_guard lock(node.data_mutex);
  // Bytes that are cut off must never come back: the last block is filled with zeros, and later
  // blocks are removed.
  if (size < node.attributes.size) zero(node, size, file_size_max - size);
  node.attributes.size = size;
}

Result<std::size_t> MemoryVolume::read(InodeNumber inode, std::uint64_t offset,
                                       MutableByteView out) {
  std::function<Result<>()> before_read;
  {
    std::shared_lock lock(tree_);
    NACRE_ASSIGN(Node * node, find(inode));
    before_read = node->before_read;
  }
  if (before_read) NACRE_TRY(before_read());  // without the lock: it may take its time
  std::shared_lock lock(tree_);
  NACRE_ASSIGN(Node * node, find(inode));
  std::lock_guard data_lock(node->data_mutex);
  node->attributes.accessed = fs::kernel_now();
  if (offset >= node->attributes.size) return 0;
  const std::uint64_t size = std::min<std::uint64_t>(out.size(), node->attributes.size - offset);
  copy_out(*node, offset, out.first(size));
  return size;
}

bool MemoryVolume::take_room(std::uint64_t bytes) {
  const auto wanted = static_cast<std::int64_t>(bytes);
  std::int64_t room = room_bytes_;
  do {
    if (room < wanted) return false;
  } while (!room_bytes_.compare_exchange_weak(room, room - wanted));
  return true;
}

Result<std::uint64_t> MemoryVolume::check_write(InodeNumber inode, std::uint64_t bytes,
                                                std::uint64_t kept_bytes) {
  std::shared_lock lock(tree_);
  NACRE_ASSIGN(Node * node, find(inode));
  std::lock_guard data_lock(node->data_mutex);
  if ((node->attributes.flags & metadata::inode_flag_immutable) != 0) {
    return fail(ErrorCode::not_permitted);
  }
  if (room_bytes() < kept_bytes + bytes) return fail(ErrorCode::no_space);
  return bytes;
}

Result<> MemoryVolume::write(InodeNumber inode, std::uint64_t offset, ByteView bytes,
                             fs::WriteFlags flags) {
  std::function<Result<>()> before_write;
  {
    std::shared_lock lock(tree_);
    NACRE_ASSIGN(Node * node, find(inode));
    before_write = node->before_write;
  }
  if (before_write) NACRE_TRY(before_write());  // without the lock: it may take its time
  NACRE_TRY(drop_capability(inode));
  std::shared_lock lock(tree_);
  NACRE_ASSIGN(Node * node, find(inode));
  if (bytes.size() > file_size_max || offset > file_size_max - bytes.size()) {
    return fail(ErrorCode::too_big);
  }
  std::lock_guard data_lock(node->data_mutex);
  Attributes& attributes = node->attributes;
  if ((attributes.flags & metadata::inode_flag_immutable) != 0) {
    return fail(ErrorCode::not_permitted);
  }
  if ((attributes.flags & metadata::inode_flag_append) != 0 && offset < attributes.size) {
    // The kernel writes back whole pages, so the same bytes may be written again.
    Bytes there(std::min<std::uint64_t>(bytes.size(), attributes.size - offset));
    copy_out(*node, offset, there);
    if (!std::equal(there.begin(), there.end(), bytes.begin())) {
      return fail(ErrorCode::not_permitted);
    }
  }
  if (!take_room(bytes.size())) return fail(ErrorCode::no_space);
  copy_in(*node, offset, bytes);
  attributes.size = std::max<std::uint64_t>(attributes.size, offset + bytes.size());
  if (!kernel_cache_.is_set()) attributes.modified = attributes.changed = fs::kernel_now();
  clear_set_id(*node, flags.clear_set_id);
  return {};
}

Result<> MemoryVolume::allocate(InodeNumber inode, AllocateMode mode, std::uint64_t offset,
                                std::uint64_t length) {
  std::shared_lock lock(tree_);
  NACRE_ASSIGN(Node * node, find(inode));
  std::lock_guard data_lock(node->data_mutex);
  Attributes& attributes = node->attributes;
  if ((attributes.flags & metadata::inode_flag_immutable) != 0) {
    return fail(ErrorCode::not_permitted);
  }
  const bool zeroes = mode == AllocateMode::punch_hole || mode == AllocateMode::zero ||
                      mode == AllocateMode::zero_keep_size;
  const bool grows = mode == AllocateMode::allocate || mode == AllocateMode::zero;
  if (zeroes) zero(*node, offset, length);
  if (grows) attributes.size = std::max(attributes.size, offset + length);
  if (!kernel_cache_.is_set()) attributes.modified = attributes.changed = fs::kernel_now();
  return {};
}

Result<std::uint64_t> MemoryVolume::seek(InodeNumber inode, std::uint64_t offset, SeekWhat what) {
  std::shared_lock lock(tree_);
  NACRE_ASSIGN(Node * node, find(inode));
  std::lock_guard data_lock(node->data_mutex);
  const std::uint64_t size = node->attributes.size;
  if (offset >= size) return fail(ErrorCode::no_position);
  if (what == SeekWhat::data) {
    const auto block = node->blocks.lower_bound(offset / block_size_bytes);
    if (block == node->blocks.end()) return fail(ErrorCode::no_position);
    const std::uint64_t data = std::max(offset, block->first * block_size_bytes);
    if (data >= size) return fail(ErrorCode::no_position);
    return data;
  }
  std::uint64_t index = offset / block_size_bytes;
  while (node->blocks.contains(index))
    ++index;
  return std::min(size, std::max(offset, index * block_size_bytes));
}

Result<std::uint64_t> MemoryVolume::copy_range(InodeNumber from, std::uint64_t from_offset,
                                               InodeNumber to, std::uint64_t to_offset,
                                               std::uint64_t length) {
  std::uint64_t copied = 0;
  Bytes piece(block_size_bytes);
  while (copied < length) {
    const auto wanted =
        static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), length - copied));
    NACRE_ASSIGN(const std::size_t size,
                 read(from, from_offset + copied, MutableByteView(piece).first(wanted)));
    if (size == 0) break;
    NACRE_TRY(write(to, to_offset + copied, ByteView(piece).first(size), {}));
    copied += size;
  }
  return copied;
}

}  // namespace nacre::tests

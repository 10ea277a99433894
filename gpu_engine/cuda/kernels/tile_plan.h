// SPDX-License-Identifier: Apache-2.0
// Which warp processes which bytes, for messages of different lengths. The plan is made on the
// device, because sizes may be known only there.
//
// A message is cut into one or more units. The units of all messages are numbered consecutively,
// and a tile is units_per_tile consecutive units. first_units[i] is the number of message i's first
// unit, and first_units[count] the count of all units. tile_messages[t] is the message of tile t's
// first unit. A warp finds the messages of the other units of a tile without a search:
// message_of_unit() in tile_plan.cuh.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace nacre::engine::cuda {

struct TilePlan {
  std::uint32_t* first_units;
  std::uint32_t* tile_messages;
  std::uint32_t message_count;
  std::uint32_t units_per_tile;
};

// Hands out arrays of a workspace one after the other, each aligned to 256 bytes if base is. With
// base nullptr it only counts how many bytes are needed.
class WorkspaceCursor {
 public:
  explicit WorkspaceCursor(void* base) : base_(static_cast<char*>(base)) {}

  template <typename T>
  T* take(std::size_t count) {
    char* const piece = base_ == nullptr ? nullptr : base_ + used_;
    used_ += (count * sizeof(T) + alignment - 1) / alignment * alignment;
    return reinterpret_cast<T*>(piece);
  }
  std::size_t used() const { return used_; }

 private:
  static constexpr std::size_t alignment = 256;
  char* base_;
  std::size_t used_ = 0;
};

struct TilePlanWorkspace {
  TilePlan plan;
  void* scan;
  std::size_t scan_size;
  std::uint64_t tiles_max;
};

// Takes room for a plan of count messages of at most total_bytes in all. overhead_bytes: the most
// by which a message's units exceed its bytes, apart from rounding up to a unit.
TilePlanWorkspace take_tile_plan(WorkspaceCursor& cursor, std::uint32_t count,
                                 std::uint64_t total_bytes, std::uint32_t overhead_bytes,
                                 std::uint32_t unit_bytes, std::uint32_t units_per_tile);

// The second part of make_tile_plan() (tile_plan.cuh). Before, plan.first_units[i] is the count of
// message i's units, and plan.first_units[count] is 0; after it, the plan is complete.
cudaError_t add_up_and_name_tiles(const TilePlanWorkspace& workspace, cudaStream_t stream);

}  // namespace nacre::engine::cuda

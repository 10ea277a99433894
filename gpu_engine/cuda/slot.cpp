// SPDX-License-Identifier: Apache-2.0
// Slots; see the header.
#include "gpu_engine/cuda/slot.h"

#include <algorithm>

namespace nacre::engine::cuda {
namespace {

constexpr std::size_t alignment = 256;

}  // namespace

Result<Slot> Slot::create(std::size_t factor) {
  Slot slot;
  NACRE_ASSIGN(slot.stream_, Stream::create());
  NACRE_ASSIGN(slot.ended_, Event::create());
  NACRE_ASSIGN(slot.memory_, DeviceMemory::allocate(factor * slot_size_bytes));
  NACRE_ASSIGN(slot.upload_.host, allocate_pinned_arena(factor * upload_size_bytes));
  NACRE_ASSIGN(slot.upload_.device, DeviceMemory::allocate(factor * upload_size_bytes));
  NACRE_ASSIGN(slot.download_.host, allocate_pinned_arena(factor * download_size_bytes));
  NACRE_ASSIGN(slot.download_.device, DeviceMemory::allocate(factor * download_size_bytes));
  return slot;
}

void Slot::begin() {
  used_ = 0;
  begin_upload();
  download_.used = 0;
}

Result<Byte*> Slot::take_bytes(std::size_t size_bytes) {
  const std::size_t offset = round_up(used_, alignment);
  if (offset > memory_.size() || size_bytes > memory_.size() - offset)
    return fail(ErrorCode::out_of_memory, "batch is larger than a slot of the device");
  used_ = offset + size_bytes;
  return memory_.data() + offset;
}

Result<std::size_t> Slot::reserve(MirroredMemory& memory, std::size_t size_bytes) {
  const std::size_t offset = round_up(memory.used, alignment);
  if (offset > memory.host.size() || size_bytes > memory.host.size() - offset)
    return fail(ErrorCode::out_of_memory, "batch needs more descriptions than a slot has room for");
  memory.used = offset + size_bytes;
  return offset;
}

Result<> Slot::upload() {
  const std::size_t from = uploaded_;
  if (upload_.used == from) return {};
  uploaded_ = upload_.used;
  return check(cudaMemcpyAsync(upload_.device.data() + from, upload_.host.data() + from,
                               upload_.used - from, cudaMemcpyHostToDevice, stream()),
               "copying a batch's descriptions to the device");
}

Result<> Slot::finish() {
  if (download_.used > 0) {
    NACRE_TRY(check(cudaMemcpyAsync(download_.host.data(), download_.device.data(), download_.used,
                                    cudaMemcpyDeviceToHost, stream()),
                    "copying a batch's results from the device"));
  }
  return wait();
}

Result<> Slot::wait() {
  NACRE_TRY(check(cudaEventRecord(ended_.get(), stream()), "marking the end of a batch"));
  return check(cudaEventSynchronize(ended_.get()), "waiting for the device");
}

Result<Byte*> Slot::staging(Arena& arena, std::size_t size_bytes) {
  if (arena.size() < size_bytes) {
    NACRE_ASSIGN(Arena grown, allocate_pinned_arena(round_up(size_bytes, std::size_t{8} << 20)));
    arena = std::move(grown);
  }
  return arena.data();
}

}  // namespace nacre::engine::cuda

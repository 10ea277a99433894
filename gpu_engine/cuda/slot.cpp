// SPDX-License-Identifier: Apache-2.0
#include "gpu_engine/cuda/slot.h"

#include <algorithm>
#include <utility>

namespace nacre::engine::cuda {

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
  staging_in_.used = staging_out_.used = 0;
}

Result<Byte*> Slot::take_bytes(std::size_t size_bytes) {
  const std::size_t offset = round_up(used_, place_alignment);
  if (offset > memory_.size() || size_bytes > memory_.size() - offset)
    return fail(ErrorCode::out_of_memory, "batch is larger than a slot of the device");
  used_ = offset + size_bytes;
  return memory_.data() + offset;
}

Byte* Slot::next_place(Byte* end) {
  const auto address = reinterpret_cast<std::uintptr_t>(end);
  return end + (round_up(address, std::uintptr_t{place_alignment}) - address);
}

Result<std::size_t> Slot::reserve(MirroredMemory& memory, std::size_t size_bytes) {
  const std::size_t offset = round_up(memory.used, place_alignment);
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
  const auto patient_until = std::chrono::steady_clock::now() + awake_wait_max;
  while (std::chrono::steady_clock::now() < patient_until &&
         cudaEventQuery(ended_.get()) == cudaErrorNotReady) {
    // Clears cudaErrorNotReady, or the next launch would report it.
    static_cast<void>(cudaGetLastError());
  }
  return check(cudaEventSynchronize(ended_.get()), "waiting for the device");
}

Result<> Slot::wipe_device() {
  for (const auto& [data, size] :
       {std::pair(memory_.data(), used_), std::pair(upload_.device.data(), upload_.used),
        std::pair(download_.device.data(), download_.used)}) {
    if (size == 0) continue;
    NACRE_TRY(check(cudaMemsetAsync(data, 0, size, stream()), "wiping a batch's memory"));
  }
  return wait();
}

void Slot::wipe_host() {
  wipe({upload_.host.data(), upload_.used});
  wipe({download_.host.data(), download_.used});
  wipe({staging_in_.memory.data(), staging_in_.used});
  wipe({staging_out_.memory.data(), staging_out_.used});
}

void Slot::forget() {
  used_ = memory_.size();
  for (MirroredMemory* const memory : {&upload_, &download_})
    memory->used = memory->host.size();
  for (Staging* const staging : {&staging_in_, &staging_out_})
    staging->used = staging->memory.size();
  static_cast<void>(wipe_device());
  wipe_host();
  show_wiped(memory_.data(), memory_.size(), true);
  for (const MirroredMemory* const memory : {&upload_, &download_}) {
    show_wiped(memory->device.data(), memory->device.size(), true);
    show_wiped(memory->host.data(), memory->host.size(), false);
  }
  for (const Staging* const staging : {&staging_in_, &staging_out_})
    show_wiped(staging->memory.data(), staging->memory.size(), false);
  begin();
}

Result<Byte*> Slot::staging(Staging& staging, std::size_t size_bytes) {
  if (staging.memory.size() < size_bytes) {
    NACRE_ASSIGN(Arena grown, allocate_pinned_arena(round_up(size_bytes, std::size_t{8} << 20)));
    staging.memory = std::move(grown);
  }
  staging.used = std::max(staging.used, size_bytes);
  return staging.memory.data();
}

}  // namespace nacre::engine::cuda

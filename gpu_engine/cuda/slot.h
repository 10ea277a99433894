// SPDX-License-Identifier: Apache-2.0
// A slot has everything that one batch in flight needs on one device: a stream, an event, device
// memory, which is handed out from the front, and page-locked memory for what the host sends to the
// device and gets from it. It is made once and used for one batch after the other. Not thread-safe;
// its device must be current on the calling thread.
#pragma once

#include <cstring>
#include <span>

#include "gpu_engine/cuda/runtime.h"
#include "gpu_engine/cuda/tuning.h"

namespace nacre::engine::cuda {

// An array in the host's memory and its copy in the device's memory. Owned by the slot.
template <typename T>
struct Mirrored {
  std::span<T> host;
  T* device = nullptr;
};

class Slot {
 public:
  // Makes a slot on the current device, for batches of factor times the usual size. Errors:
  // out_of_memory, io.
  static Result<Slot> create(std::size_t factor = 1);

  cudaStream_t stream() const { return stream_.get(); }

  // Begins a new batch: all memory can be handed out again. Nothing of the last batch may be
  // running.
  void begin();

  // Returns device memory, not cleared, aligned to 256 bytes, which is valid until begin(). Errors:
  // out_of_memory when the slot has no more; the sizes in tuning.h should exclude that.
  Result<Byte*> take_bytes(std::size_t size_bytes);
  template <typename T>
  Result<T*> take(std::size_t count) {
    NACRE_ASSIGN(Byte * bytes, take_bytes(count * sizeof(T)));
    return reinterpret_cast<T*>(bytes);
  }

  // Takes device memory for count places of size_bytes in all. The first begins at the result, each
  // other one at next_place() of the end of the place before: as if take_bytes() gave each place.
  Result<Byte*> take_row(std::size_t count, std::size_t size_bytes) {
    return take_bytes(size_bytes + count * place_alignment);
  }
  static Byte* next_place(Byte* end);

  // An array for the host to fill. It is zeroed on the host; the device sees it after upload().
  template <typename T>
  Result<Mirrored<T>> add_upload(std::size_t count) {
    NACRE_ASSIGN(const Mirrored<T> mirrored, add_upload_unset<T>(count));
    std::memset(static_cast<void*>(mirrored.host.data()), 0, count * sizeof(T));
    return mirrored;
  }
  // The same, but not zeroed: the caller must set every byte, since bytes of an earlier batch are
  // there.
  template <typename T>
  Result<Mirrored<T>> add_upload_unset(std::size_t count) {
    return add_mirrored<T>(upload_, count);
  }
  // An array for the device to fill. It is zeroed on the host; the host sees it after finish().
  template <typename T>
  Result<Mirrored<T>> add_download(std::size_t count) {
    NACRE_ASSIGN(const Mirrored<T> mirrored, add_mirrored<T>(download_, count));
    std::memset(static_cast<void*>(mirrored.host.data()), 0, count * sizeof(T));
    return mirrored;
  }

  // Reuses the memory of everything that was added for upload; the device must no longer need it.
  void begin_upload() { upload_.used = uploaded_ = 0; }
  // Starts the copy of what was added since the last upload().
  Result<> upload();
  // Copies the downloads, and waits for everything on the stream.
  Result<> finish();
  // Waits for everything on the stream.
  Result<> wait();

  // Wipes the device memory that the batch has used, and waits. For batches whose secrets must not
  // outlive them.
  Result<> wipe_device();
  // Wipes the host memory that the batch has used; the device must no longer need it.
  void wipe_host();
  // Wipes all memory of the slot, where earlier batches have left keys and plain bytes. Only
  // between batches. The memory of a lost device cannot be wiped.
  void forget();

  // Page-locked memory of the host, for payloads whose memory is not page-locked. It is allocated
  // at the first use. Each call returns the same memory, which is valid until the next call.
  Result<Byte*> staging_in(std::size_t size_bytes) { return staging(staging_in_, size_bytes); }
  Result<Byte*> staging_out(std::size_t size_bytes) { return staging(staging_out_, size_bytes); }

 private:
  static constexpr std::size_t place_alignment = 256;

  struct Staging {
    Arena memory;
    std::size_t used = 0;  // the largest size asked for since begin()
  };
  struct MirroredMemory {
    Arena host;
    DeviceMemory device;
    std::size_t used = 0;
  };

  static Result<Byte*> staging(Staging& staging, std::size_t size_bytes);
  static Result<std::size_t> reserve(MirroredMemory& memory, std::size_t size_bytes);

  template <typename T>
  Result<Mirrored<T>> add_mirrored(MirroredMemory& memory, std::size_t count) {
    NACRE_ASSIGN(const std::size_t offset, reserve(memory, count * sizeof(T)));
    return Mirrored<T>{{reinterpret_cast<T*>(memory.host.data() + offset), count},
                       reinterpret_cast<T*>(memory.device.data() + offset)};
  }

  Stream stream_;
  Event ended_;
  DeviceMemory memory_;
  std::size_t used_ = 0;
  MirroredMemory upload_;
  std::size_t uploaded_ = 0;  // how many of the upload_.used bytes upload() has copied
  MirroredMemory download_;
  Staging staging_in_;
  Staging staging_out_;
};

}  // namespace nacre::engine::cuda

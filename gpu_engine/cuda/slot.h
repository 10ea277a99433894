// SPDX-License-Identifier: Apache-2.0
// A slot is everything that one batch in flight needs on one device, made once and used again and
// again: a stream, an event, device memory handed out from the front, and page-locked memory for
// what the host tells the device and hears from it. Belongs to one thread.
#pragma once

#include <cstring>
#include <span>

#include "gpu_engine/cuda/runtime.h"
#include "gpu_engine/cuda/tuning.h"

namespace nacre::engine::cuda {

// An array that has a place on the host and one on the device.
template <typename T>
struct Mirrored {
  std::span<T> host;
  T* device = nullptr;
};

class Slot {
 public:
  // On the current device, for batches of factor times the usual size. Errors: out_of_memory.
  static Result<Slot> create(std::size_t factor = 1);

  cudaStream_t stream() const { return stream_.get(); }

  // Forgets the last batch: its memory can be handed out again.
  void begin();

  // Device memory, not cleared, aligned to 256 bytes. out_of_memory when the batch asks for more
  // than a slot has, which the sizes in tuning.h exclude.
  Result<Byte*> take_bytes(std::size_t size_bytes);
  template <typename T>
  Result<T*> take(std::size_t count) {
    NACRE_ASSIGN(Byte * bytes, take_bytes(count * sizeof(T)));
    return reinterpret_cast<T*>(bytes);
  }

  // Room for count places that take size_bytes in all. Each place begins at next_place() of the end
  // of the one before it, so that they lie as if take_bytes() had given them.
  Result<Byte*> take_row(std::size_t count, std::size_t size_bytes) {
    return take_bytes(size_bytes + count * place_alignment);
  }
  static Byte* next_place(Byte* end);

  // Zeroed on the host; the device sees it after upload().
  template <typename T>
  Result<Mirrored<T>> add_upload(std::size_t count) {
    NACRE_ASSIGN(const Mirrored<T> mirrored, add_upload_unset<T>(count));
    std::memset(static_cast<void*>(mirrored.host.data()), 0, count * sizeof(T));
    return mirrored;
  }
  // Holds an earlier batch's bytes, so the caller must set all of it.
  template <typename T>
  Result<Mirrored<T>> add_upload_unset(std::size_t count) {
    return add_mirrored<T>(upload_, count);
  }
  // The host sees it after finish().
  template <typename T>
  Result<Mirrored<T>> add_download(std::size_t count) {
    NACRE_ASSIGN(const Mirrored<T> mirrored, add_mirrored<T>(download_, count));
    std::memset(static_cast<void*>(mirrored.host.data()), 0, count * sizeof(T));
    return mirrored;
  }

  // Forgets what was added for upload so far, which the device no longer needs.
  void begin_upload() { upload_.used = uploaded_ = 0; }
  // Copies what was added since the last upload.
  Result<> upload();
  // Copies the downloads and waits for everything on the stream.
  Result<> finish();
  // Waits for everything on the stream.
  Result<> wait();

  // Wipes the device memory that the batch has used, and waits. For batches whose secrets must not
  // stay after them.
  Result<> wipe_device();
  // Wipes the host memory that the batch has used, which the device no longer needs.
  void wipe_host();
  // Between batches: wipes all of both memories, since earlier batches left keys and plain bytes
  // there. Nobody can reach the memory of a lost device.
  void forget();

  // Page-locked memory of the host, for callers whose own memory is not; made at the first use.
  Result<Byte*> staging_in(std::size_t size_bytes) { return staging(staging_in_, size_bytes); }
  Result<Byte*> staging_out(std::size_t size_bytes) { return staging(staging_out_, size_bytes); }

 private:
  static constexpr std::size_t place_alignment = 256;

  struct Staging {
    Arena memory;
    std::size_t used = 0;  // the most since begin()
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
  std::size_t uploaded_ = 0;  // how much of upload_.used is on the stream
  MirroredMemory download_;
  Staging staging_in_;
  Staging staging_out_;
};

}  // namespace nacre::engine::cuda

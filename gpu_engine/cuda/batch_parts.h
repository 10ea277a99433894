// SPDX-License-Identifier: Apache-2.0
// What batches of all operations share: copies of inputs to the device and of outputs from it,
// keys, pieces of codecs, and their launches. All functions add work to the slot's stream, and wait
// for it only if they say so. Device memory belongs to the slot until its next begin(). Errors are
// the device's: out_of_memory or io. May throw std::bad_alloc.
#pragma once

#include <vector>

#include "gpu_engine/base/limits.h"
#include "gpu_engine/cuda/batch_run.h"
#include "gpu_engine/cuda/kernels/checksum.h"
#include "gpu_engine/cuda/kernels/keys.h"
#include "gpu_engine/cuda/kernels/record_tasks.h"
#include "gpu_engine/cuda/piece_codecs.h"

namespace nacre::engine::cuda {

struct InputRange {
  std::uint64_t offset;  // into the payload's input
  std::uint64_t size;
};

// Copies ranges of the payload's input to the device, and returns their addresses there. Ranges
// that are close to each other are one copy. Their offsets modulo 16 stay the same.
Result<std::vector<const Byte*>> copy_in(const BatchRun& run,
                                         const std::vector<InputRange>& ranges);
// Copies the inputs of all messages.
Result<std::vector<const Byte*>> copy_in_messages(const BatchRun& run);

// Takes device memory of sizes[i] bytes for each message i of the batch.
Result<std::vector<Byte*>> take_places(const BatchRun& run,
                                       const std::vector<std::uint32_t>& sizes);

// The keys that the batch's messages use, on the device. expand() launches expand_keys().
class BatchKeys {
 public:
  static Result<BatchKeys> add(const BatchRun& run);
  // The index in table() of the key with this index in the payload.
  std::uint32_t place(std::uint32_t key_index) const { return places_[key_index]; }
  Result<> expand(const BatchRun& run) const;
  KeyTable table() const { return table_; }

 private:
  std::vector<std::uint32_t> places_;
  Mirrored<RawKey> raw_;
  KeyDirections directions_ = KeyDirections::both;
  KeyTable table_ = {};
};

// Copies outputs from the device to the payload, and waits until everything has arrived and the
// stream is idle. from[i] and sizes[i]: message i's output; size 0 for a message that is refused.
// Outputs that are contiguous on both sides are one copy. If there are many separate outputs, a
// kernel writes them to the host's memory; if they are also short, the host copies them from the
// slot's staging memory. The payload's memory is written directly if devices can reach it.
// meanwhile, if set, is called before the wait.
Result<> copy_out(const BatchRun& run, const std::vector<const Byte*>& from,
                  const std::vector<std::uint32_t>& sizes,
                  const std::function<void()>& meanwhile = nullptr);

// Many short, separate outputs: all are copied to staging memory before the host knows which of
// them are good, so that one wait is enough. Empty (false) if copy_out() would be faster.
class StagedOutputs {
 public:
  static Result<StagedOutputs> add(const BatchRun& run, const std::vector<const Byte*>& from,
                                   const std::vector<std::uint32_t>& sizes);
  explicit operator bool() const { return staging_ != nullptr; }
  // Copies from staging memory to the payload, after the wait. Outputs of size 0 are left out.
  void copy_out(const BatchRun& run, const std::vector<const Byte*>& from,
                const std::vector<std::uint32_t>& sizes) const;

 private:
  const Byte* staging_ = nullptr;
  const Byte* first_ = nullptr;  // on the device
};

// The number of pieces into which plain bytes of this size are cut.
inline std::uint32_t piece_count_of(std::uint64_t plain_size) {
  return static_cast<std::uint32_t>((plain_size + sub_block_size_bytes - 1) / sub_block_size_bytes);
}

// Makes the codec streams of plain bytes on the device. Stream i is written to out[i].
class BatchStreams {
 public:
  // plain[i], out[i]: device memory. size_max[i]: a stream that would be longer is replaced by the
  // plain bytes.
  static Result<BatchStreams> add(const BatchRun& run, const std::vector<const Byte*>& plain,
                                  const std::vector<Byte*>& out,
                                  const std::vector<std::uint32_t>& size_max);
  Result<> encode(const BatchRun& run) const;  // later kernels may use sizes()
  Result<> write(const BatchRun& run) const;   // after encode()
  const StreamTask* tasks() const { return streams_.device; }
  const StreamSize* sizes() const { return sizes_.device; }
  // On the host, after the wait.
  const StreamSize& size_after(std::size_t place) const { return sizes_.host[place]; }

 private:
  Mirrored<StreamTask> streams_;
  Mirrored<StreamSize> sizes_;
  Mirrored<CodecTask> pieces_;
  Mirrored<PieceOwner> owners_;
  const PieceCodec* codec_ = nullptr;    // nullptr: the streams are the plain bytes
  CodecTask* sampled_pieces_ = nullptr;  // automatic: the pieces, of which the sample selects some
  std::uint32_t* code_sizes_ = nullptr;
  Byte* workspace_ = nullptr;
};

// Decodes streams on the device to plain bytes on the device.
class BatchPlains {
 public:
  // plain_max[i]: how many plain bytes message i may have. codec: that of all streams, or automatic
  // if only the device knows their codecs.
  static Result<BatchPlains> add(const BatchRun& run, const std::vector<std::uint32_t>& plain_max,
                                 Codec codec);
  // cuts: an array on the device. After the wait is_valid_after() and size_after() have the
  // results.
  Result<> decode(const BatchRun& run, const CutTask* cuts) const;
  Byte* plain(std::size_t place) const { return plain_[place]; }
  std::uint32_t first_piece(std::size_t place) const { return first_piece_[place]; }
  std::uint32_t piece_max(std::size_t place) const {
    return first_piece_[place + 1] - first_piece_[place];
  }
  bool is_valid_after(std::size_t place) const { return valid_.host[place] != 0; }
  std::uint32_t size_after(std::size_t place) const { return sizes_.host[place]; }

 private:
  std::vector<Byte*> plain_;
  std::vector<std::uint32_t> first_piece_;  // one entry more than messages
  explicit BatchPlains(Codec codec) : codecs_(codec) {}

  DecodedCodecs codecs_;
  DecodeArrays arrays_ = {};
  CodecTask* copies_ = nullptr;
  Byte* workspace_ = nullptr;
  Mirrored<std::uint32_t> valid_;
  Mirrored<std::uint32_t> sizes_;
};

// Device memory for launchers that take a workspace, one after the other.
struct Workspace {
  Byte* data = nullptr;
  std::uint64_t total_bytes = 0;
};
// Enough for aead, crypt or checksum with one task for each message and total_bytes in all.
Result<Workspace> take_workspace(const BatchRun& run, std::uint64_t total_bytes);

}  // namespace nacre::engine::cuda

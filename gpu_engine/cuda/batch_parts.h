// SPDX-License-Identifier: Apache-2.0
// What batches of all operations share: copies of inputs to the device and of outputs from it,
// keys, pieces of codecs, and the launches that follow from them.
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

// Copies ranges of the payload's input to the device, neighbours in one copy, and returns where
// each range lies there. The alignment modulo 16 stays that of the host.
Result<std::vector<const Byte*>> copy_in(const BatchRun& run,
                                         const std::vector<InputRange>& ranges);
// Copies the inputs of all messages.
Result<std::vector<const Byte*>> copy_in_messages(const BatchRun& run);

// Places in device memory of the given size for each message.
Result<std::vector<Byte*>> take_places(const BatchRun& run,
                                       const std::vector<std::uint32_t>& sizes);

// The keys that the batch names, on the device. expand() launches expand_keys().
class BatchKeys {
 public:
  static Result<BatchKeys> add(const BatchRun& run);
  // The index in table() of the payload's key.
  std::uint32_t place(std::uint32_t key_index) const { return places_[key_index]; }
  Result<> expand(const BatchRun& run) const;
  KeyTable table() const { return table_; }

 private:
  std::vector<std::uint32_t> places_;
  Mirrored<RawKey> raw_;
  KeyDirections directions_ = KeyDirections::both;
  KeyTable table_ = {};
};

// Copies outputs from the device: straight to the payload's memory where devices reach it, else
// through the slot's staging memory. from[i] and sizes[i]: message i's output, or nothing for
// messages that are refused. Neighbours go in one copy. Where few are neighbours, a kernel writes
// the host's memory; where outputs are also short, the host copies them from staging memory.
// Returns when everything has arrived, and the stream has nothing left to do. meanwhile, if set, is
// called before the wait.
Result<> copy_out(const BatchRun& run, const std::vector<const Byte*>& from,
                  const std::vector<std::uint32_t>& sizes,
                  const std::function<void()>& meanwhile = nullptr);

// Short outputs that lie apart are copied to staging memory before anybody knows which of them are
// good, so that one wait is enough. Nothing where copy_out() is faster.
class StagedOutputs {
 public:
  static Result<StagedOutputs> add(const BatchRun& run, const std::vector<const Byte*>& from,
                                   const std::vector<std::uint32_t>& sizes);
  explicit operator bool() const { return staging_ != nullptr; }
  // Called after the wait. Outputs of size 0 are left out.
  void copy_out(const BatchRun& run, const std::vector<const Byte*>& from,
                const std::vector<std::uint32_t>& sizes) const;

 private:
  const Byte* staging_ = nullptr;
  const Byte* first_ = nullptr;  // on the device
};

// The number of pieces of a message that is coded or decoded.
inline std::uint32_t piece_count_of(std::uint64_t plain_size) {
  return static_cast<std::uint32_t>((plain_size + sub_block_size_bytes - 1) / sub_block_size_bytes);
}

// The streams of the batch's plain inputs, each of which is written to out[i] on the device.
class BatchStreams {
 public:
  // size_max[i]: when the stream would be longer, it is the plain bytes.
  static Result<BatchStreams> add(const BatchRun& run, const std::vector<const Byte*>& plain,
                                  const std::vector<Byte*>& out,
                                  const std::vector<std::uint32_t>& size_max);
  Result<> encode(const BatchRun& run) const;  // kernels that follow may use sizes()
  Result<> write(const BatchRun& run) const;
  const StreamTask* tasks() const { return streams_.device; }
  const StreamSize* sizes() const { return sizes_.device; }
  const StreamSize& size_after(std::size_t place) const { return sizes_.host[place]; }

 private:
  Mirrored<StreamTask> streams_;
  Mirrored<StreamSize> sizes_;
  Mirrored<CodecTask> pieces_;
  Mirrored<PieceOwner> owners_;
  const PieceCodec* codec_ = nullptr;    // none: the streams are the plain bytes
  CodecTask* sampled_pieces_ = nullptr;  // automatic: the pieces that the sample leaves to be coded
  std::uint32_t* code_sizes_ = nullptr;
  Byte* workspace_ = nullptr;
};

// The reverse: from streams on the device to plain bytes on the device.
class BatchPlains {
 public:
  // plain_max[i]: the room for message i's plain bytes. codec: of all streams; automatic where only
  // the device knows it.
  static Result<BatchPlains> add(const BatchRun& run, const std::vector<std::uint32_t>& plain_max,
                                 Codec codec);
  // cuts: on the device. After the wait each message has its verdict and its size.
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

// Memory for kernels that take workspaces.
struct Workspace {
  Byte* data = nullptr;
  std::uint64_t total_bytes = 0;
};
// For count tasks with total_bytes in all; enough for aead, crypt or checksum.
Result<Workspace> take_workspace(const BatchRun& run, std::uint64_t total_bytes);

}  // namespace nacre::engine::cuda

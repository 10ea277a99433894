// SPDX-License-Identifier: Apache-2.0
// BatchStreams and BatchPlains: encode and decode the pieces of a batch's streams.
#include <algorithm>

#include "gpu_engine/base/limits.h"
#include "gpu_engine/cuda/batch_parts.h"
#include "gpu_engine/cuda/kernels/stream_tasks.h"

namespace nacre::engine::cuda {
namespace {

const PieceCodec* find_piece_codec(Codec codec) {
  const DeviceCodec* const found = find_device_codec(codec);
  return found == nullptr ? nullptr : &piece_codecs[found - device_codecs.data()];
}

}  // namespace

Result<BatchStreams> BatchStreams::add(const BatchRun& run, const std::vector<const Byte*>& plain,
                                       const std::vector<Byte*>& out,
                                       const std::vector<std::uint32_t>& size_max) {
  const PieceCodec* const codec = find_piece_codec(encoder_of(run.batch.kind).codec);
  const bool coded = codec != nullptr;
  std::uint32_t piece_count = 0;
  for (std::size_t i = 0; i < run.count(); ++i)
    piece_count += piece_count_of(run.message(i).input_size);
  BatchStreams streams;
  streams.codec_ = codec;
  NACRE_ASSIGN(streams.streams_, run.slot.add_upload<StreamTask>(run.count()));
  NACRE_ASSIGN(streams.pieces_, run.slot.add_upload<CodecTask>(piece_count));
  NACRE_ASSIGN(streams.owners_, run.slot.add_upload<PieceOwner>(piece_count));
  NACRE_ASSIGN(streams.sizes_, run.slot.add_download<StreamSize>(run.count()));
  NACRE_ASSIGN(streams.code_sizes_, run.slot.take<std::uint32_t>(piece_count));
  if (coded) {
    NACRE_ASSIGN(streams.workspace_,
                 run.slot.take_bytes(codec->encode_workspace_size(piece_count)));
  }
  if (run.batch.kind.codec == Codec::automatic) {
    NACRE_ASSIGN(streams.sampled_pieces_, run.slot.take<CodecTask>(piece_count));
  }

  std::uint32_t at = 0;
  for (std::uint32_t i = 0; i < run.count(); ++i) {
    const auto size = static_cast<std::uint32_t>(run.message(i).input_size);
    streams.streams_.host[i] = {.out = out[i],
                                .plain_size = size,
                                .first_piece = at,
                                .piece_count = piece_count_of(size),
                                .size_max = size_max[i],
                                .coded = coded};
    for (std::uint32_t offset = 0; offset < size; offset += sub_block_size_bytes) {
      const std::uint32_t piece_size = std::min(sub_block_size_bytes, size - offset);
      Byte* code = nullptr;
      if (coded) {
        NACRE_ASSIGN(code, run.slot.take_bytes(piece_size));
      }
      streams.pieces_.host[at] = {
          .in = plain[i] + offset, .out = code, .in_size = piece_size, .out_size = piece_size};
      streams.owners_.host[at++] = {.message = i, .place = offset / sub_block_size_bytes};
    }
  }
  return streams;
}

Result<> BatchStreams::encode(const BatchRun& run) const {
  const auto piece_count = static_cast<std::uint32_t>(pieces_.host.size());
  if (sampled_pieces_ != nullptr) {
    NACRE_TRY(check(sample_streams(streams_.device, run.count(), pieces_.device, sampled_pieces_,
                                   run.slot.stream()),
                    "sampling"));
  }
  if (codec_ != nullptr) {
    const CodecTask* const pieces = sampled_pieces_ != nullptr ? sampled_pieces_ : pieces_.device;
    NACRE_TRY(check(codec_->encode(pieces, piece_count, code_sizes_, workspace_, run.slot.stream(),
                                   encoder_of(run.batch.kind).level),
                    "launching an encoder"));
  }
  return check(
      size_streams(streams_.device, run.count(), code_sizes_, sizes_.device, run.slot.stream()),
      "sizing streams");
}

Result<> BatchStreams::write(const BatchRun& run) const {
  return check(write_streams(streams_.device, sizes_.device, owners_.device, pieces_.device,
                             static_cast<std::uint32_t>(pieces_.host.size()), code_sizes_,
                             run.slot.stream()),
               "writing streams");
}

Result<BatchPlains> BatchPlains::add(const BatchRun& run,
                                     const std::vector<std::uint32_t>& plain_max, Codec codec) {
  BatchPlains plains(codec);
  NACRE_ASSIGN(plains.plain_, take_places(run, plain_max));
  plains.first_piece_.resize(run.count() + std::size_t{1});
  for (std::size_t i = 0; i < run.count(); ++i)
    plains.first_piece_[i + 1] = plains.first_piece_[i] + piece_count_of(plain_max[i]);
  DecodeArrays& arrays = plains.arrays_;
  arrays.piece_count = plains.first_piece_.back();
  arrays.codec_count = plains.codecs_.count();
  arrays.places = plains.codecs_.places();
  const std::size_t task_count = std::size_t{arrays.piece_count} * arrays.codec_count;
  NACRE_ASSIGN(arrays.tasks, run.slot.take<CodecTask>(task_count));
  NACRE_ASSIGN(arrays.results, run.slot.take<std::uint32_t>(task_count));
  NACRE_ASSIGN(plains.copies_, run.slot.take<CodecTask>(arrays.piece_count));
  // The decoders run one after the other in the same workspace.
  std::size_t workspace_size = 0;
  for (std::uint32_t place = 0; place < arrays.codec_count; ++place)
    workspace_size =
        std::max(workspace_size, plains.codecs_[place].decode_workspace_size(arrays.piece_count));
  NACRE_ASSIGN(plains.workspace_, run.slot.take_bytes(workspace_size));
  NACRE_ASSIGN(plains.valid_, run.slot.add_download<std::uint32_t>(run.count()));
  NACRE_ASSIGN(plains.sizes_, run.slot.add_download<std::uint32_t>(run.count()));
  return plains;
}

Result<> BatchPlains::decode(const BatchRun& run, const CutTask* cuts) const {
  const cudaStream_t stream = run.slot.stream();
  const std::uint32_t piece_count = arrays_.piece_count;
  NACRE_TRY(check(cut_streams(cuts, run.count(), arrays_, copies_, valid_.device, stream),
                  "cutting streams"));
  NACRE_TRY(check(copy_pieces(copies_, piece_count, stream), "copying pieces"));
  for (std::uint32_t place = 0; place < codecs_.count(); ++place) {
    const std::size_t first = std::size_t{place} * piece_count;
    NACRE_TRY(check(codecs_[place].decode(arrays_.tasks + first, piece_count,
                                          arrays_.results + first, workspace_, stream),
                    "launching a decoder"));
  }
  return check(judge_streams(cuts, run.count(), arrays_, valid_.device, sizes_.device, stream),
               "judging streams");
}

}  // namespace nacre::engine::cuda

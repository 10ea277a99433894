// SPDX-License-Identifier: Apache-2.0
// The steps of sealing, one after the other with nothing around them: compress, AES-GCM, CRC-32 by
// direct calls of the fastest libraries. liblz4 where the codec is lz77, else the engine's own
// codec. The difference to seal and unseal is the cost of the engine itself.
//
//   0        4        8
//   +--------+--------+--------------+-----+
//   | CRC-32 | stored | ciphertext   | tag |     stored: 1 when the plain bytes are not compressed
//   +--------+--------+--------------+-----+
#include <isa-l/crc.h>
#include <lz4.h>

#include <algorithm>

#include "gpu_engine/baseline/baseline_parts.h"

namespace nacre::engine {
namespace {

constexpr std::size_t header_size_bytes = 8;
constexpr std::size_t tag_size = 16;

class Chain final : public Baseline {
 public:
  explicit Chain(const BaselineTask& task) : task_(task) {
    BaselineTask inner = task;
    inner.operation = task.operation == Operation::seal ? Operation::encrypt : Operation::decrypt;
    cipher_ = find_baselines(inner).at(0).make();
  }

  bool run(std::span<BaselinePiece> pieces) override {
    return std::all_of(pieces.begin(), pieces.end(), [this](BaselinePiece& piece) {
      return task_.operation == Operation::seal ? seal(piece) : unseal(piece);
    });
  }

 private:
  bool seal(BaselinePiece& piece) {
    Byte* const out = piece.output.data();
    const MutableByteView body = piece.output.subspan(header_size_bytes);
    std::size_t size = compress(piece.input, body);
    const bool stored = size == 0;
    if (stored) {
      std::copy(piece.input.begin(), piece.input.end(), body.begin());
      size = piece.input.size();
    }
    store_le(out + 4, std::uint32_t{stored});
    BaselinePiece text{.input = body.first(size), .output = body};
    if (!cipher_->run({&text, 1})) return false;
    store_le(out, crc32_gzip_refl(0, out + 4, 4 + size + tag_size));
    piece.output_size = header_size_bytes + size + tag_size;
    return true;
  }

  bool unseal(BaselinePiece& piece) {
    const Byte* const in = piece.input.data();
    if (load_le<std::uint32_t>(in) != crc32_gzip_refl(0, in + 4, piece.input.size() - 4))
      return false;
    const bool stored = load_le<std::uint32_t>(in + 4) != 0;
    const ByteView sealed = piece.input.subspan(header_size_bytes);
    opened_.resize(std::max(opened_.size(), sealed.size()));
    BaselinePiece text{.input = sealed, .output = stored ? piece.output : MutableByteView(opened_)};
    if (!cipher_->run({&text, 1})) return false;
    piece.output_size = piece.output.size();
    return stored || decompress(ByteView(opened_).first(text.output_size), piece.output);
  }

  // The compressed size; 0 when that is no smaller than plain.
  std::size_t compress(ByteView plain, MutableByteView out) const {
    if (task_.codec == Codec::none) return 0;
    if (task_.codec == Codec::lz77) {
      const int size = LZ4_compress_default(
          reinterpret_cast<const char*>(plain.data()), reinterpret_cast<char*>(out.data()),
          static_cast<int>(plain.size()), static_cast<int>(out.size()));
      return size > 0 && static_cast<std::size_t>(size) < plain.size()
                 ? static_cast<std::size_t>(size)
                 : 0;
    }
    return compress_to_fit(task_.codec, task_.level, plain, out, plain.size() - 1).value_or(0);
  }

  bool decompress(ByteView coded, MutableByteView plain) const {
    if (task_.codec == Codec::lz77) {
      const int size = static_cast<int>(plain.size());
      return LZ4_decompress_safe(reinterpret_cast<const char*>(coded.data()),
                                 reinterpret_cast<char*>(plain.data()),
                                 static_cast<int>(coded.size()), size) == size;
    }
    return engine::decompress(task_.codec, coded, plain).has_value();
  }

  const BaselineTask task_;
  std::unique_ptr<Baseline> cipher_;
  Bytes opened_;
};

}  // namespace

void add_chain_baselines(const BaselineTask& task, BaselineLibraries& libraries) {
  BaselineTask inner = task;
  inner.operation = Operation::encrypt;
  if (task.codec == Codec::automatic || find_baselines(inner).empty() ||
      construction(task.key_use.suite) != SuiteConstruction::gcm)
    return;
  libraries.push_back({"its parts", "codec, cipher and CRC by direct calls",
                       task.operation == Operation::unseal, "",
                       [task] { return std::make_unique<Chain>(task); }});
}

}  // namespace nacre::engine

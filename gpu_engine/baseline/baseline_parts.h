// SPDX-License-Identifier: Apache-2.0
// The libraries that each family adds for find_baselines(), and how most baselines are made.
#pragma once

#include <utility>

#include "gpu_engine/baseline/baseline.h"

namespace nacre::engine {

using BaselineLibraries = std::vector<BaselineLibrary>;

void add_codec_baselines(const BaselineTask& task, BaselineLibraries& libraries);
void add_tiff_baselines(const BaselineTask& task, BaselineLibraries& libraries);
void add_checksum_baselines(const BaselineTask& task, BaselineLibraries& libraries);
void add_openssl_baselines(const BaselineTask& task, BaselineLibraries& libraries);
// For suites with an HMAC.
void add_openssl_hmac_baseline(const BaselineTask& task, BaselineLibraries& libraries);
void add_ipsec_mb_baselines(const BaselineTask& task, BaselineLibraries& libraries);
void add_rsa_baselines(const BaselineTask& task, BaselineLibraries& libraries);
void add_chain_baselines(const BaselineTask& task, BaselineLibraries& libraries);

// A baseline made of a function of one piece: (ByteView, MutableByteView) to the size written, or
// nothing.
template <typename Function>
class EachPiece final : public Baseline {
 public:
  explicit EachPiece(Function function) : function_(std::move(function)) {}
  bool run(std::span<BaselinePiece> pieces) override {
    for (BaselinePiece& piece : pieces) {
      const std::optional<std::size_t> size = function_(piece.input, piece.output);
      if (!size) return false;
      piece.output_size = *size;
    }
    return true;
  }

 private:
  Function function_;
};
template <typename Function>
std::unique_ptr<Baseline> each_piece(Function function) {
  return std::make_unique<EachPiece<Function>>(std::move(function));
}

}  // namespace nacre::engine

// SPDX-License-Identifier: Apache-2.0
// The libraries that the engine is measured against. Well-known libraries do the same task by
// direct calls, with none of this project's code around them. Only benchmarks use this; the engine
// itself does not.
//
// Some of these libraries are used for nothing else, and may be absent when this is built.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/payload.h"

namespace nacre::engine {

// One message of a task.
struct BaselinePiece {
  ByteView input;
  MutableByteView output;  // of decoders exactly the plain size, else output_size_bound()
  std::size_t output_size = 0;
};

// A library that is set up for one task. Serves one thread at a time.
class Baseline {
 public:
  virtual ~Baseline() = default;
  // Runs the task on each piece and sets its output_size. False when the library refuses a piece.
  virtual bool run(std::span<BaselinePiece> pieces) = 0;
};

// The task, described with the fields of a payload's message.
struct BaselineTask {
  Operation operation = Operation::compress;
  Codec codec = Codec::none;
  int level = 0;
  KeyUse key_use = {};
  ByteView key = {};  // RSA: DER
  CipherIv iv = {};   // one vector for every message, which is good enough for a measurement
  Checksum checksum = Checksum::crc32;
  RsaPadding rsa_padding = RsaPadding::none;
  int rsa_bits = 0;
};

struct BaselineLibrary {
  std::string name;           // "liblz4 1.9.4"
  std::string note;           // how its task differs from ours; empty where the tasks are the same
  bool gives_our_bytes;       // whether its output must equal the engine's
  std::string build_package;  // the package to install so that it is built in
  // Makes a Baseline for one thread. The task's key must outlive the Baseline. An empty function
  // when the library is not built in.
  std::function<std::unique_ptr<Baseline>()> make;
};

// The libraries that do this task, first the one that the engine is usually compared with.
std::vector<BaselineLibrary> find_baselines(const BaselineTask& task);

// The most bytes that any of these libraries writes for an input of this size.
std::size_t baseline_output_size_bound(const BaselineTask& task, std::size_t input_size);

}  // namespace nacre::engine

// SPDX-License-Identifier: Apache-2.0
// What encryption and decryption have in common: the threads of a run, and the pieces of a batch on
// their way to the sinks. Internal to fs/container.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "fs/crypt/batch_ring.h"

namespace nacre::fs {

// The reading thread's end of a ring: pieces go into the batch at hand, which is sent when it is
// full. Once an error was returned nothing more can be added: the run is over.
class BatchFiller {
 public:
  explicit BatchFiller(BatchRing& ring) : ring_(ring) {}

  // The batch at hand, or another, with at least this much room.
  Result<Batch*> reserve(std::size_t input_bytes, std::size_t output_bytes);
  // Sends the one at hand, if there is one.
  void send();
  bool has_batch() const { return batch_ != nullptr; }
  Batch& batch() { return *batch_; }

  Result<> add_bytes(const std::shared_ptr<TaskState>& state, ByteView bytes);
  // Into the batch at hand; message.key_index and places are set.
  void add_message(const std::shared_ptr<TaskState>& state, const engine::Message& message);
  Result<> add_end(const std::shared_ptr<TaskState>& state, std::optional<Error> error);

 private:
  Result<> add(Piece piece);

  BatchRing& ring_;
  Batch* batch_ = nullptr;
};

// The bytes that a message became, to be written; empty when there are none. An error fails the
// task.
using TakeResult =
    std::function<Result<ByteView>(TaskState& state, Batch& batch, std::size_t message_index)>;
// What a task comes to whose source has ended, well or with an error.
using EndTask =
    std::function<Result<ContainerEnd>(TaskState& state, const std::optional<Error>& error)>;

struct RunParts {
  std::function<Result<>(BatchFiller& filler)> read_all;  // on the reading thread
  TakeResult take_result;
  EndTask end_task;
  ContainerProgress progress;
};
// Runs both threads to the end.
Result<> run_parts(engine::Engine& engine, const BatchSizes& sizes, const RunParts& parts);

// What a message that failed says, with the place.
tl::unexpected<Error> message_failure(const engine::MessageResult& result, std::string_view where);

}  // namespace nacre::fs

// SPDX-License-Identifier: Apache-2.0
// What encryption and decryption share: the threads of a run, and the pieces of a batch on their
// way to the sinks. Internal to fs/crypt.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "fs/crypt/batch_ring.h"

namespace nacre::fs {

// The reading thread's end of a ring. It adds pieces to the current batch, and sends the batch when
// it is full. After an error the run is over, and nothing more can be added.
class BatchFiller {
 public:
  explicit BatchFiller(BatchRing& ring) : ring_(ring) {}

  // Returns the current batch, or a new one, with at least this much room.
  Result<Batch*> reserve(std::size_t input_bytes, std::size_t output_bytes);
  // Sends the current batch, if there is one.
  void send();
  bool has_batch() const { return batch_ != nullptr; }
  Batch& batch() { return *batch_; }

  Result<> add_bytes(const std::shared_ptr<TaskState>& state, ByteView bytes);
  // Adds a message to the current batch. message.key_index and its places are set.
  void add_message(const std::shared_ptr<TaskState>& state, const engine::Message& message);
  Result<> add_end(const std::shared_ptr<TaskState>& state, std::optional<Error> error);

 private:
  Result<> add(Piece piece);

  BatchRing& ring_;
  Batch* batch_ = nullptr;
};

// Returns the bytes to write for a message's result, or none. Its error fails the task.
using TakeResult =
    std::function<Result<ByteView>(TaskState& state, Batch& batch, std::size_t message_index)>;
// Returns the outcome of a task whose source has ended, with or without an error.
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

// The error of a message that failed, with its place.
tl::unexpected<Error> message_failure(const engine::MessageResult& result, std::string_view where);

}  // namespace nacre::fs

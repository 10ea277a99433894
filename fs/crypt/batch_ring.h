// SPDX-License-Identifier: Apache-2.0
// A few payloads that circulate between two threads. One thread fills them from sources, the engine
// runs them, and the other thread writes the results in order. Their number bounds a run's memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "fs/crypt/container_task.h"
#include "gpu_engine/base/mutex.h"
#include "gpu_engine/engine.h"

namespace nacre::fs {

// The state of a task. The reading thread fills it up to the last piece; then the writing thread
// reads it. Only the writing thread uses the second half of the fields.
struct TaskState {
  std::unique_ptr<ContainerTask> task;
  std::atomic<bool> is_over = false;  // the writing thread has called finish()
  ContainerHeader header;
  ContainerEnd read_end;  // encryption: the content of the end record

  std::uint64_t chunk_count = 0;
  std::uint64_t size_bytes = 0;
  bool has_short_chunk = false;
  std::optional<ContainerEnd> end;
};

struct Piece {
  enum class Kind : std::uint8_t {
    bytes,        // written as they are; they outlive the run
    message,      // the result of a message of the payload
    end_of_task,  // error: why the source ended early
  };
  std::shared_ptr<TaskState> state;
  Kind kind = Kind::message;
  ByteView bytes;
  std::size_t message_index = 0;
  std::optional<Error> error;
};

struct Batch {
  engine::Arena input, output;
  engine::Payload payload;
  std::vector<Piece> pieces;
  std::size_t input_used = 0, output_used = 0;
  std::uint64_t number = 0;  // unique within a run
  bool is_done = false;      // the engine has run it

  std::size_t input_room() const { return input.size() - input_used; }
  std::size_t output_room() const { return output.size() - output_used; }
};

struct BatchSizes {
  std::size_t count = 3;
  std::size_t input_bytes = 0, output_bytes = 0;
};

class BatchRing {
 public:
  BatchRing(engine::Engine& engine, const BatchSizes& sizes) : engine_(engine), sizes_(sizes) {}
  ~BatchRing();  // waits for payloads that the engine still has
  BatchRing(const BatchRing&) = delete;
  BatchRing& operator=(const BatchRing&) = delete;

  // Called by the reading thread. Returns an empty batch: a new one while there are fewer than the
  // bound, otherwise one that comes back. Errors: cancelled after stop(); out_of_memory.
  Result<Batch*> take();
  // Gives the batch to the engine, and afterwards to next().
  void send(Batch* batch);
  void close();  // no more batches will be sent

  // Called by the writing thread. Waits for the batch that was sent first and returns it. Null at
  // the end.
  Batch* next();
  void give_back(Batch* batch);
  void stop();  // from now on take() does not wait

 private:
  engine::Engine& engine_;
  const BatchSizes sizes_;
  Mutex mutex_;  // guards also is_done
  ConditionVariable changed_;
  std::vector<std::unique_ptr<Batch>> all_ NACRE_GUARDED_BY(mutex_);
  std::vector<Batch*> free_ NACRE_GUARDED_BY(mutex_);
  std::deque<Batch*> sent_ NACRE_GUARDED_BY(mutex_);
  std::uint64_t taken_count_ NACRE_GUARDED_BY(mutex_) = 0;
  bool is_closed_ NACRE_GUARDED_BY(mutex_) = false;
  bool is_stopped_ NACRE_GUARDED_BY(mutex_) = false;
};

}  // namespace nacre::fs

// SPDX-License-Identifier: Apache-2.0
// A few payloads that go round between two threads: one fills them from sources, the engine runs
// them, the other writes what came of them, in order. Their number bounds a run's memory.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "fs/crypt/container_task.h"
#include "gpu_engine/engine.h"

namespace nacre::fs {

// A task on its way. Filled by the reading thread up to its last piece, then read by the writing
// one, which has the second half for itself.
struct TaskState {
  std::unique_ptr<ContainerTask> task;
  std::atomic<bool> is_over = false;  // finish() was called, by the writing thread
  ContainerHeader header;
  ContainerEnd read_end;  // encryption: what the end record says

  std::uint64_t chunk_count = 0;
  std::uint64_t size_bytes = 0;
  bool has_short_chunk = false;
  std::optional<ContainerEnd> end;
};

struct Piece {
  enum class Kind : std::uint8_t {
    bytes,        // to be written as they are; they outlive the run
    message,      // of the payload
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
  std::uint64_t number = 0;  // no two in a run have the same
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
  ~BatchRing();  // waits for what the engine still has
  BatchRing(const BatchRing&) = delete;
  BatchRing& operator=(const BatchRing&) = delete;

  // The reading thread: an empty batch, made if there are not yet all of them, else as soon as one
  // comes back. cancelled after stop(); out_of_memory.
  Result<Batch*> take();
  // Hands it to the engine, and then to next().
  void send(Batch* batch);
  void close();  // there are no more

  // The writing thread: the batch that was sent first, when it has been run; nullptr at the end.
  Batch* next();
  void give_back(Batch* batch);
  void stop();  // take() waits for nothing any more

 private:
  engine::Engine& engine_;
  const BatchSizes sizes_;
  std::mutex mutex_;  // guards what follows, and is_done
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Batch>> all_;
  std::vector<Batch*> free_;
  std::deque<Batch*> sent_;
  std::uint64_t taken_count_ = 0;
  bool is_closed_ = false, is_stopped_ = false;
};

}  // namespace nacre::fs

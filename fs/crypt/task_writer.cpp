// SPDX-License-Identifier: Apache-2.0
#include "fs/crypt/task_writer.h"

#include <fmt/format.h>

#include <exception>
#include <new>
#include <thread>

#include "gpu_engine/base/blocked_signals.h"

namespace nacre::fs {

namespace {

// The maximum number of pieces in a batch. Files that cannot be read take no room in a batch, but
// their tasks take memory.
constexpr std::size_t piece_count_max = 4096;

}  // namespace

Result<Batch*> BatchFiller::reserve(std::size_t input_bytes, std::size_t output_bytes) {
  if (batch_ != nullptr &&
      (batch_->input_room() < input_bytes || batch_->output_room() < output_bytes ||
       batch_->pieces.size() >= piece_count_max)) {
    send();
  }
  if (batch_ == nullptr) {
    NACRE_ASSIGN(batch_, ring_.take());
  }
  return batch_;
}

void BatchFiller::send() {
  if (batch_ != nullptr) ring_.send(std::exchange(batch_, nullptr));
}

Result<> BatchFiller::add(Piece piece) {
  NACRE_TRY(reserve(0, 0));
  batch_->pieces.push_back(std::move(piece));
  return {};
}

Result<> BatchFiller::add_bytes(const std::shared_ptr<TaskState>& state, ByteView bytes) {
  return add({.state = state, .kind = Piece::Kind::bytes, .bytes = bytes});
}

void BatchFiller::add_message(const std::shared_ptr<TaskState>& state,
                              const engine::Message& message) {
  batch_->pieces.push_back({.state = state,
                            .kind = Piece::Kind::message,
                            .message_index = batch_->payload.add(message)});
}

Result<> BatchFiller::add_end(const std::shared_ptr<TaskState>& state, std::optional<Error> error) {
  return add({.state = state, .kind = Piece::Kind::end_of_task, .error = std::move(error)});
}

tl::unexpected<Error> message_failure(const engine::MessageResult& result, std::string_view where) {
  return fail(result.error, fmt::format("{}: {}", where, result.detail));
}

namespace {

// The writing thread's end of a ring.
class TaskWriter {
 public:
  explicit TaskWriter(const RunParts& parts) : parts_(parts) {}

  void write(Batch& batch) {
    std::uint64_t bytes = 0;
    for (Piece& piece : batch.pieces) {
      if (piece.state.get() != state_) flush();
      state_ = piece.state.get();
      if (piece.kind == Piece::Kind::message) {
        bytes += batch.payload.messages[piece.message_index].input_size;
      }
      if (!state_->is_over) take(batch, piece);
    }
    flush();
    state_ = nullptr;
    if (parts_.progress) parts_.progress(bytes);
  }

 private:
  void take(Batch& batch, Piece& piece) {
    switch (piece.kind) {
      case Piece::Kind::bytes:
        views_.push_back(piece.bytes);
        return;
      case Piece::Kind::message: {
        const auto view = parts_.take_result(*state_, batch, piece.message_index);
        if (!view) {
          flush();  // everything before it was good
          finish(tl::unexpected(view.error()));
        } else if (!view->empty()) {
          views_.push_back(*view);
        }
        return;
      }
      case Piece::Kind::end_of_task:
        flush();
        finish(parts_.end_task(*state_, piece.error));
    }
  }

  void flush() {
    if (views_.empty()) return;
    const auto written = state_->is_over ? Result<>{} : state_->task->write(views_);
    views_.clear();
    if (!written) finish(tl::unexpected(written.error()));
  }

  void finish(Result<ContainerEnd> outcome) {
    if (state_->is_over.exchange(true)) return;
    state_->task->finish(std::move(outcome));
  }

  const RunParts& parts_;
  TaskState* state_ = nullptr;
  std::vector<ByteView> views_;  // of state_
};

// Ends and joins the reading thread in its destructor.
class ReadingThread {
 public:
  ReadingThread(BatchRing& ring, const RunParts& parts) : ring_(ring) {
    const BlockedSignals blocked;
    thread_ = std::thread([this, &parts] {
      try {
        BatchFiller filler(ring_);
        outcome_ = parts.read_all(filler);
        filler.send();
      } catch (const std::bad_alloc&) {
        outcome_ = fail(ErrorCode::out_of_memory, "out of memory");
      } catch (const std::exception& error) {
        outcome_ = fail(ErrorCode::io, error.what());
      }
      ring_.close();
    });
  }
  ~ReadingThread() {
    if (!thread_.joinable()) return;
    ring_.stop();
    thread_.join();
  }
  ReadingThread(const ReadingThread&) = delete;
  ReadingThread& operator=(const ReadingThread&) = delete;

  Result<> join() {
    thread_.join();
    return std::move(outcome_);
  }

 private:
  BatchRing& ring_;
  Result<> outcome_;
  std::thread thread_;
};

}  // namespace

Result<> run_parts(engine::Engine& engine, const BatchSizes& sizes, const RunParts& parts) {
  BatchRing ring(engine, sizes);
  ReadingThread reader(ring, parts);
  TaskWriter writer(parts);
  while (Batch* batch = ring.next()) {
    writer.write(*batch);
    ring.give_back(batch);
  }
  return reader.join();
}

}  // namespace nacre::fs

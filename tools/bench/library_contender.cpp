// SPDX-License-Identifier: Apache-2.0
// A library on threads that stay alive. Each does every n-th message with a state of its own. The
// calling thread is one of them.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <system_error>
#include <thread>

#include <fmt/format.h>

#include "tools/bench/contender.h"

namespace nacre::tools {

namespace {

class LibraryContender final : public Contender {
 public:
  LibraryContender(unsigned thread_count, BenchMessages messages)
      : messages_(std::move(messages)), start_(thread_count), end_(thread_count) {
    outputs_.resize(messages_.inputs.size());
    for (std::size_t i = 0; i < outputs_.size(); ++i)
      outputs_[i].resize(messages_.output_sizes[i]);
  }
  ~LibraryContender() override {
    if (threads_.empty()) return;
    stopping_ = true;
    start_.arrive_and_wait();
    for (std::thread& thread : threads_)
      thread.join();
  }

  Result<> begin(const engine::BaselineLibrary& library, unsigned thread_count) {
    for (unsigned i = 0; i < thread_count; ++i) {
      shares_.push_back({library.make(), {}, false});
      if (!shares_.back().library)
        return fail(ErrorCode::out_of_memory, fmt::format("{} gives no state", library.name));
    }
    NACRE_TRY(select(1));
    try {
      for (unsigned i = 1; i < thread_count; ++i)
        threads_.emplace_back([this, &share = shares_[i]] { serve(share); });
    } catch (const std::system_error& error) {
      for (std::size_t i = threads_.size() + 1; i < thread_count; ++i)
        start_.arrive_and_drop();
      return fail(ErrorCode::out_of_memory,
                  fmt::format("{} threads cannot be started: {}", thread_count, error.what()));
    }
    return {};
  }

  Result<> select(std::size_t stride) override {
    stride_ = stride;
    for (Share& share : shares_)
      share.pieces.clear();
    std::size_t next = 0;
    for (std::size_t i = 0; i < outputs_.size(); i += stride, ++next)
      shares_[next % shares_.size()].pieces.push_back(
          {.input = messages_.inputs[i], .output = outputs_[i]});
    return {};
  }

  Result<> run() override {
    start_.arrive_and_wait();
    Share& own = shares_[0];
    own.refused = !own.library->run(own.pieces);
    end_.arrive_and_wait();
    if (std::any_of(shares_.begin(), shares_.end(), [](const Share& s) { return s.refused; }))
      return fail(ErrorCode::unsupported, "the library refuses a message");
    return {};
  }

  ByteView output(std::size_t index) const override {
    const std::size_t place = index / stride_;
    const auto& piece = shares_[place % shares_.size()].pieces[place / shares_.size()];
    return ByteView(piece.output).first(piece.output_size);
  }

 private:
  struct Share {
    std::unique_ptr<engine::Baseline> library;
    std::vector<engine::BaselinePiece> pieces;
    bool refused;
  };

  void serve(Share& share) {
    for (;;) {
      start_.arrive_and_wait();
      if (stopping_) return;
      share.refused = !share.pieces.empty() && !share.library->run(share.pieces);
      end_.arrive_and_wait();
    }
  }

  const BenchMessages messages_;
  std::vector<Bytes> outputs_;
  std::vector<Share> shares_;
  std::size_t stride_ = 1;
  std::barrier<> start_, end_;
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> threads_;
};

}  // namespace

Result<std::unique_ptr<Contender>> make_library_contender(const engine::BaselineLibrary& library,
                                                          unsigned thread_count,
                                                          BenchMessages messages) {
  auto contender = std::make_unique<LibraryContender>(thread_count, std::move(messages));
  NACRE_TRY(contender->begin(library, thread_count));
  return contender;
}

engine::BaselineTask to_baseline_task(const BenchTask& task) {
  const engine::Message& message = task.message;
  return {.operation = message.operation,
          .codec = message.codec,
          .level = message.level,
          .key_use = task.key_use,
          .key = task.key,
          .iv = message.iv,
          .checksum = message.checksum,
          .rsa_padding = message.rsa_padding,
          .rsa_bits = static_cast<int>(message.rsa_bits)};
}

}  // namespace nacre::tools

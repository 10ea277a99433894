// SPDX-License-Identifier: Apache-2.0
// A backend: one payload of all messages, in memory that the engine gives out.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "tools/bench/contender.h"

namespace nacre::tools {

namespace {

constexpr std::size_t message_alignment = 64;

std::size_t total_of(const std::vector<std::size_t>& sizes) {
  return std::accumulate(
      sizes.begin(), sizes.end(), std::size_t{0},
      [](std::size_t sum, std::size_t size) { return sum + round_up(size, message_alignment); });
}

class EngineContender final : public Contender {
 public:
  EngineContender(engine::Engine& engine, const BenchTask& task, bool takes_all)
      : engine_(engine), task_(task), takes_all_(takes_all) {}

  Result<> fill(const BenchMessages& messages) {
    std::vector<std::size_t> input_sizes;
    for (const ByteView input : messages.inputs)
      input_sizes.push_back(input.size());
    NACRE_ASSIGN(input_, engine_.allocate(total_of(input_sizes) + message_alignment));
    NACRE_ASSIGN(output_, engine_.allocate(total_of(messages.output_sizes) + message_alignment));
    std::size_t input_at = 0;
    std::size_t output_at = 0;
    for (std::size_t i = 0; i < messages.inputs.size(); ++i) {
      const ByteView input = messages.inputs[i];
      std::copy(input.begin(), input.end(), input_.data() + input_at);
      engine::Message message = task_.message;
      if (!messages.codecs.empty()) message.codec = messages.codecs[i];
      message.input_offset = input_at;
      message.input_size = input.size();
      message.output_offset = output_at;
      message.output_capacity = messages.output_sizes[i];
      message.counter = static_cast<std::uint32_t>(i);
      all_.push_back(message);
      input_at += round_up(input.size(), message_alignment);
      output_at += round_up(messages.output_sizes[i], message_alignment);
    }
    checksums_.resize(all_.size());
    output_sizes_.resize(all_.size());
    codecs_.resize(all_.size());
    return select(1);
  }

  Result<> select(std::size_t stride) override {
    stride_ = stride;
    payload_.clear();
    payload_.input = input_.data();
    payload_.input_size = input_.size();
    payload_.output = output_.data();
    payload_.output_size = output_.size();
    const std::uint32_t key = task_.has_key ? payload_.add_key(task_.key_use, task_.key) : 0;
    const std::uint32_t new_key =
        task_.new_key.empty() ? key : payload_.add_key(task_.key_use, task_.new_key);
    for (std::size_t i = 0; i < all_.size(); i += stride) {
      all_[i].key_index = key;
      all_[i].new_key_index = new_key;
      payload_.add(all_[i]);
    }
    return {};
  }

  Result<> run() override {
    engine_.run(payload_);
    for (std::size_t i = 0; i < payload_.results.size(); ++i) {
      const engine::MessageResult& result = payload_.results[i];
      if (!result.ok)
        return fail(result.error, fmt::format("message {}: {}", i * stride_, result.detail));
      const bool is_crc32 = task_.message.checksum == engine::Checksum::crc32;
      checksums_[i * stride_] = is_crc32 ? result.crc32 : result.crc32c;
      output_sizes_[i * stride_] = result.output_size;
      codecs_[i * stride_] = result.codec;
    }
    return {};
  }

  Result<double> resident_seconds() override {
    constexpr unsigned repetitions = 5;
    NACRE_TRY(select(1));
    NACRE_ASSIGN(const double seconds, engine_.measure_resident(payload_, repetitions));
    // The measurement left outputs of its own, whose sizes may differ from the last run's.
    NACRE_TRY(run());
    return seconds;
  }

  bool takes_all() const override { return takes_all_; }

  ByteView output(std::size_t index) const override {
    if (task_.message.operation == engine::Operation::checksum)
      return {reinterpret_cast<const Byte*>(&checksums_[index]), sizeof checksums_[index]};
    return {output_.data() + all_[index].output_offset, output_sizes_[index]};
  }

  engine::Codec codec(std::size_t index) const override { return codecs_[index]; }

 private:
  engine::Engine& engine_;
  const BenchTask task_;
  const bool takes_all_;
  engine::Arena input_, output_;
  engine::Payload payload_;
  std::vector<engine::Message> all_;
  std::vector<std::uint32_t> checksums_;
  std::vector<std::size_t> output_sizes_;
  std::vector<engine::Codec> codecs_;
  std::size_t stride_ = 1;
};

}  // namespace

Result<std::unique_ptr<Contender>> make_engine_contender(engine::Engine& engine,
                                                         const BenchTask& task,
                                                         BenchMessages messages, bool takes_all) {
  auto contender = std::make_unique<EngineContender>(engine, task, takes_all);
  NACRE_TRY(contender->fill(messages));
  return contender;
}

}  // namespace nacre::tools

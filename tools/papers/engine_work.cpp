// SPDX-License-Identifier: Apache-2.0
#include "tools/papers/engine_work.h"

#include <algorithm>

#include <fmt/format.h>

#include "tools/bench/measure.h"

namespace nacre::tools {

namespace {
constexpr std::size_t alignment = 64;
}

Result<std::unique_ptr<EngineWork>> EngineWork::make(engine::Engine& engine,
                                                     const std::vector<SeedKey>& keys,
                                                     const std::vector<SeedMessage>& messages,
                                                     engine::MessageOrder order) {
  std::unique_ptr<EngineWork> work(new EngineWork(engine));
  std::size_t input_size = alignment;
  std::size_t output_size = alignment;
  for (const SeedMessage& message : messages) {
    input_size += round_up(message.input.size(), alignment);
    output_size += round_up(message.output_size, alignment);
  }
  NACRE_ASSIGN(work->input_, engine.allocate(input_size));
  NACRE_ASSIGN(work->output_, engine.allocate(output_size));
  engine::Payload& payload = work->payload_;
  payload.input = work->input_.data();
  payload.input_size = work->input_.size();
  payload.output = work->output_.data();
  payload.output_size = work->output_.size();
  payload.order = order;
  // Payload::add_key() would look for an equal key among all of them, which takes too long if each
  // of many messages has a key of its own.
  std::size_t keys_size = 0;
  for (const SeedKey& key : keys)
    keys_size += key.key.size();
  payload.keys = SecretBytes(keys_size);
  for (const SeedKey& key : keys) {
    std::copy(key.key.begin(), key.key.end(),
              payload.keys.mutable_view().begin() + static_cast<std::ptrdiff_t>(payload.keys_used));
    payload.key_table.push_back({.use = key.use,
                                 .offset = static_cast<std::uint32_t>(payload.keys_used),
                                 .size = static_cast<std::uint32_t>(key.key.size())});
    payload.keys_used += key.key.size();
  }
  std::size_t input_at = 0;
  std::size_t output_at = 0;
  for (const SeedMessage& given : messages) {
    std::copy(given.input.begin(), given.input.end(), work->input_.data() + input_at);
    engine::Message message = given.message;
    message.input_offset = input_at;
    message.input_size = given.input.size();
    message.output_offset = output_at;
    message.output_capacity = given.output_size;
    payload.add(message);
    input_at += round_up(given.input.size(), alignment);
    output_at += round_up(given.output_size, alignment);
  }
  return work;
}

Result<> EngineWork::look_at_results() const {
  for (std::size_t i = 0; i < payload_.results.size(); ++i) {
    const engine::MessageResult& result = payload_.results[i];
    if (!result.ok) return fail(result.error, fmt::format("message {}: {}", i, result.detail));
  }
  return {};
}

Result<> EngineWork::run() {
  const std::uint64_t before = engine_.stats().cuda_message_count;
  const double begin = wall_seconds();
  engine_.run(payload_);
  last_seconds_ = wall_seconds() - begin;
  NACRE_TRY(look_at_results());
  ran_on_device_ = engine_.stats().cuda_message_count - before == payload_.messages.size();
  return {};
}

ByteView EngineWork::output(std::size_t index) const {
  const engine::Message& message = payload_.messages[index];
  const engine::MessageResult& result = payload_.results[index];
  if (message.operation != engine::Operation::checksum)
    return {output_.data() + message.output_offset, result.output_size};
  const std::uint32_t& value =
      message.checksum == engine::Checksum::crc32 ? result.crc32 : result.crc32c;
  return {reinterpret_cast<const Byte*>(&value), sizeof value};
}

Result<double> EngineWork::resident_seconds(unsigned repetitions) {
  NACRE_ASSIGN(const double seconds, engine_.measure_resident(payload_, repetitions));
  NACRE_TRY(look_at_results());
  return seconds;
}

}  // namespace nacre::tools

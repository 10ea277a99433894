// SPDX-License-Identifier: Apache-2.0
// See payload_times.h.
#include "tools/bench/seeds/payload_times.h"

#include "tools/bench/seeds/payload_orders.h"
#include "tools/bench/seeds/tasks.h"

namespace nacre::tools {
namespace {

constexpr std::size_t block_size = 16;

Result<> compare_works(const EngineWork& work, const EngineWork& expected, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    NACRE_TRY(compare_output(i, work.output(i), expected.output(i)));
  return {};
}

}  // namespace

Result<PayloadTimes> time_counters(const SeedRun& run, std::size_t whole, std::size_t message_size,
                                   bool key_for_each) {
  PayloadTimes times;
  if (run.cuda() == nullptr) return times;
  const BenchTask task = seed_cipher_task(engine::Operation::encrypt, engine::BlockCipher::aes_128,
                                          engine::CipherMode::ctr);
  std::vector<SeedKey> keys;
  std::vector<SeedMessage> messages;
  for (const ByteView input : run.messages(whole, message_size)) {
    messages.push_back({task.message, input, input.size()});
    if (!keys.empty() && !key_for_each) continue;
    SeedKey key = {task.key_use, task.key};
    store_le(key.key.data(), static_cast<std::uint32_t>(keys.size()));
    messages.back().message.key_index = static_cast<std::uint32_t>(keys.size());
    keys.push_back(std::move(key));
  }
  NACRE_ASSIGN(const auto work, EngineWork::make(*run.cuda(), keys, messages));
  NACRE_ASSIGN(times.with_copies, run.time_on_device(*work));
  if (!times.with_copies) return times;
  NACRE_ASSIGN(const auto expected, EngineWork::make(run.cpu(), keys, messages));
  NACRE_TRY(expected->run());
  NACRE_TRY(compare_works(*work, *expected, messages.size()));
  times.kernels = run.time_kernels(*work);
  return times;
}

Result<OrderTimes> time_payload_order(const SeedRun& run, int number) {
  OrderTimes times;
  const std::vector<OrderedMessage> order = payload_order(number);
  for (const OrderedMessage& message : order)
    times.size += message.block_count * block_size;
  if (!run.takes(times.size)) return times;
  const BenchTask parallel = seed_cipher_task(
      engine::Operation::encrypt, engine::BlockCipher::aes_128, engine::CipherMode::ctr);
  const BenchTask serial = seed_cipher_task(engine::Operation::encrypt,
                                            engine::BlockCipher::aes_128, engine::CipherMode::cbc);
  const std::vector<SeedKey> keys = {{parallel.key_use, parallel.key},
                                     {serial.key_use, serial.key}};
  const ByteView bytes = run.bytes(times.size);
  std::vector<SeedMessage> messages;
  std::size_t at = 0;
  for (const OrderedMessage& message : order) {
    const std::size_t size = message.block_count * block_size;
    messages.push_back({parallel.message, bytes.subspan(at, size), size});
    messages.back().message.key_index = message.is_serial ? 1 : 0;
    at += size;
  }
  NACRE_ASSIGN(const auto given,
               EngineWork::make(run.cpu(), keys, messages, engine::MessageOrder::as_given));
  NACRE_ASSIGN(times.cpu_as_given, run.time_of([&] { return given->run(); }));
  NACRE_ASSIGN(const auto cpu, EngineWork::make(run.cpu(), keys, messages));
  NACRE_ASSIGN(times.cpu, run.time_of([&] { return cpu->run(); }));
  NACRE_TRY(compare_works(*cpu, *given, messages.size()));
  if (run.cuda() == nullptr) return times;
  NACRE_ASSIGN(const auto cuda, EngineWork::make(*run.cuda(), keys, messages));
  NACRE_ASSIGN(times.cuda, run.time_on_device(*cuda));
  if (times.cuda) NACRE_TRY(compare_works(*cuda, *given, messages.size()));
  return times;
}

}  // namespace nacre::tools

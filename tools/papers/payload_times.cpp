// SPDX-License-Identifier: Apache-2.0
#include "tools/papers/payload_times.h"

#include "tools/bench/measure.h"
#include "tools/papers/payload_orders.h"
#include "tools/papers/tasks.h"

namespace nacre::tools {
namespace {

constexpr std::size_t block_size = 16;

Result<> compare_works(const EngineWork& work, const EngineWork& expected, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    NACRE_TRY(compare_output(i, work.output(i), expected.output(i)));
  return {};
}

// A payload that can be laid out for an engine.
struct PayloadMessages {
  std::size_t size = 0;
  std::vector<SeedKey> keys;
  std::vector<SeedMessage> messages;
};

PayloadMessages order_messages(const SeedRun& run, int number) {
  const BenchTask parallel = seed_cipher_task(
      engine::Operation::encrypt, engine::BlockCipher::aes_128, engine::CipherMode::ctr);
  const BenchTask serial = seed_cipher_task(engine::Operation::encrypt,
                                            engine::BlockCipher::aes_128, engine::CipherMode::cbc);
  PayloadMessages made = {.keys = {{parallel.key_use, parallel.key}, {serial.key_use, serial.key}},
                          .messages = {}};
  const std::vector<OrderedMessage> order = payload_order(number);
  for (const OrderedMessage& message : order)
    made.size += message.block_count * block_size;
  if (!run.takes(made.size)) return made;
  const ByteView bytes = run.bytes(made.size);
  std::size_t at = 0;
  for (const OrderedMessage& message : order) {
    const std::size_t size = message.block_count * block_size;
    made.messages.push_back({parallel.message, bytes.subspan(at, size), size});
    made.messages.back().message.key_index = message.is_serial ? 1 : 0;
    at += size;
  }
  return made;
}

using Works = std::vector<std::unique_ptr<EngineWork>>;

Result<Works> make_works(engine::Engine& engine, const std::vector<PayloadMessages>& orders,
                         engine::MessageOrder order = engine::MessageOrder::soonest) {
  Works works;
  for (const PayloadMessages& messages : orders) {
    NACRE_ASSIGN(auto work, EngineWork::make(engine, messages.keys, messages.messages, order));
    works.push_back(std::move(work));
  }
  return works;
}

struct TimedOrders {
  std::vector<double> seconds;
  bool ran_on_device = true;  // all messages did
};

// Outputs are compared with what was expected. Each payload lies in several places of memory at the
// same time, and the median counts. In one run on a virtual machine two payloads were slower by a
// quarter in every round, but in no other run; presumably their places in memory were the cause.
Result<TimedOrders> time_orders(const SeedRun& run, engine::Engine& engine,
                                const std::vector<PayloadMessages>& orders, const Works& expected,
                                engine::MessageOrder order = engine::MessageOrder::soonest) {
  constexpr int place_count = 3;
  std::vector<Works> places;
  for (int place = 0; place < place_count; ++place) {
    NACRE_ASSIGN(Works works, make_works(engine, orders, order));
    places.push_back(std::move(works));
  }
  TimedOrders timed;
  std::vector<std::vector<double>> times(orders.size());
  for (const Works& works : places) {
    NACRE_ASSIGN(const std::vector<double> seconds, run.time_in_turns(works));
    for (std::size_t i = 0; i < works.size(); ++i) {
      NACRE_TRY(compare_works(*works[i], *expected[i], orders[i].messages.size()));
      timed.ran_on_device = timed.ran_on_device && works[i]->ran_on_device();
      times[i].push_back(seconds[i]);
    }
  }
  for (std::vector<double>& of_order : times)
    timed.seconds.push_back(median_of(std::move(of_order)));
  return timed;
}

PayloadMessages counter_messages(const SeedRun& run, std::size_t whole, std::size_t message_size,
                                 bool key_for_each) {
  const BenchTask task = seed_cipher_task(engine::Operation::encrypt, engine::BlockCipher::aes_128,
                                          engine::CipherMode::ctr);
  PayloadMessages made = {.size = whole, .keys = {}, .messages = {}};
  for (const ByteView input : run.messages(whole, message_size)) {
    made.messages.push_back({task.message, input, input.size()});
    if (!made.keys.empty() && !key_for_each) continue;
    SeedKey key = {task.key_use, task.key};
    store_le(key.key.data(), static_cast<std::uint32_t>(made.keys.size()));
    made.messages.back().message.key_index = static_cast<std::uint32_t>(made.keys.size());
    made.keys.push_back(std::move(key));
  }
  return made;
}

// Times of a payload's messages mode by mode: plain code, libraries, and a device's kernels.
Result<SeedTimes> time_modes(const SeedRun& run, const PayloadMessages& order) {
  std::vector<ByteView> parallel, serial;
  for (const SeedMessage& message : order.messages)
    (message.message.key_index == 1 ? serial : parallel).push_back(message.input);
  const auto time = [&](std::vector<ByteView>& messages, engine::CipherMode mode) {
    return run.time_pair(seed_aes(std::move(messages), engine::BlockCipher::aes_128, mode, false));
  };
  NACRE_ASSIGN(SeedPairTimes both, time(parallel, engine::CipherMode::ctr));
  NACRE_ASSIGN(const SeedPairTimes other, time(serial, engine::CipherMode::cbc));
  SeedTimes& times = both.forward;
  for (const SeedTime part : {&SeedTimes::plain, &SeedTimes::plain_all, &SeedTimes::library,
                              &SeedTimes::library_all, &SeedTimes::kernels}) {
    const auto& [ours, theirs] = std::pair(times.*part, other.forward.*part);
    times.*part = ours && theirs ? std::optional(*ours + *theirs) : std::nullopt;
  }
  times.with_copies.reset();
  return times;
}

}  // namespace

Result<CounterTimes> time_counters(const SeedRun& run, std::size_t whole,
                                   std::size_t message_size) {
  CounterTimes times;
  if (run.cuda() == nullptr) return times;
  Works works;
  std::vector<PayloadTimes*> of_works;
  const auto add = [&](PayloadTimes& of, std::size_t size, bool key_for_each) -> Result<> {
    const PayloadMessages made = counter_messages(run, whole, size, key_for_each);
    NACRE_ASSIGN(auto work, EngineWork::make(*run.cuda(), made.keys, made.messages));
    NACRE_TRY(work->run());
    if (!work->ran_on_device()) return {};
    NACRE_ASSIGN(const auto expected, EngineWork::make(run.cpu(), made.keys, made.messages));
    NACRE_TRY(expected->run());
    NACRE_TRY(compare_works(*work, *expected, made.messages.size()));
    works.push_back(std::move(work));
    of_works.push_back(&of);
    return {};
  };
  NACRE_TRY(add(times.one, whole, false));
  NACRE_TRY(add(times.one_key, message_size, false));
  NACRE_TRY(add(times.key_each, message_size, true));
  NACRE_ASSIGN(const std::vector<double> seconds, run.time_in_turns(works));
  for (std::size_t i = 0; i < works.size(); ++i) {
    if (!works[i]->ran_on_device()) continue;
    of_works[i]->with_copies = seconds[i];
    of_works[i]->kernels = run.time_kernels(*works[i]);
  }
  return times;
}

Result<std::vector<OrderTimes>> time_payload_orders(const SeedRun& run) {
  std::vector<OrderTimes> times(payload_order_count);
  std::vector<PayloadMessages> orders;
  for (int number = 1; number <= payload_order_count; ++number) {
    orders.push_back(order_messages(run, number));
    times[orders.size() - 1].size = orders.back().size;
    if (!run.takes(orders.back().size)) return times;
  }
  NACRE_ASSIGN(const Works expected, make_works(run.cpu(), orders, engine::MessageOrder::as_given));
  for (const auto& work : expected)
    NACRE_TRY(work->run());
  NACRE_ASSIGN(const TimedOrders as_given,
               time_orders(run, run.cpu(), orders, expected, engine::MessageOrder::as_given));
  NACRE_ASSIGN(const TimedOrders cpu, time_orders(run, run.cpu(), orders, expected));
  for (std::size_t i = 0; i < times.size(); ++i) {
    times[i].cpu_as_given = as_given.seconds[i];
    times[i].cpu = cpu.seconds[i];
    NACRE_ASSIGN(times[i].contenders, time_modes(run, orders[i]));
  }
  if (run.cuda() == nullptr) return times;
  NACRE_ASSIGN(const TimedOrders cuda, time_orders(run, *run.cuda(), orders, expected));
  for (std::size_t i = 0; i < times.size() && cuda.ran_on_device; ++i)
    times[i].contenders.with_copies = cuda.seconds[i];
  return times;
}

}  // namespace nacre::tools

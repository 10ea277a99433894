// SPDX-License-Identifier: Apache-2.0
// Costs, and the schedule made by them. Costs come from a run on one core with AVX-512 and VAES,
// November 2026. The ratios between them matter, not the core.
#include "gpu_engine/cpu/schedule.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "gpu_engine/base/limits.h"

namespace nacre::engine {
namespace {

// Waking a worker costs some 10 us. Less work than this ends sooner on one thread.
constexpr std::uint64_t alone_cost_ns_max = 128u << 10;
// How much work a task has: enough to make the cursor's cost small, even for small messages.
constexpr std::uint64_t task_cost_ns = 64u << 10;
constexpr std::uint64_t message_cost_ns = 200;
constexpr std::uint64_t part_size_bytes_min = 64u << 10;
// How many parts a message has for each worker: more than one, so that a thread that comes late
// still finds work, and the others need not wait for it.
constexpr std::uint64_t parts_per_worker = 4;

// Picoseconds a byte.
constexpr std::uint64_t chain_ps = 1000;  // seal, unseal and codecs: as a fast codec
constexpr std::uint64_t checksum_ps = 60;
constexpr std::uint64_t gcm_ps = 150;
constexpr std::uint64_t hmac_ps = 700;
constexpr std::uint64_t aes_parallel_ps = 60;
constexpr std::uint64_t aes_serial_ps = 1000;
constexpr std::uint64_t des_parallel_ps = 2500;
constexpr std::uint64_t des_serial_ps = 18000;
constexpr std::uint64_t triple_des_factor = 4;

// For 2048 bits. The public operation grows with the square of the length, the private one with the
// cube, and generation with the fourth power.
constexpr std::uint64_t rsa_public_ns = 25'000;
constexpr std::uint64_t rsa_private_ns = 900'000;
constexpr std::uint64_t rsa_generate_ns = 80'000'000;

std::uint64_t cipher_ps(BlockCipher cipher, bool serial) {
  if (block_size_bytes(cipher) == block_size_bytes_max)
    return serial ? aes_serial_ps : aes_parallel_ps;
  return (serial ? des_serial_ps : des_parallel_ps) *
         (cipher == BlockCipher::des_ede3 ? triple_des_factor : 1);
}

std::uint64_t crypt_ps(const Payload& payload, const Message& message) {
  if (message.key_index >= payload.key_table.size()) return 0;
  const KeyUse& use = payload.key_table[message.key_index].use;
  const Direction direction =
      message.operation == Operation::encrypt ? Direction::encrypt : Direction::decrypt;
  if (use.kind == KeyKind::block_cipher)
    return cipher_ps(use.cipher, is_serial(use.mode, direction));
  if (use.kind != KeyKind::suite) return 0;
  const SuiteConstruction made = construction(use.suite);
  if (made == SuiteConstruction::gcm) return gcm_ps;
  const CipherMode mode = made == SuiteConstruction::cbc_hmac ? CipherMode::cbc : CipherMode::ctr;
  return hmac_ps + cipher_ps(block_cipher(use.suite), is_serial(mode, direction));
}

std::uint64_t rsa_ns(const Message& message, std::uint64_t size) {
  // In bytes, of which 2048 bits have 256; kept within the sizes of keys.
  const std::uint64_t bits =
      message.operation == Operation::rsa_generate ? message.rsa_bits : 8 * size;
  const std::uint64_t length = std::clamp<std::uint64_t>(bits, 2048, 8192) / 8;
  const auto scaled = [&](std::uint64_t cost, int power) {
    for (int i = 0; i < power; ++i)
      cost = cost * length / 256;
    return cost;
  };
  if (message.operation == Operation::rsa_public) return scaled(rsa_public_ns, 2);
  if (message.operation == Operation::rsa_private) return scaled(rsa_private_ns, 3);
  return scaled(rsa_generate_ns, 4);
}

bool by_falling_cost(const Task& a, const Task& b) {
  return a.cost_ns > b.cost_ns;
}

class Scheduler {
 public:
  Scheduler(const Payload& payload, MessageIndexes indexes, const ExpandedKeys& keys,
            unsigned worker_count_max)
      : payload_(payload), indexes_(indexes), keys_(keys), worker_count_max_(worker_count_max) {}

  Schedule plan() {
    costs_.resize(payload_.messages.size());
    std::uint64_t total = 0;
    for (const std::uint32_t index : indexes_) {
      costs_[index] = estimate_cost_ns(payload_, payload_.messages[index]);
      total = std::min(total + costs_[index], std::numeric_limits<std::uint64_t>::max() / 2);
    }
    const bool alone = worker_count_max_ == 1 || total < alone_cost_ns_max;
    if (payload_.order == MessageOrder::as_given)
      add_tasks_as_given(alone);
    else
      add_tasks_by_cost(alone);
    schedule_.worker_count = alone ? 1
                                   : static_cast<unsigned>(std::clamp<std::size_t>(
                                         schedule_.tasks.size(), 1, worker_count_max_));
    return std::move(schedule_);
  }

 private:
  void add_tasks_by_cost(bool alone) {
    for (const std::uint32_t index : indexes_) {
      if (!sort_out(index, alone)) rest_.push_back(index);
    }
    add_serial_tasks();
    add_message_tasks(alone);
    std::stable_sort(schedule_.tasks.begin(), schedule_.tasks.end(), by_falling_cost);
  }

  // Each message joins the last task, or begins a new one.
  void add_tasks_as_given(bool alone) {
    std::optional<BlockCipher> cipher_before;
    for (const std::uint32_t index : indexes_) {
      const std::optional<BlockCipher> cipher = lane_cipher(index);
      const bool joins = !schedule_.tasks.empty() && cipher == cipher_before &&
                         (cipher ? schedule_.tasks.back().count < serial_lane_count(*cipher)
                                 : alone || schedule_.tasks.back().cost_ns < task_cost_ns);
      if (!joins)
        schedule_.tasks.push_back(
            {.kind = cipher ? Task::Kind::serial_messages : Task::Kind::messages,
             .first = static_cast<std::uint32_t>(schedule_.order.size()),
             .count = 0,
             .cost_ns = 0});
      Task& task = schedule_.tasks.back();
      task.cost_ns = cipher ? std::max(task.cost_ns, costs_[index]) : task.cost_ns + costs_[index];
      ++task.count;
      schedule_.order.push_back(index);
      cipher_before = cipher;
    }
  }

  // The cipher whose lanes the message can share; nothing for a message that runs alone.
  std::optional<BlockCipher> lane_cipher(std::uint32_t index) const {
    const auto work = find_cipher_work(payload_, keys_, payload_.messages[index]);
    if (!work || !is_serial(work->key->mode(), work->direction)) return std::nullopt;
    if (work->key->lane_key() == nullptr) return std::nullopt;
    return work->key->cipher();
  }

  // True when the message was added to the split messages or to the serial ones.
  bool sort_out(std::uint32_t index, bool alone) {
    const Message& message = payload_.messages[index];
    if (message.operation == Operation::checksum) {
      const bool splits = !alone && costs_[index] >= 2 * task_cost_ns &&
                          find_checksum_input(payload_, message).has_value();
      if (splits) add_parts(index, nullptr);
      return splits;
    }
    const auto work = find_cipher_work(payload_, keys_, message);
    if (!work) return false;
    if (is_serial(work->key->mode(), work->direction)) {
      if (work->key->lane_key() == nullptr) return false;
      serial_[static_cast<std::size_t>(work->key->cipher())].push_back(index);
      return true;
    }
    if (alone || costs_[index] < 2 * task_cost_ns || message.input_size < 2 * part_size_bytes_min)
      return false;
    add_parts(index, &*work);
    return true;
  }

  void add_parts(std::uint32_t index, const CipherWork* work) {
    const Message& message = payload_.messages[index];
    const std::uint64_t wanted = std::clamp<std::uint64_t>(costs_[index] / task_cost_ns, 1,
                                                           parts_per_worker * worker_count_max_);
    const std::uint64_t size = round_up(message.input_size / wanted + 1, part_size_bytes_min);
    const auto first = static_cast<std::uint32_t>(schedule_.parts.size());
    for (std::uint64_t offset = 0; offset < message.input_size; offset += size) {
      const std::uint64_t part_size = std::min(size, message.input_size - offset);
      schedule_.tasks.push_back(
          {.kind = Task::Kind::part,
           .first = static_cast<std::uint32_t>(schedule_.parts.size()),
           .count = 1,
           .cost_ns = static_cast<std::uint64_t>(static_cast<double>(costs_[index]) *
                                                 static_cast<double>(part_size) /
                                                 static_cast<double>(message.input_size))});
      schedule_.parts.push_back({.message_index = index,
                                 .offset = offset,
                                 .size = part_size,
                                 .iv = work == nullptr
                                           ? CipherIv{}
                                           : iv_at(*work->key, message.iv, work->input, offset)});
    }
    schedule_.splits.push_back(
        {.message_index = index,
         .first_part = first,
         .part_count = static_cast<std::uint32_t>(schedule_.parts.size()) - first});
  }

  // Uses as few threads as the lanes allow, since lanes cost next to nothing. The longest messages
  // are dealt out first, so that the lanes of each thread end at about the same time.
  void add_serial_tasks() {
    for (std::size_t cipher = 0; cipher < serial_.size(); ++cipher) {
      std::vector<std::uint32_t>& indexes = serial_[cipher];
      if (indexes.empty()) continue;
      std::stable_sort(indexes.begin(), indexes.end(), [&](std::uint32_t a, std::uint32_t b) {
        return payload_.messages[a].input_size > payload_.messages[b].input_size;
      });
      const std::size_t lanes = serial_lane_count(static_cast<BlockCipher>(cipher));
      const std::size_t group_count =
          std::clamp<std::size_t>((indexes.size() + lanes - 1) / lanes, 1, worker_count_max_);
      for (std::size_t group = 0; group < group_count; ++group) {
        const std::size_t first = schedule_.order.size();
        std::uint64_t sum = 0;
        for (std::size_t i = group; i < indexes.size(); i += group_count) {
          schedule_.order.push_back(indexes[i]);
          sum += costs_[indexes[i]];
        }
        const std::uint64_t longest = costs_[schedule_.order[first]];
        schedule_.tasks.push_back(
            {.kind = Task::Kind::serial_messages,
             .first = static_cast<std::uint32_t>(first),
             .count = static_cast<std::uint32_t>(schedule_.order.size() - first),
             .cost_ns = std::max(longest, sum / lanes)});
      }
    }
  }

  void add_message_tasks(bool alone) {
    const auto dearer = [&](std::uint32_t a, std::uint32_t b) { return costs_[a] > costs_[b]; };
    if (!alone && !std::is_sorted(rest_.begin(), rest_.end(), dearer))
      std::stable_sort(rest_.begin(), rest_.end(), dearer);
    Task task = {};
    for (const std::uint32_t index : rest_) {
      if (task.count == 0)
        task = {.kind = Task::Kind::messages,
                .first = static_cast<std::uint32_t>(schedule_.order.size()),
                .count = 0,
                .cost_ns = 0};
      schedule_.order.push_back(index);
      ++task.count;
      task.cost_ns += costs_[index];
      if (!alone && task.cost_ns >= task_cost_ns) {
        schedule_.tasks.push_back(task);
        task.count = 0;
      }
    }
    if (task.count > 0) schedule_.tasks.push_back(task);
  }

  const Payload& payload_;
  const MessageIndexes indexes_;
  const ExpandedKeys& keys_;
  const unsigned worker_count_max_;
  Schedule schedule_;
  std::vector<std::uint64_t> costs_;                  // by message
  std::array<std::vector<std::uint32_t>, 5> serial_;  // by block cipher
  std::vector<std::uint32_t> rest_;
};

}  // namespace

std::uint64_t estimate_cost_ns(const Payload& payload, const Message& message) {
  // A message that is refused for its size takes no time.
  constexpr std::uint64_t size_max = 2 * message_size_bytes_max;
  const std::uint64_t size = std::max(message.input_size, message.output_capacity);
  if (size > size_max) return message_cost_ns;
  const auto bytes_cost = [](std::uint64_t bytes, std::uint64_t ps) {
    return message_cost_ns + bytes * ps / 1000;
  };
  switch (message.operation) {
    case Operation::checksum:
      return bytes_cost(message.input_size, checksum_ps);
    case Operation::encrypt:
    case Operation::decrypt:
      return bytes_cost(message.input_size, crypt_ps(payload, message));
    case Operation::rsa_public:
    case Operation::rsa_private:
    case Operation::rsa_generate:
      return rsa_ns(message, size);
    default:
      return bytes_cost(size, chain_ps);
  }
}

Schedule make_schedule(const Payload& payload, MessageIndexes indexes, const ExpandedKeys& keys,
                       unsigned worker_count_max) {
  return Scheduler(payload, indexes, keys, worker_count_max).plan();
}

}  // namespace nacre::engine

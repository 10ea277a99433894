// SPDX-License-Identifier: Apache-2.0
// Measures the costs of a CostModel. Payloads are made of chunks that compress about as files do.
// Each class runs on each backend, from the smallest size up; slow classes run in small payloads
// only.
#include <algorithm>
#include <chrono>
#include <functional>
#include <latch>
#include <numeric>
#include <utility>
#include <vector>

#include "gpu_engine/base/limits.h"
#include "gpu_engine/kdf/kdf.h"
#include "gpu_engine/plan/cost_model.h"
#include "gpu_engine/plan/cost_sample.h"
#include "gpu_engine/plan/device_codecs.h"
#include "gpu_engine/publickey/rsa.h"

namespace nacre::engine {
namespace {

constexpr std::uint64_t chunk = chunk_size_bytes_default;
constexpr CipherSuite gcm_suite = CipherSuite::aes_256_gcm;
// The kind of suite with HMAC that costs a device most: CBC encrypts serially as well.
constexpr CipherSuite hmac_suite = CipherSuite::aes_256_cbc;
// Each size is run run_count times, and then again, up to run_count_max times, until its runs
// together take runs_ns. A size is run once when the run takes long_ns. The quickest run counts.
// The first run of a class does not count, since it may load code or have the driver compile it.
constexpr int run_count = 2;
constexpr int run_count_max = 8;
constexpr double runs_ns = 3e6;
constexpr double long_ns = 20e6;
// When a size is predicted instead of measured, by CostModel::predict(). The second size: when the
// first takes first_ns_max. Later sizes: when the size before takes long_ns; or when it takes
// steady_cost_ns and steady_cost_growth times as long as the size before it.
constexpr double first_ns_max = 60e6;
constexpr double steady_cost_ns = 3e6;
constexpr double steady_cost_growth = 3;
// A class splits when both backends together take at most this share of the better one's time.
// Long runs compete more for shared memory and cores than the short runs here, hence the margin.
constexpr double split_gain = 0.8;

bool is_rsa(WorkKind work) {
  return work == WorkKind::rsa_private || work == WorkKind::rsa_public ||
         work == WorkKind::rsa_generate;
}

bool is_hmac(WorkKind work) {
  return work == WorkKind::seal_hmac || work == WorkKind::unseal_hmac ||
         work == WorkKind::reseal_hmac || work == WorkKind::crypt_hmac;
}

// Whether the class reads what another class has written.
bool reads_outputs(WorkKind work) {
  return work == WorkKind::unseal || work == WorkKind::unseal_hmac ||
         work == WorkKind::decompress || work == WorkKind::reseal || work == WorkKind::reseal_hmac;
}

// A level at which devices encode.
std::int8_t level_of(Codec codec) {
  const DeviceCodec* const found = find_device_codec(codec);
  return static_cast<std::int8_t>(found == nullptr ? 0 : found->encode_level_min);
}

// How many bytes a message of the class counts as: size_of().
std::uint64_t message_bytes(WorkKind work) {
  switch (work) {
    case WorkKind::rsa_private:
      return rsa_private_bytes;
    case WorkKind::rsa_public:
      return rsa_public_bytes;
    case WorkKind::rsa_generate:
      return rsa_generate_bytes;
    default:
      return chunk;
  }
}

class Measurement {
 public:
  Measurement(Arena input, Arena output) : input_(std::move(input)), output_(std::move(output)) {
    fill_cost_sample({input_.data(), input_.size()});
    random_bytes(key_);
  }

  static std::uint64_t record_room() {
    return round_up(std::max(record_size_bound(gcm_suite, Padding::none, chunk),
                             record_size_bound(hmac_suite, Padding::none, chunk)),
                    64);
  }

  // Runs the largest payload, whose outputs the classes of reads_outputs() then read.
  bool write_outputs(Backend& backend, WorkClass work) {
    Payload payload = make(work, CostModel::sizes.back());
    run(backend, payload);
    outputs_ = std::move(payload.results);
    return std::ranges::all_of(outputs_, &MessageResult::ok);
  }
  // Brings the chunks back from what was written.
  bool read_outputs(Backend& backend, WorkClass work) {
    Payload payload = make(work, CostModel::sizes.back());
    run(backend, payload);
    return std::ranges::all_of(payload.results, &MessageResult::ok);
  }

  // Nanoseconds, or nothing when a message failed.
  std::optional<double> measure(Backend& backend, WorkClass work, std::uint64_t size,
                                bool is_first) {
    Payload payload = make(work, size);
    const bool generates = work.kind == WorkKind::rsa_generate;
    // Making a new key takes longer than anything else that a first run does.
    if (is_first && !generates) run(backend, payload);
    const double ns = shortest_of_runs([&] { return run(backend, payload); });
    // Private and public operations use the first of the new keys.
    if (generates) rsa_key_ = SecretBytes(ByteView(output_.data(), payload.results[0].output_size));
    return succeeded(payload, ns);
  }

  // The time of the largest size when devices have a share of it. The longer run counts, since a
  // split has to gain for certain.
  std::optional<double> measure_both(Backend& cpu, Backend& cuda, WorkClass work,
                                     std::uint64_t cuda_bytes) {
    Payload payload = make(work, CostModel::sizes.back());
    double longest = 0;
    for (int i = 0; i < run_count; ++i) {
      payload.results.assign(payload.messages.size(), MessageResult{});
      const auto all = all_of(payload);
      const auto cut =
          all.begin() + static_cast<std::ptrdiff_t>(cuda_bytes / message_bytes(work.kind));
      std::latch cuda_ended(1);
      const auto begin = std::chrono::steady_clock::now();
      cuda.submit(payload, {all.begin(), cut}, [&] { cuda_ended.count_down(); });
      cpu.run(payload, MessageIndexes(cut, all.end()));
      cuda_ended.wait();
      longest = std::max(longest, since(begin));
    }
    return succeeded(payload, longest);
  }

 private:
  static double since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin)
        .count();
  }
  static double shortest_of_runs(const std::function<double()>& run_once) {
    double shortest = run_once();
    double all = shortest;
    for (int i = 1; i < run_count_max && shortest < long_ns; ++i) {
      if (i >= run_count && all > runs_ns) break;
      const double ns = run_once();
      shortest = std::min(shortest, ns);
      all += ns;
    }
    return shortest;
  }
  static std::optional<double> succeeded(const Payload& payload, double ns) {
    if (!std::ranges::all_of(payload.results, &MessageResult::ok)) return std::nullopt;
    return ns;
  }
  static std::vector<std::uint32_t> all_of(const Payload& payload) {
    std::vector<std::uint32_t> all(payload.messages.size());
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  static double run(Backend& backend, Payload& payload) {
    payload.results.assign(payload.messages.size(), MessageResult{});
    const auto all = all_of(payload);
    const auto begin = std::chrono::steady_clock::now();
    backend.run(payload, all);
    return since(begin);
  }

  // The numbers begin with a letter, so they are below the modulus.
  Payload make_rsa(WorkKind work, std::uint64_t size) {
    constexpr std::size_t modulus_size = rsa_bits_min / 8;
    const bool generates = work == WorkKind::rsa_generate;
    const std::size_t room = generates ? rsa_private_key_size_bound(rsa_bits_min) : modulus_size;
    Payload payload;
    payload.input = input_.data();
    payload.input_size = input_.size();
    payload.output = output_.data();
    payload.output_size = output_.size();
    const std::uint32_t key = payload.add_rsa_private_key(rsa_key_.view());
    for (std::uint64_t i = 0; i * message_bytes(work) < size; ++i)
      payload.add({.operation = generates                      ? Operation::rsa_generate
                                : work == WorkKind::rsa_public ? Operation::rsa_public
                                                               : Operation::rsa_private,
                   .key_index = key,
                   .input_size = generates ? 0 : modulus_size,
                   .output_offset = i * room,
                   .output_capacity = room,
                   .rsa_bits = rsa_bits_min});
    return payload;
  }

  Payload make(WorkClass work, std::uint64_t size) {
    if (is_rsa(work.kind)) return make_rsa(work.kind, size);
    const bool opens = reads_outputs(work.kind);
    Payload payload;
    payload.input = opens ? output_.data() : input_.data();
    payload.input_size = opens ? output_.size() : input_.size();
    payload.output = opens ? input_.data() : output_.data();
    payload.output_size = opens ? input_.size() : output_.size();
    const std::uint32_t key = add_key(payload, work.kind);
    for (std::uint64_t i = 0; i * chunk < size; ++i) {
      Message message = {.operation = operation_of(work.kind),
                         .codec = work.codec,
                         .level = level_of(work.codec),
                         .key_index = key,
                         .input_offset = i * chunk,
                         .input_size = chunk,
                         .output_offset = i * record_room(),
                         .output_capacity = record_room(),
                         .counter = static_cast<std::uint32_t>(i),
                         .new_key_index = key};
      if (opens) {
        message.input_offset = i * record_room();
        message.input_size = outputs_[i].output_size;
        if (message.operation != Operation::reseal) {
          message.output_offset = i * chunk;
          message.output_capacity = chunk;
        }
      }
      payload.add(message);
    }
    return payload;
  }

  static Operation operation_of(WorkKind work) {
    switch (work) {
      case WorkKind::seal:
      case WorkKind::seal_hmac:
        return Operation::seal;
      case WorkKind::unseal:
      case WorkKind::unseal_hmac:
        return Operation::unseal;
      case WorkKind::compress:
        return Operation::compress;
      case WorkKind::decompress:
        return Operation::decompress;
      case WorkKind::reseal:
      case WorkKind::reseal_hmac:
        return Operation::reseal;
      case WorkKind::checksum:
        return Operation::checksum;
      default:
        return Operation::encrypt;
    }
  }

  std::uint32_t add_key(Payload& payload, WorkKind work) const {
    const ByteView key(key_);
    const auto of_cipher = [&](BlockCipher cipher, CipherMode mode) {
      return payload.add_key(cipher, mode, key.first(key_size_bytes(cipher)));
    };
    switch (work) {
      case WorkKind::crypt:
        return of_cipher(BlockCipher::aes_256, CipherMode::ctr);
      case WorkKind::crypt_serial:
        return of_cipher(BlockCipher::aes_256, CipherMode::cbc);
      case WorkKind::crypt_des:
        return of_cipher(BlockCipher::des, CipherMode::ctr);
      case WorkKind::crypt_des_serial:
        return of_cipher(BlockCipher::des, CipherMode::cbc);
      default: {
        const CipherSuite suite = is_hmac(work) ? hmac_suite : gcm_suite;
        return payload.add_key(suite, key.first(key_size_bytes(suite)));
      }
    }
  }

  Arena input_;
  Arena output_;
  std::array<Byte, suite_key_size_bytes_max> key_;
  SecretBytes rsa_key_;
  std::vector<MessageResult> outputs_;  // of the class that writes records or streams
};

// Measures class after class; false when a message failed.
class Costing {
 public:
  Costing(Backend& cpu, Backend& cuda, Measurement measurement)
      : cpu_(cpu), cuda_(cuda), measurement_(std::move(measurement)) {}

  bool measure_all() {
    using enum WorkKind;
    for (const WorkKind kind : {rsa_generate, rsa_private, rsa_public, checksum, crypt,
                                crypt_serial, crypt_des, crypt_des_serial, crypt_hmac}) {
      if (!measure({kind})) return false;
    }
    for (const Codec codec : costed_codecs) {
      if (codec != Codec::none && !measure_pair(compress, decompress, codec)) return false;
      if (!measure_pair(seal, unseal, codec)) return false;
      if (codec == Codec::lz77 && !measure_reseal(reseal, unseal)) return false;
    }
    for (const Codec codec : {Codec::none, Codec::lz77}) {
      if (!measure_pair(seal_hmac, unseal_hmac, codec)) return false;
    }
    if (!measure_reseal(reseal_hmac, unseal_hmac)) return false;
    derive();
    return true;
  }

  CostModel model(unsigned cpu_threads) const {
    return CostModel(costs_[0], costs_[1], splits_, cpu_threads);
  }

 private:
  bool measure_pair(WorkKind writes, WorkKind reads, Codec codec) {
    return measure({writes, codec}) && measurement_.write_outputs(cuda_, {writes, codec}) &&
           measure({reads, codec});
  }
  // Reseals the records that were written last. This writes over the chunks, which are then opened
  // again.
  bool measure_reseal(WorkKind work, WorkKind opens) {
    return measure({work}) && measurement_.read_outputs(cuda_, {opens, Codec::lz77});
  }

  bool measure(WorkClass work) {
    const std::size_t at = index_of(work);
    for (int backend = 0; backend < 2; ++backend) {
      CostModel::ClassCosts& costs = costs_[backend][at];
      for (std::size_t i = 0; i < CostModel::size_count; ++i) {
        if (i > 0 && is_predictable(costs, i)) {
          costs[i] = CostModel::predict(costs, i);
          continue;
        }
        const auto ns =
            measurement_.measure(backend == 0 ? cpu_ : cuda_, work, CostModel::sizes[i], i == 0);
        if (!ns) return false;
        costs[i] = *ns;
      }
      costs = CostModel::without_hiccups(costs);
    }
    return measure_split(work);
  }

  // Whether the cost of sizes[i] follows from the known ones before it.
  static bool is_predictable(const CostModel::ClassCosts& costs, std::size_t i) {
    if (i == 1) return costs[0] > first_ns_max;
    return costs[i - 1] > long_ns ||
           (costs[i - 1] > steady_cost_ns && costs[i - 1] > steady_cost_growth * costs[i - 2]);
  }

  // Whether both backends together are sooner.
  bool measure_split(WorkClass work) {
    const std::size_t at = index_of(work);
    if (is_rsa(work.kind)) {
      // Arithmetic hardly uses shared memory, so private operations gain from a split. For the
      // others, padding and checks of new keys are the cpu's work in any case.
      splits_[at] = work.kind == WorkKind::rsa_private;
      return true;
    }
    splits_[at] = true;
    const std::uint64_t whole = CostModel::sizes.back();
    const std::uint64_t share =
        model(1).cuda_share({.work_class = work, .bytes = whole, .longest = chunk}, 1, 0, 0);
    if (share == 0 || share == whole) return true;
    const auto both = measurement_.measure_both(cpu_, cuda_, work, share);
    if (!both) return false;
    splits_[at] = *both < std::min(costs_[0][at].back(), costs_[1][at].back()) * split_gain;
    return true;
  }

  // Fills in the classes that are not measured. A codec under a suite with HMAC is assumed to add
  // as much to the cost of none or lz77, whichever gives records of about its length, as it adds
  // under GCM.
  void derive() {
    for (const Codec codec : costed_codecs) {
      const Codec like = codec == Codec::rle ? Codec::none : Codec::lz77;
      for (const auto& [hmac, gcm] : {std::pair{WorkKind::seal_hmac, WorkKind::seal},
                                      std::pair{WorkKind::unseal_hmac, WorkKind::unseal}}) {
        if (codec == Codec::none || codec == Codec::lz77) continue;
        splits_[index_of({hmac, codec})] = splits_[index_of({hmac, like})];
        for (CostModel::Costs& costs : costs_) {
          for (std::size_t i = 0; i < CostModel::size_count; ++i) {
            const double without = costs[index_of({gcm, codec})][i];
            const double added = without - costs[index_of({gcm, like})][i];
            costs[index_of({hmac, codec})][i] =
                std::max(costs[index_of({hmac, like})][i] + added, without);
          }
        }
      }
    }
    copy_class({WorkKind::seal, Codec::none}, {WorkKind::compress, Codec::none});
    copy_class({WorkKind::unseal, Codec::none}, {WorkKind::decompress, Codec::none});
  }
  void copy_class(WorkClass from, WorkClass to) {
    for (CostModel::Costs& costs : costs_)
      costs[index_of(to)] = costs[index_of(from)];
    splits_[index_of(to)] = splits_[index_of(from)];
  }

  Backend& cpu_;
  Backend& cuda_;
  Measurement measurement_;
  CostModel::Costs costs_[2] = {};
  WorkClasses splits_;
};

}  // namespace

std::optional<CostModel> CostModel::measure(
    Backend& cpu, Backend& cuda, const std::function<Result<Arena>(std::size_t)>& allocate,
    unsigned cpu_threads) {
  // Opening writes where sealing read, and resealing needs room for records there.
  auto input = allocate(sizes.back() / chunk * Measurement::record_room());
  auto output = allocate(sizes.back() / chunk * Measurement::record_room());
  if (!input || !output) return std::nullopt;
  try {
    Costing costing(cpu, cuda, Measurement(std::move(*input), std::move(*output)));
    if (!costing.measure_all()) return std::nullopt;
    return costing.model(cpu_threads);
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
}

}  // namespace nacre::engine

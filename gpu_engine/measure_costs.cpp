// SPDX-License-Identifier: Apache-2.0
// Measures what a CostModel says: payloads of chunks that compress about as files do, each class on
// each backend, from the smallest size up.
#include <algorithm>
#include <chrono>
#include <latch>
#include <numeric>
#include <vector>

#include "gpu_engine/base/limits.h"
#include "gpu_engine/cost_model.h"
#include "gpu_engine/kdf/kdf.h"
#include "gpu_engine/publickey/rsa.h"

namespace nacre::engine {
namespace {

constexpr std::uint64_t chunk = chunk_size_bytes_default;
constexpr CipherSuite gcm_suite = CipherSuite::aes_256_gcm;
// Of the suites with HMAC those that are the dearest for a device: it encrypts serially as well.
constexpr CipherSuite hmac_suite = CipherSuite::aes_256_cbc;
// One run is enough for what takes this long; the rest is estimated from it.
constexpr double run_ns_max = 60e6;
constexpr int run_count = 3;
// Both backends together have to be sooner than the better one by this much: what they share grows
// scarcer in long runs than in the short ones here.
constexpr double split_gain = 0.8;

bool is_rsa(WorkClass work) {
  return work == WorkClass::rsa_private || work == WorkClass::rsa_public ||
         work == WorkClass::rsa_generate;
}

// That a message of the class stands for.
std::uint64_t message_bytes(WorkClass work) {
  switch (work) {
    case WorkClass::rsa_private:
      return rsa_private_bytes;
    case WorkClass::rsa_public:
      return rsa_public_bytes;
    case WorkClass::rsa_generate:
      return rsa_generate_bytes;
    default:
      return chunk;
  }
}

// Words from a small vocabulary between noise: 2 to 3 times smaller under lz77.
void fill(MutableByteView bytes) {
  std::uint32_t state = 12345;
  const auto next = [&] { return state = state * 1664525 + 1013904223, state >> 8; };
  std::size_t at = 0;
  while (at < bytes.size()) {
    const std::uint32_t word = next() % 600;
    std::uint32_t letters = word * 2654435761u;
    for (std::uint32_t i = 0; i < 4 + word % 7 && at < bytes.size(); ++i, letters >>= 4)
      bytes[at++] = static_cast<Byte>('a' + letters % 16);
    if (at < bytes.size()) bytes[at++] = static_cast<Byte>(next() % 5 == 0 ? next() : ' ');
  }
}

class Measurement {
 public:
  Measurement(Arena input, Arena output) : input_(std::move(input)), output_(std::move(output)) {
    fill({input_.data(), input_.size()});
    random_bytes(key_);
    if (auto key = RsaPrivateKey::generate(rsa_bits_min)) {
      if (auto der = key->to_der()) rsa_key_ = std::move(*der);
    }
  }

  static std::uint64_t record_room() {
    return round_up(std::max(record_size_bound(gcm_suite, Padding::none, chunk),
                             record_size_bound(hmac_suite, Padding::none, chunk)),
                    64);
  }

  // Seals the chunks, so that there is something to open; work is how.
  bool seal(Backend& backend, WorkClass work) {
    records_ = make(work, CostModel::sizes.back());
    run(backend, records_);
    return std::ranges::all_of(records_.results, &MessageResult::ok);
  }
  // Brings the chunks back from the records.
  bool unseal(Backend& backend, WorkClass work) {
    Payload payload = make(work, CostModel::sizes.back());
    run(backend, payload);
    return std::ranges::all_of(payload.results, &MessageResult::ok);
  }

  // Nanoseconds, or nothing when a message failed.
  std::optional<double> measure(Backend& backend, WorkClass work, std::uint64_t size) {
    Payload payload = make(work, size);
    // The first one may load code, or have the driver compile it.
    run(backend, payload);
    std::vector<double> times;
    for (int i = 0; i < run_count; ++i) {
      times.push_back(run(backend, payload));
      if (!std::ranges::all_of(payload.results, &MessageResult::ok)) return std::nullopt;
      if (times.back() > run_ns_max) break;
    }
    return median(times);
  }

  // The largest size, of which the devices have a share.
  std::optional<double> measure_both(Backend& cpu, Backend& cuda, WorkClass work,
                                     std::uint64_t cuda_bytes) {
    Payload payload = make(work, CostModel::sizes.back());
    std::vector<double> times;
    for (int i = 0; i < run_count; ++i) {
      payload.results.assign(payload.messages.size(), MessageResult{});
      const auto all = all_of(payload);
      const auto cut = all.begin() + static_cast<std::ptrdiff_t>(cuda_bytes / message_bytes(work));
      std::latch cuda_ended(1);
      const auto begin = std::chrono::steady_clock::now();
      cuda.submit(payload, {all.begin(), cut}, [&] { cuda_ended.count_down(); });
      cpu.run(payload, MessageIndexes(cut, all.end()));
      cuda_ended.wait();
      times.push_back(since(begin));
      if (!std::ranges::all_of(payload.results, &MessageResult::ok)) return std::nullopt;
    }
    return median(times);
  }

 private:
  static double since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin)
        .count();
  }
  static double median(std::vector<double>& times) {
    std::ranges::sort(times);
    return times[times.size() / 2];
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

  // Numbers that begin with a letter, so below the modulus.
  Payload make_rsa(WorkClass work, std::uint64_t size) {
    constexpr std::size_t modulus_size = rsa_bits_min / 8;
    const bool generates = work == WorkClass::rsa_generate;
    const std::size_t room = generates ? rsa_private_key_size_bound(rsa_bits_min) : modulus_size;
    Payload payload;
    payload.input = input_.data();
    payload.input_size = input_.size();
    payload.output = output_.data();
    payload.output_size = output_.size();
    const std::uint32_t key = payload.add_rsa_private_key(rsa_key_.view());
    for (std::uint64_t i = 0; i * message_bytes(work) < size; ++i)
      payload.messages.push_back({.operation = generates ? Operation::rsa_generate
                                               : work == WorkClass::rsa_public
                                                   ? Operation::rsa_public
                                                   : Operation::rsa_private,
                                  .key_index = key,
                                  .input_size = generates ? 0 : modulus_size,
                                  .output_offset = i * room,
                                  .output_capacity = room,
                                  .rsa_bits = rsa_bits_min});
    return payload;
  }

  Payload make(WorkClass work, std::uint64_t size) {
    if (is_rsa(work)) return make_rsa(work, size);
    const bool unseals = work == WorkClass::unseal || work == WorkClass::unseal_hmac;
    const bool opens = unseals || work == WorkClass::reseal || work == WorkClass::reseal_hmac;
    const bool plain = work == WorkClass::seal_plain || work == WorkClass::seal_plain_hmac;
    const bool hmac = work >= WorkClass::seal_coded_hmac;
    Payload payload;
    payload.input = opens ? output_.data() : input_.data();
    payload.input_size = opens ? output_.size() : input_.size();
    payload.output = opens ? input_.data() : output_.data();
    payload.output_size = opens ? input_.size() : output_.size();
    const CipherSuite suite = hmac ? hmac_suite : gcm_suite;
    const ByteView key(key_);
    const ByteView cipher_key = key.first(key_size_bytes(BlockCipher::aes_256));
    const std::uint32_t suite_key = payload.add_key(suite, key.first(key_size_bytes(suite)));
    const std::uint32_t ctr = payload.add_key(BlockCipher::aes_256, CipherMode::ctr, cipher_key);
    const std::uint32_t cbc = payload.add_key(BlockCipher::aes_256, CipherMode::cbc, cipher_key);
    const ByteView des_key = key.first(key_size_bytes(BlockCipher::des));
    const std::uint32_t des_ctr = payload.add_key(BlockCipher::des, CipherMode::ctr, des_key);
    const std::uint32_t des_cbc = payload.add_key(BlockCipher::des, CipherMode::cbc, des_key);
    for (std::uint64_t i = 0; i * chunk < size; ++i) {
      Message message = {.codec = plain ? Codec::none : Codec::lz77,
                         .key_index = suite_key,
                         .input_offset = i * chunk,
                         .input_size = chunk,
                         .output_offset = i * record_room(),
                         .output_capacity = record_room(),
                         .counter = static_cast<std::uint32_t>(i),
                         .new_key_index = suite_key};
      switch (work) {
        case WorkClass::seal_coded:
        case WorkClass::seal_plain:
        case WorkClass::seal_coded_hmac:
        case WorkClass::seal_plain_hmac:
          message.operation = Operation::seal;
          break;
        case WorkClass::unseal:
        case WorkClass::reseal:
        case WorkClass::unseal_hmac:
        case WorkClass::reseal_hmac:
          message.operation = unseals ? Operation::unseal : Operation::reseal;
          message.input_offset = i * record_room();
          message.input_size = records_.results[i].output_size;
          message.output_offset = i * (unseals ? chunk : record_room());
          message.output_capacity = unseals ? chunk : record_room();
          break;
        case WorkClass::compress:
        case WorkClass::decompress:  // taken to cost as unsealing; see measure()
          message.operation = Operation::compress;
          break;
        case WorkClass::checksum:
          message.operation = Operation::checksum;
          break;
        case WorkClass::crypt:
        case WorkClass::crypt_serial:
          message.operation = Operation::encrypt;
          message.key_index = work == WorkClass::crypt ? ctr : cbc;
          break;
        case WorkClass::crypt_des:
        case WorkClass::crypt_des_serial:
          message.operation = Operation::encrypt;
          message.key_index = work == WorkClass::crypt_des ? des_ctr : des_cbc;
          break;
        case WorkClass::crypt_hmac:
          message.operation = Operation::encrypt;
          break;
        case WorkClass::rsa_private:
        case WorkClass::rsa_public:
        case WorkClass::rsa_generate:
          break;
      }
      payload.messages.push_back(message);
    }
    return payload;
  }

  Arena input_;
  Arena output_;
  std::array<Byte, suite_key_size_bytes_max> key_;
  SecretBytes rsa_key_;
  Payload records_;
};

}  // namespace

std::optional<CostModel> CostModel::measure(
    Backend& cpu, Backend& cuda, const std::function<Result<Arena>(std::size_t)>& allocate) {
  // Unsealing writes where sealing read, and resealing needs room for records there.
  auto input = allocate(sizes.back() / chunk * Measurement::record_room());
  auto output = allocate(sizes.back() / chunk * Measurement::record_room());
  if (!input || !output) return std::nullopt;
  try {
    Measurement measurement(std::move(*input), std::move(*output));
    Costs costs[2];
    std::bitset<work_class_count> splits;
    // What opens records comes last: resealing writes over the chunks.
    constexpr std::array<WorkClass, work_class_count - 1> order = {
        WorkClass::rsa_private,     WorkClass::rsa_public,
        WorkClass::rsa_generate,    WorkClass::checksum,
        WorkClass::crypt,           WorkClass::crypt_serial,
        WorkClass::crypt_des,       WorkClass::crypt_des_serial,
        WorkClass::crypt_hmac,      WorkClass::compress,
        WorkClass::seal_plain,      WorkClass::seal_plain_hmac,
        WorkClass::seal_coded_hmac, WorkClass::seal_coded,
        WorkClass::unseal,          WorkClass::reseal,
        WorkClass::unseal_hmac,     WorkClass::reseal_hmac};
    for (const WorkClass work : order) {
      if (work == WorkClass::unseal && !measurement.seal(cuda, WorkClass::seal_coded))
        return std::nullopt;
      if (work == WorkClass::unseal_hmac && (!measurement.unseal(cuda, WorkClass::unseal) ||
                                             !measurement.seal(cuda, WorkClass::seal_coded_hmac)))
        return std::nullopt;
      for (int backend = 0; backend < 2; ++backend) {
        auto& of_class = costs[backend][static_cast<std::size_t>(work)];
        for (std::size_t i = 0; i < size_count; ++i) {
          if (i > 0 && of_class[i - 1] > run_ns_max) {
            of_class[i] = of_class[i - 1] * static_cast<double>(sizes[i] / sizes[i - 1]);
            continue;
          }
          const auto ns = measurement.measure(backend == 0 ? cpu : cuda, work, sizes[i]);
          if (!ns) return std::nullopt;
          // More never costs less, whatever a hiccup says.
          of_class[i] = i == 0 ? *ns : std::max(*ns, of_class[i - 1]);
        }
      }
      const auto at = static_cast<std::size_t>(work);
      if (is_rsa(work)) {
        // Arithmetic shares no memory; but padding and checks of new keys are the cpu's either way.
        splits[at] = work == WorkClass::rsa_private;
        continue;
      }
      const double alone = std::min(costs[0][at].back(), costs[1][at].back());
      splits[at] = true;
      const CostModel model(costs[0], costs[1], splits);
      const std::uint64_t share =
          model.cuda_share({.work_class = work, .bytes = sizes.back(), .longest = chunk}, 1, 0, 0);
      if (share == 0 || share == sizes.back()) continue;
      const auto both = measurement.measure_both(cpu, cuda, work, share);
      if (!both) return std::nullopt;
      splits[at] = *both < alone * split_gain;
    }
    for (Costs& of_backend : costs)
      of_backend[static_cast<std::size_t>(WorkClass::decompress)] =
          of_backend[static_cast<std::size_t>(WorkClass::unseal)];
    splits[static_cast<std::size_t>(WorkClass::decompress)] =
        splits[static_cast<std::size_t>(WorkClass::unseal)];
    return CostModel(costs[0], costs[1], splits);
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
}

}  // namespace nacre::engine

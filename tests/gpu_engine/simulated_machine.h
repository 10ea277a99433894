// SPDX-License-Identifier: Apache-2.0
// A planner over a machine whose payloads take other times than the cost model says. Nothing runs.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>

#include "gpu_engine/cpu/cpu_backend.h"
#include "gpu_engine/plan/planner.h"
#include "gpu_engine/publickey/rsa.h"
#include "tests/gpu_engine/fake_device.h"
#include "tests/gpu_engine/test_data.h"
#include "tests/support/temporary_directory.h"

namespace nacre::engine {

inline constexpr std::array sides = {Side::cpu, Side::cuda};
// The number of octaves of sizes, also of parts of payloads, for which factors are drawn.
inline constexpr std::size_t octave_count = 40;

// The kind of all messages of a payload. Cipher and mode count only if the messages encrypt or
// decrypt.
struct Shape {
  Operation operation;
  Codec codec = Codec::none;
  BlockCipher cipher = BlockCipher::aes_256;
  CipherMode mode = CipherMode::ctr;
};
inline constexpr std::array shapes = {
    Shape{Operation::seal},
    Shape{Operation::seal, Codec::lz77},
    Shape{Operation::seal, Codec::gdeflate},
    Shape{Operation::unseal, Codec::lz77},
    Shape{Operation::unseal, Codec::gdeflate},
    Shape{Operation::compress, Codec::huffman},
    Shape{Operation::decompress, Codec::lzw},
    Shape{Operation::checksum},
    Shape{Operation::encrypt},
    Shape{Operation::decrypt},
    Shape{Operation::encrypt, Codec::none, BlockCipher::aes_256, CipherMode::ofb},
    Shape{Operation::decrypt, Codec::none, BlockCipher::des, CipherMode::ecb},
    Shape{Operation::encrypt, Codec::none, BlockCipher::des_ede3, CipherMode::cbc},
    Shape{Operation::rsa_private},
    Shape{Operation::rsa_generate}};
inline constexpr int size_count = 7;  // 1 to 64 MiB

// A payload of RSA operations of 2,048 bits, as many as count as size bytes.
inline Payload make_rsa_payload(Operation operation, std::uint64_t size) {
  constexpr std::uint32_t bits = 2048;
  Payload payload;
  Message message = {.operation = operation,
                     .key_index = payload.add_rsa_private_key(Bytes(32)),
                     .input_size = bits / 8,
                     .output_capacity = bits / 8};
  if (operation == Operation::rsa_generate) {
    message.rsa_bits = bits;
    message.output_capacity = rsa_private_key_size_bound(bits);
  }
  payload.input_size = payload.output_size = 1u << 20;
  payload.messages.assign(size / size_of(message), message);
  return payload;
}

// A payload of about size plain bytes. It is never run, so it has no arenas.
inline Payload make_payload(Shape shape, std::uint64_t size) {
  if (is_rsa(shape.operation)) return make_rsa_payload(shape.operation, size);
  const bool crypts =
      shape.operation == Operation::encrypt || shape.operation == Operation::decrypt;
  Payload payload;
  // Whole blocks.
  const std::uint64_t piece = std::clamp<std::uint64_t>(size / 256 * 16, 64u << 10, 1u << 20);
  payload.input_size = payload.output_size = size + (1u << 20);
  const std::uint32_t key =
      crypts ? payload.add_key(shape.cipher, shape.mode, Bytes(key_size_bytes(shape.cipher)))
             : payload.add_key(CipherSuite::aes_256_gcm, Bytes(32));
  const bool opens =
      shape.operation == Operation::unseal || shape.operation == Operation::decompress;
  for (std::uint64_t at = 0; at + piece <= size; at += piece) {
    payload.messages.push_back(
        {.operation = shape.operation,
         .codec = shape.codec,
         .level = static_cast<std::int8_t>(shape.codec == Codec::gdeflate ? 1 : 0),
         .key_index = key,
         .input_size = opens ? piece / 2 : piece,
         .output_capacity = shape.operation == Operation::checksum ? 0
                            : opens                                ? piece
                                                                   : piece + 4096});
  }
  return payload;
}

// A planner, and a machine on which parts of payloads take the model's time, times a factor for
// each backend, class and octave of sizes.
class Machine {
 public:
  Machine(const CostModel::Costs& cpu, const CostModel::Costs& cuda, const WorkClasses& splits,
          bool learns)
      : model_(cpu, cuda, splits) {
    const std::string name = "cuda, simulated";
    const std::string file = directory_.path() + "/costs";
    const std::string cpu_name = CpuBackend::create(1, 1).value()->name();
    model_.write(file, CostModel::machine(cpu_name, name));
    const DeviceMaker devices = [this, name](const CudaOptions&, Backend& backend) {
      return Result<std::unique_ptr<DeviceBackend>>(
          std::make_unique<FakeDevice>(name, device, backend, 1));
    };
    planner_.emplace(
        Planner::create({.thread_count = 1, .cost_file = file}, devices, [this, learns] {
          return learns ? now : 0;
        }).value());
    for (auto& of_side : factors) {
      for (auto& of_class : of_side)
        of_class.fill(1);
    }
  }

  void draw_factors(TestRandom& random, double from, double to) {
    for (auto& of_side : factors) {
      for (auto& of_class : of_side) {
        for (double& factor : of_class)
          factor = from * std::pow(to / from, static_cast<double>(random.below(10000)) / 9999);
      }
    }
  }

  double true_ns(Side side, const Payload& payload, std::uint64_t bytes) const {
    if (bytes == 0) return 0;
    const WorkClass work = class_of(payload, payload.messages[0]);
    const auto size = static_cast<double>(bytes);
    const double ns = side == Side::cpu ? model_.cpu_ns(work, size, 0)
                                        : model_.cuda_ns(work, size * device->load_factor, 0);
    const double load = side == Side::cpu ? 1 : device->load_factor.load();
    const auto octave = static_cast<std::size_t>(std::log2(size * load));
    return ns * factors[index_of(side)][index_of(work)][octave];
  }
  // The whole payload on the better backend alone.
  double better_ns(const Payload& payload) const {
    const std::uint64_t bytes = bytes_of(payload);
    const double cpu = true_ns(Side::cpu, payload, bytes);
    return device->load_factor == 0 ? cpu : std::min(cpu, true_ns(Side::cuda, payload, bytes));
  }
  static std::uint64_t bytes_of(const Payload& payload) {
    std::uint64_t bytes = 0;
    for (const Message& message : payload.messages)
      bytes += size_of(message);
    return bytes;
  }
  // By side.
  static std::array<std::uint64_t, 2> bytes_of(const Payload& payload, const Plan& plan) {
    std::array<std::uint64_t, 2> bytes = {};
    for (const std::uint32_t index : plan.cpu)
      bytes[0] += size_of(payload.messages[index]);
    for (const KindGroup& group : plan.cuda) {
      for (const std::uint32_t index : group.indexes)
        bytes[1] += size_of(payload.messages[index]);
    }
    return bytes;
  }

  // Runs it while nothing else does, and returns its time. slowed: what all of it is multiplied by.
  double run(const Payload& payload, double slowed = 1) {
    const Plan plan = planner_->plan(payload, false);
    const auto bytes = bytes_of(payload, plan);
    used_cuda = bytes[1] > 0;
    std::array<double, 2> took = {};
    for (const Side side : sides) {
      double& cold = coldness[index_of(side)];
      double& awake = awake_ns[index_of(side)];
      const double whole =
          awake < wake_ns[index_of(side)] ? wake_factor : 1 + cold * (cold_factor - 1);
      took[index_of(side)] = slowed * true_ns(side, payload, bytes[index_of(side)]) * whole;
      cold = bytes[index_of(side)] > 0 ? cold * cold_left : 1;
      awake = bytes[index_of(side)] > 0 ? awake + took[index_of(side)] : 0;
    }
    const std::uint64_t began = now;
    const Side first = took[0] <= took[1] ? Side::cpu : Side::cuda;
    for (const Side side : {first, first == Side::cpu ? Side::cuda : Side::cpu}) {
      now = began + static_cast<std::uint64_t>(took[index_of(side)]);
      planner_->ended(plan, side);
    }
    now += 1000;
    return std::max(took[0], took[1]);
  }
  Planner& planner() { return *planner_; }

  std::uint64_t now = 1;
  std::array<std::array<std::array<double, octave_count>, work_class_count>, 2> factors;
  bool used_cuda = false;  // by the last payload that ran
  // The factor by which a backend is slower with its first payload after the other backend ran one,
  // and the share of that slowdown that is left after each further payload.
  double cold_factor = 1;
  double cold_left = 0;
  std::array<double, 2> coldness = {1, 1};
  // Until it has had work for so long, it takes this many times as long.
  std::array<double, 2> wake_ns = {};
  double wake_factor = 1;
  std::array<double, 2> awake_ns = {};
  const std::shared_ptr<DeviceState> device = std::make_shared<DeviceState>();

 private:
  const tests::TemporaryDirectory directory_;
  const CostModel model_;
  std::optional<Planner> planner_;
};

inline CostModel::Costs costs_of(double latency_ns, double ns_per_byte) {
  CostModel::Costs costs;
  for (auto& of_class : costs) {
    for (std::size_t i = 0; i < CostModel::size_count; ++i)
      of_class[i] = latency_ns + ns_per_byte * static_cast<double>(CostModel::sizes[i]);
  }
  return costs;
}
// Costs as measured on a machine. The cpu does 7 GB/s. A device does 20 GB/s, after half a
// millisecond. Both cost the same at 5 MiB.
inline const CostModel::Costs cpu_costs = costs_of(0, 0.14);
inline const CostModel::Costs cuda_costs = costs_of(5e5, 0.05);

}  // namespace nacre::engine

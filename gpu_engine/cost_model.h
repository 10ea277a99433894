// SPDX-License-Identifier: Apache-2.0
// What work costs on each backend of this machine, measured once and kept in a file; and how to
// deal work out by it.
//
// A cost is the time of a whole payload of one class, by its size: a device needs milliseconds for
// any batch, then grows slowly, so no single speed describes it. Between measured sizes costs are
// interpolated, beyond the last they grow as between the last two, below the first the cpu's are in
// proportion and a device's stay. Where a device gives each message to one thread, it also takes as
// long as that thread does for the longest message. Immutable, so thread-safe.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "gpu_engine/backend.h"

namespace nacre::engine {

// Messages that cost alike.
enum class WorkClass : std::uint8_t {
  seal_coded,
  seal_plain,
  unseal,
  reseal,
  compress,
  decompress,
  checksum,
  crypt,
  crypt_serial,  // a block cipher's serial modes
  // Bare DES and 3DES: on the cpu some thirty times as dear as AES. Under a suite they count as
  // AES.
  crypt_des,
  crypt_des_serial,
  // Under a suite with HMAC, of which a device gives each message to one thread.
  seal_coded_hmac,
  seal_plain_hmac,
  unseal_hmac,
  reseal_hmac,  // of or to such a suite
  crypt_hmac,
  rsa_private,
  rsa_public,
  rsa_generate,
};
inline constexpr std::size_t work_class_count = 19;

// For how many bytes an operation of 2,048 bits stands, so that costs by size say something of RSA,
// too: measured payloads have 128 to 8,192 private operations, and 2 to 128 new keys.
inline constexpr std::uint64_t rsa_private_bytes = 8u << 10;
inline constexpr std::uint64_t rsa_public_bytes = 512;
inline constexpr std::uint64_t rsa_generate_bytes = 512u << 10;

// For messages that both backends can do.
WorkClass class_of(const Payload& payload, const Message& message);
// The plain bytes that a message stands for. For RSA they grow as the work does: with the square
// of the modulus's length, for private operations the cube, for new keys the fourth power.
std::uint64_t size_of(const Message& message);

// Messages of one class.
struct Work {
  WorkClass work_class = WorkClass::seal_coded;
  std::uint64_t bytes = 0;    // of all of them
  std::uint64_t longest = 0;  // bytes of one
};

class CostModel {
 public:
  static constexpr std::size_t size_count = 4;
  // Plain bytes of the payloads that are measured.
  static constexpr std::array<std::uint64_t, size_count> sizes = {1u << 20, 4u << 20, 16u << 20,
                                                                  64u << 20};
  using Costs = std::array<std::array<double, size_count>, work_class_count>;  // nanoseconds

  // Runs payloads on both backends, a second or two in all. allocate gives their memory. Nothing
  // when there is no memory or a message fails.
  static std::optional<CostModel> measure(
      Backend& cpu, Backend& cuda, const std::function<Result<Arena>(std::size_t)>& allocate);
  // Names what costs depend on: the backends, the processor, the engine's version and this model's.
  static std::string machine(const std::string& cpu_name, const std::string& cuda_name);
  // What a file of this machine says; nothing where there is none, or it is another machine's.
  static std::optional<CostModel> read(const std::string& file, const std::string& machine);
  // Replaces the file as a whole. A cost that could not be kept is measured again: no error.
  void write(const std::string& file, const std::string& machine) const;

  // splits: classes for which both backends together are sooner than the better one alone. They
  // are not where the host's memory is what both wait for.
  CostModel(const Costs& cpu, const Costs& cuda, const std::bitset<work_class_count>& splits)
      : cpu_(cpu), cuda_(cuda), splits_(splits) {}

  double cpu_ns(WorkClass work, double bytes) const;
  // longest: bytes of the longest message.
  double cuda_ns(WorkClass work, double bytes, double longest) const;
  // Of bytes of work, how many to give to the devices so that all ends soonest, when each backend
  // has that many nanoseconds of other work before it. None of a class that does not split where
  // the devices alone are slower, however busy the cpu is. cuda_load: how many times as much as
  // when the costs were measured each device has to take, since others are lost; at least 1.
  std::uint64_t cuda_share(const Work& work, double cuda_load, double cpu_backlog_ns,
                           double cuda_backlog_ns) const;

 private:
  static double cost(const Costs& costs, WorkClass work, double bytes);

  Costs cpu_;
  Costs cuda_;
  std::bitset<work_class_count> splits_;
};

}  // namespace nacre::engine

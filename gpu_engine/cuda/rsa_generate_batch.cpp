// SPDX-License-Identifier: Apache-2.0
// New RSA keys. A device finds primes, with 32 rounds of Miller-Rabin for each. The host makes keys
// of the primes, and checks each key with OpenSSL's arithmetic before it is given out
// (rsa_numbers.h).
#include <algorithm>
#include <atomic>
#include <cmath>
#include <numbers>
#include <optional>
#include <semaphore>
#include <thread>

#include "gpu_engine/base/blocked_signals.h"
#include "gpu_engine/cuda/kernels/prime_search.h"
#include "gpu_engine/cuda/rsa_parts.h"
#include "gpu_engine/kdf/kdf.h"
#include "gpu_engine/publickey/rsa_numbers.h"

namespace nacre::engine::cuda {
namespace {

constexpr std::uint32_t small_prime_bound = 1u << 16;
constexpr std::uint32_t public_exponent = 65537;
// How many searches a batch may run. Usually the first one finds enough primes.
constexpr int search_count_max = 8;

// How many batches may make their keys on the host at the same time, each on all cores; others
// search meanwhile. There are two, so that one uses the cores which the last keys of the other
// leave idle.
constexpr int key_maker_count_max = 2;
std::counting_semaphore<key_maker_count_max> key_maker_gate(key_maker_count_max);

std::uint64_t power_modulo(std::uint64_t base, std::uint32_t exponent, std::uint32_t modulus) {
  std::uint64_t power = 1;
  for (base %= modulus; exponent > 0; exponent /= 2, base = base * base % modulus) {
    if (exponent % 2 == 1) power = power * base % modulus;
  }
  return power;
}

// The odd primes below 2^16, for starts of limb_count limbs.
std::vector<SmallPrime> find_small_primes(std::uint32_t limb_count) {
  std::vector<SmallPrime> primes;
  std::vector<bool> composite(small_prime_bound);
  for (std::uint32_t n = 3; n < small_prime_bound; n += 2) {
    if (composite[n]) continue;
    for (std::uint32_t multiple = 3 * n; multiple < small_prime_bound; multiple += 2 * n)
      composite[multiple] = true;
    const std::uint64_t r = power_modulo(2, 32 * limb_count, n);
    const std::uint64_t quarter = power_modulo(4, n - 2, n);
    primes.push_back({.prime = n,
                      .negative_inverse = negative_inverse(n),
                      .factor = static_cast<std::uint32_t>(n - r * quarter % n)});
  }
  return primes;
}

template <int N>
const std::vector<SmallPrime>& small_primes() {
  static const std::vector<SmallPrime> primes = find_small_primes(N);
  return primes;
}

// How many intervals to search, so that prime_count primes are found with a tenth to spare. Of the
// numbers that are 3 mod 4, every (bits ln 2 / 2)-th is prime.
std::uint32_t count_intervals(std::size_t prime_count, std::uint32_t bits) {
  const double density = 2 / (bits * std::numbers::ln2);
  const double share = 1 - std::pow(1 - density, interval_length);
  const auto count = static_cast<double>(prime_count);
  return static_cast<std::uint32_t>((count * 1.1 + 4 * std::sqrt(count)) / share) + 1;
}

// The primes that a search found, each of limb_count limbs.
struct Primes {
  SecretBytes limbs;
  std::size_t limb_count = 0;
  std::size_t count = 0;

  std::span<const std::uint32_t> at(std::size_t i) const {
    return {reinterpret_cast<const std::uint32_t*>(limbs.view().data()) + i * limb_count,
            limb_count};
  }
};

// Whether public_exponent has an inverse modulo prime - 1.
bool suits_exponent(std::span<const std::uint32_t> prime) {
  std::uint64_t rest = 0;
  for (std::size_t i = prime.size(); i-- > 0;)
    rest = (rest << 32 | prime[i]) % public_exponent;
  return rest != 1;
}

template <int N>
Result<Primes> search(const BatchRun& run, std::uint32_t bits, std::uint32_t interval_count) {
  run.slot.begin();
  SlotWiper wiper(run.slot);
  const std::vector<SmallPrime>& small = small_primes<N>();
  NACRE_ASSIGN(const Mirrored<ChaChaKey> key, run.slot.add_upload<ChaChaKey>(1));
  NACRE_ASSIGN(const Mirrored<SmallPrime> table, run.slot.add_upload<SmallPrime>(small.size()));
  NACRE_ASSIGN(const Mirrored<std::uint32_t> found, run.slot.add_download<std::uint32_t>(1));
  NACRE_ASSIGN(const Mirrored<std::uint32_t> failed,
               run.slot.add_download<std::uint32_t>(interval_count));
  NACRE_ASSIGN(auto* const primes, run.slot.take<std::uint32_t>(std::size_t{N} * interval_count));
  NACRE_ASSIGN(Byte* const workspace,
               run.slot.take_bytes(prime_search_workspace_size<N>(interval_count)));
  random_bytes({reinterpret_cast<Byte*>(key.host.data()), sizeof(ChaChaKey)});
  std::ranges::copy(small, table.host.begin());
  const PrimeSearch task = {.key = key.device,
                            .small_primes = table.device,
                            .small_prime_count = static_cast<std::uint32_t>(small.size()),
                            .bits = bits,
                            .interval_count = interval_count,
                            .found_count = found.device,
                            .primes = primes,
                            .failed = failed.device};
  NACRE_TRY(run.slot.upload());
  NACRE_TRY(run.launch([&] {
    return check(search_primes<N>(task, workspace, run.slot.stream()), "searching primes");
  }));
  NACRE_TRY(run.slot.finish());
  const std::size_t found_count = std::min(found.host[0], interval_count);
  const std::size_t size = found_count * N * sizeof(std::uint32_t);
  NACRE_ASSIGN(Byte* const out, run.slot.staging_out(std::max<std::size_t>(size, 1)));
  NACRE_TRY(check(cudaMemcpyAsync(out, primes, size, cudaMemcpyDeviceToHost, run.slot.stream()),
                  "copying primes from the device"));
  NACRE_TRY(wiper.wipe_device());

  Primes good = {.limbs = SecretBytes(size), .limb_count = N};
  for (std::size_t i = 0; i < found_count; ++i) {
    const ByteView prime(out + i * N * sizeof(std::uint32_t), N * sizeof(std::uint32_t));
    if (failed.host[i] != 0) continue;
    std::ranges::copy(prime, good.limbs.mutable_view().begin() +
                                 static_cast<std::ptrdiff_t>(good.count * prime.size()));
    if (suits_exponent(good.at(good.count))) ++good.count;
  }
  return good;
}

// Makes keys of pairs of primes and checks them, on all cores; a key takes a millisecond or more.
// make() returns nullopt for a key that cannot be made.
class KeyMaker {
 public:
  KeyMaker(std::uint32_t bits, const Primes& primes, std::size_t count)
      : bits_(static_cast<int>(bits)), primes_(primes), keys_(count) {}

  std::vector<std::optional<SecretBytes>> make() {
    const Turn turn;
    std::vector<std::jthread> threads;
    const unsigned core_count = std::thread::hardware_concurrency();
    try {
      const BlockedSignals blocked;
      for (unsigned i = 1; i < core_count && i < keys_.size(); ++i)
        threads.emplace_back([this] { work(); });
    } catch (const std::exception&) {
      // With fewer threads it only takes longer.
    }
    work();
    threads.clear();
    return std::move(keys_);
  }

 private:
  struct Turn {
    Turn() { key_maker_gate.acquire(); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() { key_maker_gate.release(); }
  };

  void work() noexcept {
    for (std::size_t i = next_++; i < keys_.size(); i = next_++) {
      try {
        if (auto key = make_rsa_key(bits_, primes_.at(2 * i), primes_.at(2 * i + 1)))
          keys_[i].emplace(std::move(*key));
      } catch (const std::exception&) {
        // The key stays nullopt; another search, or the cpu, makes one instead.
      }
    }
  }

  const int bits_;
  const Primes& primes_;
  std::vector<std::optional<SecretBytes>> keys_;
  std::atomic<std::size_t> next_ = 0;
};

}  // namespace

Result<> run_rsa_generate_batch(const BatchRun& run) {
  const std::uint32_t bits = run.batch.kind.rsa_bits;
  std::vector<SecretBytes> keys;
  for (int i = 0; i < search_count_max && keys.size() < run.count(); ++i) {
    const std::size_t wanted = run.count() - keys.size();
    const std::uint32_t interval_count = count_intervals(2 * wanted, bits / 2);
    NACRE_ASSIGN(const Primes primes, with_prime_limbs(static_cast<int>(bits / 2), [&](auto limbs) {
                   return search<limbs()>(run, bits / 2, interval_count);
                 }));
    for (auto& key : KeyMaker(bits, primes, std::min(wanted, primes.count / 2)).make()) {
      if (key) keys.push_back(std::move(*key));
    }
  }
  for (std::uint32_t i = 0; i < run.count(); ++i) {
    const Message& message = run.message(i);
    if (i >= keys.size() || keys[i].size() > message.output_capacity) {
      run.refuse(i);
      continue;
    }
    std::ranges::copy(keys[i].view(), run.payload.output + message.output_offset);
    run.result(i) = {.ok = true, .output_size = keys[i].size()};
  }
  return {};
}

}  // namespace nacre::engine::cuda

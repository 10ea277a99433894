// SPDX-License-Identifier: Apache-2.0
// RSA on a device compared with the cpu's, which is OpenSSL: both have the same results and the
// same verdicts.
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <cstring>
#include <set>

#include "gpu_engine/cuda/kernels/prime_search.h"
#include "gpu_engine/cuda/rsa_parts.h"
#include "gpu_engine/cuda/slot.h"
#include "gpu_engine/publickey/openssl_number.h"
#include "gpu_engine/publickey/rsa.h"
#include "gpu_engine/publickey/rsa_numbers.h"
#include "tests/gpu_engine/cuda_engine_fixture.h"
#include "tests/gpu_engine/cuda_test_device.h"
#include "tests/gpu_engine/test_payload.h"

namespace nacre::engine {
namespace {

struct TestKey {
  Bytes public_der;
  Bytes private_der;
  Bytes modulus;  // big-endian

  explicit TestKey(const RsaPrivateKey& key) : public_der(key.public_key().to_der()) {
    const SecretBytes der = key.to_der().value();
    private_der.assign(der.view().begin(), der.view().end());
    const RsaNumbers numbers = RsaNumbers::from_der(KeyKind::rsa_public, public_der).value();
    std::vector<std::uint32_t> limbs((numbers.modulus_size_bytes() + 3) / 4);
    EXPECT_TRUE(numbers.write(RsaNumber::modulus, limbs).has_value());
    const auto* const bytes = reinterpret_cast<const Byte*>(limbs.data());
    modulus.assign(bytes, bytes + numbers.modulus_size_bytes());
    std::ranges::reverse(modulus);
  }
  explicit TestKey(int bits)
      : TestKey(RsaPrivateKey::generate(bits, rsa_message_bits_min).value()) {}
  std::size_t size() const { return modulus.size(); }
};

TestKey vector_key(const std::string& name) {
  return TestKey(RsaPrivateKey::from_pem(read_vector("rsa/" + name)).value());
}

// The same messages for both engines.
class Twins {
 public:
  Twins(Engine& cuda, Engine& cpu) : cuda_(cuda), cpu_(cpu), on_cuda_(cuda), on_cpu_(cpu) {}

  template <typename Function>
  void each(const Function& function) {
    function(on_cuda_);
    function(on_cpu_);
  }
  void add(Operation operation, const TestKey& key, RsaPadding padding, const Bytes& input,
           std::size_t capacity, std::string_view label = "", bool with_private_key = true) {
    each([&](TestPayload& payload) {
      Message& message = payload.add(operation, input, capacity);
      message.key_index = with_private_key ? payload.get().add_rsa_private_key(key.private_der)
                                           : payload.get().add_rsa_public_key(key.public_der);
      message.rsa_padding = padding;
      if (!label.empty()) payload.set_aad(message, as_bytes(label));
    });
  }
  void run() {
    cuda_.run(on_cuda_.get());
    cpu_.run(on_cpu_.get());
  }
  // Compares the results. The outputs of the first compared_ messages must be the same bytes.
  void expect_same() {
    for (std::size_t i = 0; i < on_cpu_.get().messages.size(); ++i) {
      SCOPED_TRACE(i);
      const MessageResult& expected = on_cpu_.result(i);
      const MessageResult& result = on_cuda_.result(i);
      ASSERT_EQ(result.ok, expected.ok) << result.detail << expected.detail;
      if (!expected.ok) {
        EXPECT_EQ(result.error, expected.error) << result.detail << " / " << expected.detail;
        continue;
      }
      if (i < compared_) {
        ASSERT_TRUE(std::ranges::equal(on_cuda_.output(i), on_cpu_.output(i)));
      }
    }
  }
  // From here on only the verdicts of messages are compared. The cpu blinds its computations, so a
  // private key whose numbers do not belong together gives another result each time.
  void compare_verdicts_from_here() { compared_ = on_cpu_.get().messages.size(); }
  TestPayload& on_cuda() { return on_cuda_; }
  TestPayload& on_cpu() { return on_cpu_; }

 private:
  Engine& cuda_;
  Engine& cpu_;
  TestPayload on_cuda_;
  TestPayload on_cpu_;
  std::size_t compared_ = SIZE_MAX;
};

class CudaRsa : public CudaEngine {
 protected:
  // Below the modulus, whose first bit is set.
  Bytes random_number(const TestKey& key) {
    Bytes number = random_.bytes(key.size());
    number[0] = 0;
    return number;
  }
};

// Keys that fill their limbs, that do not, and one that no device takes, in one payload.
TEST_F(CudaRsa, gives_the_cpus_results_for_keys_of_every_size) {
  std::vector<TestKey> keys;
  for (const int bits : {1024, 1024, 1025, 1500, 2048, 2048, 2049})
    keys.emplace_back(bits);
  keys.push_back(vector_key("test_key_8192.pem"));  // no device's
  // Long ones take minutes where each access is checked.
  if (test_part() < 100) {
    for (const int bits : {2050, 2301, 3071, 3073})
      keys.emplace_back(bits);
    for (const char* name : {"test_key_3072.pem", "test_key_4096.pem"})
      keys.push_back(vector_key(name));
  }
  const std::size_t rounds = std::max<std::size_t>(24 / test_part(), 3);
  Twins twins(*cuda_, *cpu_);
  for (std::size_t round = 0; round < rounds; ++round) {
    for (const TestKey& key : keys) {
      Bytes number = random_number(key);
      if (round == 0) std::ranges::fill(number, Byte{0});
      if (round == 1) {
        number = key.modulus;
        number.back() ^= 1;  // the modulus is odd
      }
      if (round == 2) {
        std::ranges::fill(number, Byte{0});
        number.back() = 1;
      }
      twins.add(Operation::rsa_private, key, RsaPadding::none, number, key.size());
      twins.add(Operation::rsa_public, key, RsaPadding::none, number, key.size() + round);
      twins.add(Operation::rsa_public, key, RsaPadding::none, number, key.size(), "", false);
    }
  }
  twins.run();
  twins.expect_same();
  for (std::size_t i = 0; i < twins.on_cpu().get().messages.size(); ++i)
    ASSERT_TRUE(twins.on_cpu().result(i).ok);
  EXPECT_EQ(cuda_->stats().cuda_message_count, 3 * rounds * (keys.size() - 1));
  EXPECT_EQ(cuda_->stats().cuda_failed_batch_count, 0u);
}

// The longest numbers have code of their own. The test uses few of them, since a sanitizer is slow.
TEST_F(CudaRsa, gives_the_cpus_results_for_one_number_of_each_long_key) {
  Twins twins(*cuda_, *cpu_);
  for (const char* name : {"test_key_3072.pem", "test_key_4096.pem"}) {
    const TestKey key = vector_key(name);
    const Bytes number = random_number(key);
    twins.add(Operation::rsa_private, key, RsaPadding::none, number, key.size());
    twins.add(Operation::rsa_public, key, RsaPadding::none, number, key.size());
  }
  twins.run();
  twins.expect_same();
  EXPECT_EQ(cuda_->stats().cuda_message_count, 4u);
  EXPECT_EQ(cuda_->stats().cuda_failed_batch_count, 0u);
}

// More messages than a batch holds, so that all slots have some.
TEST_F(CudaRsa, raises_and_brings_back_in_many_batches) {
  const TestKey key = vector_key("test_key_pkcs8.pem");
  const std::size_t count = 20000 / test_part();
  TestPayload there(*cuda_, 16u << 20);
  for (std::size_t i = 0; i < count; ++i) {
    there.add(Operation::rsa_private, random_number(key), key.size()).key_index =
        there.get().add_rsa_private_key(key.private_der);
  }
  cuda_->run(there.get());
  TestPayload back(*cuda_, 16u << 20);
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_TRUE(there.result(i).ok) << there.result(i).detail;
    back.add(Operation::rsa_public, there.output(i), key.size()).key_index =
        back.get().add_rsa_public_key(key.public_der);
  }
  cuda_->run(back.get());
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_TRUE(back.result(i).ok) << back.result(i).detail;
    const Message& message = there.get().messages[i];
    ASSERT_TRUE(std::ranges::equal(
        back.output(i), ByteView(there.get().input + message.input_offset, message.input_size)));
  }
  EXPECT_EQ(cuda_->stats().cuda_message_count, 2 * count);
}

TEST_F(CudaRsa, wraps_for_the_cpu_and_opens_what_it_wrapped) {
  const TestKey keys[] = {vector_key("test_key_pkcs8.pem"), vector_key("test_key_4096.pem")};
  for (const bool cuda_wraps : {true, false}) {
    Engine& first = cuda_wraps ? *cuda_ : *cpu_;
    Engine& second = cuda_wraps ? *cpu_ : *cuda_;
    TestPayload wrapped(first);
    std::vector<Bytes> secrets;
    for (std::size_t i = 0; i < 60; ++i) {
      const TestKey& key = keys[i % 2];
      // From nothing to as much as fits.
      secrets.push_back(random_.bytes(i < 58 ? i : key.size() - 66));
      Message& message = wrapped.add(Operation::rsa_public, secrets.back(), key.size());
      message.key_index = wrapped.get().add_rsa_public_key(key.public_der);
      message.rsa_padding = RsaPadding::oaep_sha256;
      wrapped.set_aad(message, as_bytes("label"));
    }
    first.run(wrapped.get());
    TestPayload opened(second);
    for (std::size_t i = 0; i < secrets.size(); ++i) {
      ASSERT_TRUE(wrapped.result(i).ok) << wrapped.result(i).detail;
      const TestKey& key = keys[i % 2];
      Bytes text(wrapped.output(i).begin(), wrapped.output(i).end());
      if (i % 10 == 5) text[text.size() - 1 - i] ^= 1;
      Message& message = opened.add(Operation::rsa_private, text, key.size());
      message.key_index = opened.get().add_rsa_private_key(key.private_der);
      message.rsa_padding = RsaPadding::oaep_sha256;
      opened.set_aad(message, as_bytes(i % 10 == 6 ? "another" : "label"));
    }
    second.run(opened.get());
    for (std::size_t i = 0; i < secrets.size(); ++i) {
      SCOPED_TRACE(i);
      ASSERT_EQ(opened.result(i).ok, i % 10 != 5 && i % 10 != 6);
      if (opened.result(i).ok) {
        EXPECT_TRUE(std::ranges::equal(opened.output(i), secrets[i]));
      } else {
        EXPECT_EQ(opened.result(i).error, ErrorCode::wrong_key);
      }
    }
  }
  EXPECT_EQ(cuda_->stats().cuda_failed_batch_count, 0u);
}

TEST_F(CudaRsa, judges_hostile_messages_and_keys_as_the_cpu_does) {
  const TestKey key = vector_key("test_key_pkcs8.pem");
  const std::size_t size = key.size();
  Bytes above = key.modulus;
  above[0] = 0xff;
  Twins twins(*cuda_, *cpu_);
  for (const Operation operation : {Operation::rsa_public, Operation::rsa_private}) {
    for (const Bytes& bad : {key.modulus, above, Bytes(size, 0xff), Bytes{}, Bytes(size - 1),
                             Bytes(size + 1), Bytes(513), Bytes(300)})
      twins.add(operation, key, RsaPadding::none, bad, 600);
    twins.add(operation, key, RsaPadding::none, Bytes(size), size - 1);
    twins.add(operation, key, RsaPadding{5}, Bytes(size), size);
    twins.add(operation, key, RsaPadding::none, Bytes(size), size, "", false);
  }
  twins.add(Operation::rsa_public, key, RsaPadding::oaep_sha256, Bytes(size - 65), size);
  twins.add(Operation::rsa_private, key, RsaPadding::oaep_sha256, Bytes(size), size);
  twins.add(Operation::rsa_private, key, RsaPadding::oaep_sha256, Bytes(size - 1), size);

  // Keys of which every byte may be wrong: the cpu's verdict, or the cpu's result.
  const auto add_damaged = [&](Operation operation, bool in_private_key) {
    TestKey damaged = key;
    Bytes& der = in_private_key ? damaged.private_der : damaged.public_der;
    der[random_.below(der.size())] ^= static_cast<Byte>(1u << random_.below(8));
    twins.add(operation, damaged, RsaPadding::none, random_number(key), size, "", in_private_key);
  };
  const std::size_t damaged_count = 400 / test_part();
  for (std::size_t i = 0; i < damaged_count * 3 / 4; ++i)
    add_damaged(Operation::rsa_public, i % 3 == 0);
  // An even modulus, and one of another length than the key says.
  TestKey even = key;
  const auto at = std::ranges::search(even.public_der, key.modulus).begin();
  ASSERT_NE(at, even.public_der.end());
  at[static_cast<std::ptrdiff_t>(size) - 1] ^= 1;
  twins.add(Operation::rsa_public, even, RsaPadding::none, Bytes(size), size, "", false);
  twins.compare_verdicts_from_here();
  for (std::size_t i = 0; i < damaged_count / 4; ++i)
    add_damaged(Operation::rsa_private, true);
  twins.run();
  twins.expect_same();
  EXPECT_EQ(cuda_->stats().cuda_failed_batch_count, 0u);
}

// With a wrong exponent for one half, the result of the device is wrong, and would reveal the
// primes.
TEST_F(CudaRsa, gives_out_no_result_that_the_public_operation_does_not_confirm) {
  TestKey key = vector_key("test_key_pkcs8.pem");
  const RsaNumbers numbers = RsaNumbers::from_der(KeyKind::rsa_private, key.private_der).value();
  std::vector<std::uint32_t> exponent(32);
  ASSERT_TRUE(numbers.write(RsaNumber::p_exponent, exponent).has_value());
  const auto* const bytes = reinterpret_cast<const Byte*>(exponent.data());
  Bytes big_endian(bytes, bytes + 128);
  std::ranges::reverse(big_endian);
  const auto at = std::ranges::search(key.private_der, big_endian).begin();
  ASSERT_NE(at, key.private_der.end());
  at[100] ^= 4;
  ASSERT_TRUE(RsaNumbers::from_der(KeyKind::rsa_private, key.private_der).has_value());
  Twins twins(*cuda_, *cpu_);
  for (int i = 0; i < 8; ++i)
    twins.add(Operation::rsa_private, key, RsaPadding::none, random_number(key), key.size());
  twins.run();
  twins.expect_same();
  EXPECT_EQ(cuda_->stats().cuda_message_count, 0u) << "the cpu did them";
}

struct FreeKey {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(EVP_PKEY_CTX* context) const { EVP_PKEY_CTX_free(context); }
};

Number number_of(const EVP_PKEY* key, const char* name) {
  BIGNUM* number = nullptr;
  EXPECT_EQ(EVP_PKEY_get_bn_param(key, name, &number), 1);
  return Number(number);
}

void expect_sound_key(ByteView der, int bits) {
  const Byte* at = der.data();
  const std::unique_ptr<EVP_PKEY, FreeKey> key(
      d2i_AutoPrivateKey(nullptr, &at, static_cast<long>(der.size())));
  ASSERT_NE(key, nullptr);
  EXPECT_EQ(at, der.data() + der.size());
  const std::unique_ptr<EVP_PKEY_CTX, FreeKey> context(
      EVP_PKEY_CTX_new_from_pkey(nullptr, key.get(), nullptr));
  EXPECT_EQ(EVP_PKEY_check(context.get()), 1);
  // The keys are made by OpenSSL. With an odd number of bits, one of them may be a bit too short.
  EXPECT_LE(EVP_PKEY_get_bits(key.get()), bits);
  EXPECT_GE(EVP_PKEY_get_bits(key.get()), bits - bits % 2);
  EXPECT_EQ(BN_get_word(number_of(key.get(), OSSL_PKEY_PARAM_RSA_E).get()), 65537u);
  const Number p = number_of(key.get(), OSSL_PKEY_PARAM_RSA_FACTOR1);
  const Number q = number_of(key.get(), OSSL_PKEY_PARAM_RSA_FACTOR2);
  BN_sub(p.get(), p.get(), q.get());
  EXPECT_GT(BN_num_bits(p.get()), bits / 2 - 100);
}

TEST_F(CudaRsa, generates_keys_that_openssl_finds_sound) {
  TestPayload payload(*cuda_);
  const std::size_t count_each = 64 / std::min<std::size_t>(test_part(), 16);
  std::vector<int> bits(count_each, 2048);
  bits.insert(bits.end(), count_each, 1024);
  bits.insert(bits.end(), {1026, 1500, 2050, 2049});
  // A search for long primes takes minutes where each access is checked.
  if (test_part() < 100) bits.insert(bits.end(), {3072, 4096});
  for (const int b : bits)
    payload.add(Operation::rsa_generate, {}, rsa_private_key_size_bound(b)).rsa_bits =
        static_cast<std::uint32_t>(b);
  cuda_->run(payload.get());
  std::set<Bytes> primes;
  for (std::size_t i = 0; i < bits.size(); ++i) {
    SCOPED_TRACE(i);
    ASSERT_TRUE(payload.result(i).ok) << payload.result(i).detail;
    expect_sound_key(payload.output(i), bits[i]);
    const RsaNumbers numbers =
        RsaNumbers::from_der(KeyKind::rsa_private, payload.output(i)).value();
    for (const RsaNumber which : {RsaNumber::p, RsaNumber::q}) {
      Bytes prime(4 * 64);
      std::vector<std::uint32_t> limbs(64);
      ASSERT_TRUE(numbers.write(which, limbs).has_value());
      std::memcpy(prime.data(), limbs.data(), prime.size());
      EXPECT_TRUE(primes.insert(prime).second) << "a prime came twice";
    }
  }
  // All except for the key of 2,049 bits.
  EXPECT_EQ(cuda_->stats().cuda_message_count, bits.size() - 1);
  EXPECT_EQ(cuda_->stats().cuda_failed_batch_count, 0u);
}

TEST_F(CudaRsa, refuses_keys_that_it_cannot_generate_as_the_cpu_does) {
  Twins twins(*cuda_, *cpu_);
  const auto add = [&](std::uint32_t bits) {
    twins.each([&](TestPayload& payload) {
      payload.add(Operation::rsa_generate, {}, 10000).rsa_bits = bits;
    });
  };
  for (const std::uint32_t bits : {0u, 512u, 1022u, 1023u, 8193u, 0xffffffffu})
    add(bits);
  twins.each([](TestPayload& payload) {
    payload.add(Operation::rsa_generate, {}, rsa_private_key_size_bound(2048) - 1).rsa_bits = 2048;
  });
  // The two engines generate different keys, so only the verdicts are compared.
  twins.compare_verdicts_from_here();
  for (const std::uint32_t bits : {1024u, 1025u, 1026u, 2047u, 2048u})
    add(bits);
  twins.run();
  twins.expect_same();
}

class CudaPrimes : public cuda::CudaTest {
 protected:
  // Searches primes as the generation of keys does, but always under one key, so that the same
  // intervals have primes each time. Expects the results to be different primes of limb_count
  // limbs. Returns their number.
  template <int limb_count>
  std::size_t search(std::uint32_t interval_count) {
    const std::vector<cuda::SmallPrime> small = small_primes_for(32 * limb_count);
    const cuda::DeviceArray<cuda::SmallPrime> small_primes(small);
    const cuda::DeviceArray<cuda::ChaChaKey> key(std::vector{cuda::ChaChaKey{{1, 2, 3}}});
    const cuda::DeviceArray<std::uint32_t> found(1), failed(interval_count),
        primes(std::size_t{limb_count} * interval_count);
    const cuda::DeviceArray<Byte> workspace(
        cuda::prime_search_workspace_size<limb_count>(interval_count));
    EXPECT_EQ(cuda::search_primes<limb_count>(
                  {.key = key.data(),
                   .small_primes = small_primes.data(),
                   .small_prime_count = static_cast<std::uint32_t>(small.size()),
                   .bits = 32 * limb_count,
                   .interval_count = interval_count,
                   .found_count = found.data(),
                   .primes = primes.data(),
                   .failed = failed.data()},
                  workspace.data(), nullptr),
              cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    const std::size_t count = found.copy()[0];
    EXPECT_LE(count, interval_count);
    const std::vector<std::uint32_t> limbs = primes.copy();
    const std::vector<std::uint32_t> failures = failed.copy();
    std::set<std::vector<std::uint32_t>> distinct;
    for (std::size_t i = 0; i < std::min<std::size_t>(count, interval_count); ++i) {
      EXPECT_EQ(failures[i], 0u);
      const std::uint32_t* const at = &limbs[limb_count * i];
      const Number prime(BN_lebin2bn(reinterpret_cast<const Byte*>(at),
                                     sizeof(std::uint32_t) * limb_count, nullptr));
      EXPECT_EQ(BN_num_bits(prime.get()), 32 * limb_count);
      EXPECT_EQ(BN_check_prime(prime.get(), nullptr, nullptr), 1);
      EXPECT_TRUE(distinct.emplace(at, at + limb_count).second) << "a prime came twice";
    }
    return count;
  }

 private:
  static std::vector<cuda::SmallPrime> small_primes_for(int bits) {
    std::vector<cuda::SmallPrime> small;
    for (std::uint32_t n = 3; n < 2000; n += 2) {
      if (std::ranges::any_of(small, [&](const auto& of) { return n % of.prime == 0; })) continue;
      std::uint32_t r = 1;  // a quarter of 2^bits, modulo n
      for (int bit = 0; bit < bits - 2; ++bit)
        r = 2 * r % n;
      small.push_back({.prime = n, .negative_inverse = cuda::negative_inverse(n), .factor = n - r});
    }
    return small;
  }
};

// Few: racecheck ends with these. An interval has one with a probability of 0.3.
TEST_F(CudaPrimes, of_a_short_search_are_prime) {
  EXPECT_GT(search<16>(8), 0u);
}

// Halves of keys of 1,024 and 2,048 bits, of which an interval has one with a probability of 0.30
// and 0.16.
TEST_F(CudaPrimes, of_long_searches_are_prime) {
  if (test_part() > 1) GTEST_SKIP() << "long: where each access is checked, the short search is";
  EXPECT_GE(search<16>(400), 64u);
  EXPECT_GE(search<32>(800), 64u);
}

using RsaSlot = cuda::CudaTest;

TEST_F(RsaSlot, is_wiped_where_a_batch_asks_for_it) {
  auto slot = cuda::Slot::create().value();
  slot.begin();
  const auto up = slot.add_upload<Byte>(5000).value();
  const auto down = slot.add_download<Byte>(3000).value();
  Byte* const memory = slot.take_bytes(100'000).value();
  const std::span<Byte> staged(slot.staging_in(7000).value(), 7000);
  std::ranges::fill(up.host, Byte{1});
  std::ranges::fill(down.host, Byte{1});
  std::ranges::fill(staged, Byte{1});
  ASSERT_TRUE(slot.upload().has_value());
  ASSERT_CUDA(cudaMemset(memory, 1, 100'000));
  ASSERT_CUDA(cudaMemset(down.device, 1, 3000));
  // The slot's stream waits for no other.
  ASSERT_CUDA(cudaDeviceSynchronize());
  ASSERT_TRUE(slot.wipe_device().has_value());
  slot.wipe_host();
  const auto is_zero = [](Byte byte) { return byte == 0; };
  EXPECT_TRUE(std::ranges::all_of(up.host, is_zero));
  EXPECT_TRUE(std::ranges::all_of(down.host, is_zero));
  EXPECT_TRUE(std::ranges::all_of(staged, is_zero));
  for (const auto& [data, size] :
       {std::pair(memory, 100'000), std::pair(up.device, 5000), std::pair(down.device, 3000)}) {
    Bytes copy(static_cast<std::size_t>(size), 1);
    ASSERT_CUDA(cudaMemcpy(copy.data(), data, copy.size(), cudaMemcpyDeviceToHost));
    EXPECT_TRUE(std::ranges::all_of(copy, is_zero));
  }
}

}  // namespace
}  // namespace nacre::engine

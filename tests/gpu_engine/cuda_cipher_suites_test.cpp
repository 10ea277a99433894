// SPDX-License-Identifier: Apache-2.0
// The kernels of authenticated suites against the CPU's, NIST's vectors for GCM, and damage.
#include "gpu_engine/cipher/aead.h"
#include "gpu_engine/cuda/kernels/aead.h"
#include "tests/gpu_engine/cuda_test_device.h"
#include "tests/gpu_engine/response_file.h"

namespace nacre::engine::cuda {
namespace {

struct Form {
  KeyForm form;
  std::array<CipherSuite, 3> suites;
  const char* name;
};
constexpr Form forms[] = {
    {KeyForm::gcm,
     {CipherSuite::aes_128_gcm, CipherSuite::aes_192_gcm, CipherSuite::aes_256_gcm},
     "gcm"},
    {KeyForm::ctr_hmac,
     {CipherSuite::aes_128_ctr, CipherSuite::aes_192_ctr, CipherSuite::aes_256_ctr},
     "ctr and HMAC"},
    {KeyForm::cbc_hmac,
     {CipherSuite::aes_128_cbc, CipherSuite::aes_192_cbc, CipherSuite::aes_256_cbc},
     "cbc and HMAC"},
    {KeyForm::cbc_hmac,
     {CipherSuite::des_cbc, CipherSuite::des_cbc, CipherSuite::des_cbc},
     "DES in cbc and HMAC"},
    {KeyForm::cbc_hmac,
     {CipherSuite::des_ede3_cbc, CipherSuite::des_ede3_cbc, CipherSuite::des_ede3_cbc},
     "3DES in cbc and HMAC"}};

CipherFamily family_of(CipherSuite suite) {
  return suite == CipherSuite::des_cbc        ? CipherFamily::des
         : suite == CipherSuite::des_ede3_cbc ? CipherFamily::des_ede3
                                              : CipherFamily::aes;
}

struct SuiteKey {
  CipherSuite suite;
  Bytes bytes;
};

struct SuiteMessage {
  std::size_t in, out, size, aad, aad_size, tag;
  std::uint32_t key;
  std::array<Byte, nonce_size_bytes> nonce;
};

struct Outcome {
  Bytes arena;
  std::vector<std::uint32_t> verdicts;
};

// Runs messages on the device; the arena holds inputs, outputs, additional data and tags.
// bytes_max: what the launcher is told there may be, by which it chooses the size of tiles.
Outcome run(KeyForm form, bool seals, const Bytes& arena, const std::vector<SuiteMessage>& messages,
            const std::vector<SuiteKey>& keys, std::uint64_t bytes_max = 0) {
  std::vector<RawKey> raw_keys;
  for (const SuiteKey& key : keys) {
    RawKey raw = {};
    std::copy(key.bytes.begin(), key.bytes.end(), raw.bytes);
    raw.cipher_key_size = static_cast<std::uint32_t>(key_size_bytes(block_cipher(key.suite)));
    raw.form = form;
    raw_keys.push_back(raw);
  }
  const DeviceArray<RawKey> d_keys(raw_keys);
  const DeviceArray<CipherKeyGroup> d_ciphers(cipher_key_group_count(keys.size()));
  const DeviceArray<ExpandedSuiteKey> d_suites(keys.size());
  const DeviceArray<DesKey> d_des(keys.size());
  const KeyTable table = {d_ciphers.data(), d_suites.data(), d_des.data(),
                          family_of(keys[0].suite)};
  const DeviceArray<Byte> d_arena(arena);
  std::vector<AeadTask> tasks;
  std::uint64_t total_bytes = 0;
  for (const SuiteMessage& message : messages) {
    AeadTask task = {};
    task.in = d_arena.data() + message.in;
    task.out = d_arena.data() + message.out;
    task.size = message.size;
    task.aad = d_arena.data() + message.aad;
    task.aad_size = static_cast<std::uint32_t>(message.aad_size);
    task.key = message.key;
    std::copy(message.nonce.begin(), message.nonce.end(), task.nonce);
    task.tag = d_arena.data() + message.tag;
    tasks.push_back(task);
    total_bytes += message.size + message.aad_size;
  }
  total_bytes = std::max(total_bytes, bytes_max);
  const auto count = static_cast<std::uint32_t>(tasks.size());
  const DeviceArray<AeadTask> d_tasks(tasks);
  const DeviceArray<Byte> d_workspace(aead_workspace_size(count, total_bytes));
  const DeviceArray<std::uint32_t> d_verdicts(std::vector<std::uint32_t>(count, 77));
  const KeyDirections directions =
      form == KeyForm::cbc_hmac ? KeyDirections::both : KeyDirections::encrypt;
  EXPECT_EQ(expand_keys(d_keys.data(), static_cast<std::uint32_t>(keys.size()), directions, table,
                        nullptr),
            cudaSuccess);
  EXPECT_EQ(seals ? aead_seal(form, d_tasks.data(), count, total_bytes, table, d_workspace.data(),
                              nullptr)
                  : aead_open(form, d_tasks.data(), count, total_bytes, table, d_verdicts.data(),
                              d_workspace.data(), nullptr),
            cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  return {d_arena.copy(), d_verdicts.copy()};
}

class CudaCipherSuites : public CudaTest {};

TEST_F(CudaCipherSuites, nist_vectors_of_gcm_come_out) {
  for (const char* const file : {"aes_256_gcm_cavp.rsp", "aes_128_192_gcm_nist.rsp"}) {
    for (const ResponseCase& test : read_response_file(file, "Key")) {
      SCOPED_TRACE(test.fields.at("Key") + " " + test.fields.at("IV"));
      const Bytes cipher = test["CT"], aad = test["AAD"], tag = test["Tag"], nonce = test["IV"];
      ASSERT_EQ(nonce.size(), nonce_size_bytes);
      const std::size_t key_size = test["Key"].size();
      const std::vector<SuiteKey> key = {{key_size == 16   ? CipherSuite::aes_128_gcm
                                          : key_size == 24 ? CipherSuite::aes_192_gcm
                                                           : CipherSuite::aes_256_gcm,
                                          test["Key"]}};
      // Ciphertext, additional data, tag, output.
      Bytes arena = cipher;
      arena.insert(arena.end(), aad.begin(), aad.end());
      arena.insert(arena.end(), tag.begin(), tag.end());
      const std::size_t out = arena.size();
      arena.resize(out + cipher.size(), Byte{0xa5});
      SuiteMessage message = {0, out, cipher.size(), cipher.size(), aad.size(), out - tag.size(),
                              0, {}};
      std::copy(nonce.begin(), nonce.end(), message.nonce.begin());
      const Outcome opened = run(KeyForm::gcm, false, arena, {message}, key);
      EXPECT_EQ(opened.verdicts[0], test.must_fail ? 0u : 1u);
      const ByteView plain = ByteView(opened.arena).subspan(out);
      if (test.must_fail) {
        EXPECT_TRUE(std::all_of(plain.begin(), plain.end(), [](Byte b) { return b == 0; }));
        continue;
      }
      EXPECT_EQ(to_hex(plain), test.fields.at("PT"));
      // Then back again, from the place of the output to that of the input.
      arena = opened.arena;
      std::fill(arena.begin(), arena.begin() + static_cast<std::ptrdiff_t>(cipher.size()), Byte{0});
      std::fill_n(arena.begin() + static_cast<std::ptrdiff_t>(message.tag), tag.size(), Byte{0});
      std::swap(message.in, message.out);
      EXPECT_TRUE(run(KeyForm::gcm, true, arena, {message}, key).arena == opened.arena);
    }
  }
}

struct Mixture {
  std::vector<SuiteKey> keys;
  std::vector<SuiteMessage> messages;
  Bytes arena;
};

Mixture make_mixture(const Form& form, TestRandom& random) {
  Mixture mixture;
  for (std::size_t i = 0; i < 7; ++i) {
    const CipherSuite suite = form.suites[i % 3];
    mixture.keys.push_back({suite, random.bytes(key_size_bytes(suite))});
  }
  RangeAllocator ranges(random);
  for (std::size_t i = 0; i < 150 / test_part(); ++i) {
    SuiteMessage message = {};
    message.size = i == 11 ? (2u << 20) / test_part() + 16 * 77 : random_size(random);
    message.size -= message.size % plain_unit_bytes(form.suites[0]);
    message.in = ranges.take(message.size);
    message.out = i % 3 == 0 ? message.in : ranges.take(message.size);
    message.aad_size = i % 4 == 0 ? 0 : i % 4 == 1 ? 52 : random.below(i == 6 ? 20000 : 150);
    message.aad = ranges.take(message.aad_size);
    message.tag = ranges.take(tag_size_bytes(form.suites[0]));
    message.key = static_cast<std::uint32_t>(random.below(mixture.keys.size()));
    random.fill(message.nonce);
    if (is_legacy(form.suites[0])) std::fill_n(message.nonce.begin(), 4, Byte{0});
    mixture.messages.push_back(message);
  }
  mixture.arena = random.bytes(ranges.used());
  return mixture;
}

// The CPU's results for the mixture.
Bytes seal_by_cpu(const Mixture& mixture) {
  Bytes arena = mixture.arena;
  for (const SuiteMessage& message : mixture.messages) {
    const SuiteKey& key = mixture.keys[message.key];
    const ByteView before(mixture.arena);
    AeadKey::create(key.suite, key.bytes)
        .value()
        ->seal(message.nonce, before.subspan(message.aad, message.aad_size),
               before.subspan(message.in, message.size),
               MutableByteView(arena).subspan(message.out, message.size),
               MutableByteView(arena).subspan(message.tag, tag_size_bytes(key.suite)));
  }
  return arena;
}

// No size is declared, or so many bytes that tiles on any device are twice or four times as large.
constexpr std::uint64_t large_payload_bytes[] = {0, 200 << 20, 4ull << 30};

TEST_F(CudaCipherSuites, random_mixtures_seal_to_the_cpus_bytes) {
  TestRandom random;
  std::size_t at = 0;
  for (const Form& form : {forms[0], forms[0], forms[0], forms[1], forms[2], forms[3], forms[4]}) {
    SCOPED_TRACE(form.name);
    const Mixture mixture = make_mixture(form, random);
    const Bytes expected = seal_by_cpu(mixture);
    const std::uint64_t bytes_max = form.form == KeyForm::gcm ? large_payload_bytes[at++ % 3] : 0;
    const Bytes result =
        run(form.form, true, mixture.arena, mixture.messages, mixture.keys, bytes_max).arena;
    for (std::size_t i = 0; i < mixture.messages.size(); ++i) {
      const SuiteMessage& message = mixture.messages[i];
      ASSERT_TRUE(std::equal(&result[message.out], &result[message.out] + message.size,
                             &expected[message.out]))
          << "message " << i << " of " << message.size << " bytes";
      ASSERT_TRUE(std::equal(&result[message.tag],
                             &result[message.tag] + tag_size_bytes(form.suites[0]),
                             &expected[message.tag]))
          << "tag of message " << i << " of " << message.size << " bytes and " << message.aad_size;
    }
    EXPECT_TRUE(result == expected) << "bytes beside the messages changed";
  }
}

// Every second message is damaged in one bit of its ciphertext, additional data, tag or nonce.
TEST_F(CudaCipherSuites, only_what_is_whole_is_opened) {
  TestRandom random;
  for (const Form& form : forms) {
    SCOPED_TRACE(form.name);
    const Mixture mixture = make_mixture(form, random);
    Bytes arena = seal_by_cpu(mixture);
    std::vector<SuiteMessage> messages = mixture.messages;
    std::vector<bool> whole(messages.size(), true);
    for (std::size_t i = 0; i < messages.size(); ++i) {
      SuiteMessage& message = messages[i];
      std::swap(message.in, message.out);
      if (i % 2 == 0) continue;
      whole[i] = false;
      const auto bit = static_cast<Byte>(1 << random.below(8));
      const std::size_t part = random.below(4);
      if (part == 0 && message.size != 0)
        arena[message.in + random.below(message.size)] ^= bit;
      else if (part == 1 && message.aad_size != 0)
        arena[message.aad + random.below(message.aad_size)] ^= bit;
      else if (part == 2)
        message.nonce[random.below(nonce_size_bytes)] ^= bit;
      else
        arena[message.tag + random.below(tag_size_bytes(form.suites[0]))] ^= bit;
    }
    Bytes expected = arena;
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const SuiteMessage& message = messages[i];
      for (std::size_t at = 0; at < message.size; ++at)
        expected[message.out + at] = whole[i] ? mixture.arena[message.out + at] : Byte{0};
    }
    const Outcome outcome = run(form.form, false, arena, messages, mixture.keys);
    for (std::size_t i = 0; i < messages.size(); ++i) {
      ASSERT_EQ(outcome.verdicts[i], whole[i] ? 1u : 0u)
          << "message " << i << " of " << messages[i].size << " bytes";
    }
    EXPECT_TRUE(outcome.arena == expected);
  }
}

// Ciphertext that is no whole number of blocks was never sealed, whatever its tag says.
TEST_F(CudaCipherSuites, cbc_refuses_what_is_no_whole_blocks) {
  TestRandom random;
  for (const CipherSuite suite : {CipherSuite::aes_256_cbc, CipherSuite::des_cbc}) {
    const SuiteKey key = {suite, random.bytes(key_size_bytes(suite))};
    SuiteMessage message = {.in = 0, .out = 100, .size = 33, .aad = 40, .aad_size = 3, .tag = 48};
    const Bytes arena = random.bytes(200);
    const Outcome outcome = run(KeyForm::cbc_hmac, false, arena, {message}, {key});
    EXPECT_EQ(outcome.verdicts[0], 0u);
    Bytes expected = arena;
    std::fill_n(expected.begin() + 100, 33, Byte{0});
    EXPECT_TRUE(outcome.arena == expected);
  }
}

}  // namespace
}  // namespace nacre::engine::cuda

// SPDX-License-Identifier: Apache-2.0
// HMAC-SHA256 on the device. Its SHA-256 and its keys are compared with published vectors. The
// kernel for the suites' tags is compared with the cpu's HMAC, which kdf_test.cpp compares with the
// same vectors.
#include "gpu_engine/cuda/kernels/aead.h"
#include "gpu_engine/cuda/kernels/crypt.h"
#include "gpu_engine/kdf/kdf.h"
#include "tests/gpu_engine/cuda_test_device.h"
#include "tests/gpu_engine/hash_vectors.h"
#include "tests/gpu_engine/hmac_of_messages.h"

namespace nacre::engine::cuda {
namespace {

// Bytes one behind the other, at whatever addresses that gives.
class Packer {
 public:
  std::size_t add(ByteView bytes) {
    const std::size_t at = arena_.size();
    arena_.insert(arena_.end(), bytes.begin(), bytes.end());
    return at;
  }
  const Bytes& arena() const { return arena_; }

 private:
  Bytes arena_;
};

// The vectors' digests in one launch. key: the name of the field that has it; nullptr: SHA-256.
std::vector<std::string> digests_of(const std::vector<ResponseCase>& cases, const char* key) {
  struct Place {
    std::size_t key, key_size, message, size, digest;
  };
  Packer packer;
  std::vector<Place> places;
  for (const ResponseCase& test : cases) {
    const Bytes key_bytes = key == nullptr ? Bytes() : test[key], message = test["Msg"];
    places.push_back({packer.add(key_bytes), key_bytes.size(), packer.add(message), message.size(),
                      packer.add(Bytes(sha256_size_bytes, 0xa5))});
  }
  const DeviceArray<Byte> d_arena(packer.arena());
  std::vector<HmacTask> tasks;
  for (const Place& place : places)
    tasks.push_back(
        {.key = d_arena.data() + place.key,
         .message = d_arena.data() + place.message,
         .key_size = key == nullptr ? hmac_no_key : static_cast<std::uint32_t>(place.key_size),
         .size = static_cast<std::uint32_t>(place.size),
         .digest = d_arena.data() + place.digest});
  const DeviceArray<HmacTask> d_tasks(tasks);
  EXPECT_EQ(hmac_of_messages(d_tasks.data(), static_cast<std::uint32_t>(tasks.size()), nullptr),
            cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const Bytes after = d_arena.copy();
  std::vector<std::string> digests;
  for (const Place& place : places)
    digests.push_back(to_hex(ByteView(after).subspan(place.digest, sha256_size_bytes)));
  return digests;
}

class CudaHmac : public CudaTest {};

TEST_F(CudaHmac, sha256_agrees_with_the_nist_vectors) {
  const std::vector<ResponseCase> cases = sha256_vectors();
  const std::vector<std::string> digests = digests_of(cases, nullptr);
  for (std::size_t i = 0; i < cases.size(); ++i)
    EXPECT_EQ(digests[i], cases[i].fields.at("MD")) << cases[i].fields.at("Msg");
}

TEST_F(CudaHmac, agrees_with_rfc_4231_and_the_nist_vectors) {
  const std::vector<ResponseCase> cases = hmac_vectors();
  const std::vector<std::string> digests = digests_of(cases, "Key");
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::string& expected = cases[i].fields.at("Mac");
    EXPECT_EQ(digests[i].substr(0, expected.size()), expected) << cases[i].fields.at("Key");
  }
}

// A message of a suite, cut from a vector's.
struct TagCase {
  std::uint32_t key;
  Bytes aad, data, iv;
  Sha256Digest tag;  // by the cpu
};

// Cases from published vectors: each vector's message is cut in two at every place. The first part
// is additional data, the second one ciphertext.
std::vector<TagCase> tag_cases(const std::vector<Bytes>& keys, std::uint32_t iv_bytes,
                               TestRandom& random) {
  std::vector<TagCase> cases;
  const std::vector<ResponseCase> vectors = hmac_vectors();
  for (std::uint32_t k = 0; k < vectors.size(); ++k) {
    const Bytes message = vectors[k]["Msg"];
    for (std::size_t cut = 0; cut <= message.size(); cut += test_part()) {
      const auto middle = message.begin() + static_cast<std::ptrdiff_t>(cut);
      TagCase made = {.key = k,
                      .aad = Bytes(message.begin(), middle),
                      .data = Bytes(middle, message.end()),
                      .iv = random.bytes(iv_bytes)};
      Bytes hashed(2 * sizeof(std::uint64_t));
      store_le(hashed.data(), std::uint64_t{made.aad.size()});
      store_le(hashed.data() + sizeof(std::uint64_t), std::uint64_t{made.data.size()});
      for (const Bytes* part : {&made.aad, &made.iv, &made.data})
        hashed.insert(hashed.end(), part->begin(), part->end());
      made.tag = hmac_sha256(keys[k], hashed);
      cases.push_back(std::move(made));
    }
  }
  return cases;
}

// The vectors' keys as suites have them: 32 bytes. Shorter keys are filled up with zeros, which
// HMAC does as well.
std::vector<Bytes> suite_keys_of_vectors() {
  std::vector<Bytes> keys;
  for (const ResponseCase& test : hmac_vectors()) {
    Bytes key = test["Key"];
    if (key.size() > sha256_size_bytes) {
      const Sha256Digest digest = sha256(key);
      key.assign(digest.begin(), digest.end());
    }
    key.resize(sha256_size_bytes);
    keys.push_back(std::move(key));
  }
  return keys;
}

std::vector<RawKey> raw_keys_of(const std::vector<Bytes>& keys) {
  constexpr std::uint32_t cipher_key_size = 16;
  std::vector<RawKey> raw;
  for (const Bytes& key : keys) {
    RawKey& made = raw.emplace_back();
    made = {};
    std::copy(key.begin(), key.end(), made.bytes + cipher_key_size);
    made.cipher_key_size = cipher_key_size;
    made.form = KeyForm::ctr_hmac;
  }
  return raw;
}

struct TagPlaces {
  std::size_t aad, data, tag;
};

// The kernel on cases whose parts lie in an arena of the device.
class TagLaunch {
 public:
  TagLaunch(const std::vector<TagCase>& cases, const std::vector<TagPlaces>& places,
            const Bytes& arena, const std::vector<Bytes>& keys)
      : d_arena_(arena),
        d_ciphers_(cipher_key_group_count(keys.size())),
        d_keys_(keys.size()),
        d_verdicts_(std::vector<std::uint32_t>(cases.size(), 77)) {
    const DeviceArray<RawKey> d_raw(raw_keys_of(keys));
    EXPECT_EQ(expand_keys(d_raw.data(), static_cast<std::uint32_t>(keys.size()),
                          KeyDirections::encrypt, {d_ciphers_.data(), d_keys_.data()}, nullptr),
              cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    for (std::size_t i = 0; i < cases.size(); ++i) {
      AeadTask task = {};
      task.in = task.out = d_arena_.data() + places[i].data;
      task.size = cases[i].data.size();
      task.aad = d_arena_.data() + places[i].aad;
      task.aad_size = static_cast<std::uint32_t>(cases[i].aad.size());
      task.key = cases[i].key;
      task.tag = d_arena_.data() + places[i].tag;
      tasks_.push_back(task);
      CryptTask crypt_task = {};
      crypt_task.key = cases[i].key;
      std::copy(cases[i].iv.begin(), cases[i].iv.end(), crypt_task.iv);
      crypt_tasks_.push_back(crypt_task);
    }
  }

  // Returns the arena as it is after.
  Bytes run(TagUse use, std::uint32_t iv_bytes) {
    const DeviceArray<AeadTask> d_tasks(tasks_);
    const DeviceArray<CryptTask> d_crypt_tasks(crypt_tasks_);
    EXPECT_EQ(hmac_tags(use, d_tasks.data(), static_cast<std::uint32_t>(tasks_.size()), 1, iv_bytes,
                        d_keys_.data(), d_crypt_tasks.data(), d_verdicts_.data(), nullptr),
              cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    crypt_tasks_ = d_crypt_tasks.copy();
    return d_arena_.copy();
  }
  std::vector<std::uint32_t> verdicts() const { return d_verdicts_.copy(); }
  const std::vector<CryptTask>& crypt_tasks() const { return crypt_tasks_; }

 private:
  const DeviceArray<Byte> d_arena_;
  const DeviceArray<CipherKeyGroup> d_ciphers_;
  const DeviceArray<ExpandedSuiteKey> d_keys_;
  const DeviceArray<std::uint32_t> d_verdicts_;
  std::vector<AeadTask> tasks_;
  std::vector<CryptTask> crypt_tasks_;
};

TEST_F(CudaHmac, tags_are_the_cpus_wherever_a_vectors_message_is_cut) {
  TestRandom random;
  const std::vector<Bytes> keys = suite_keys_of_vectors();
  for (const std::uint32_t iv_bytes : {16u, 8u}) {
    SCOPED_TRACE(iv_bytes);
    const std::vector<TagCase> cases = tag_cases(keys, iv_bytes, random);
    Packer packer;
    std::vector<TagPlaces> places;
    for (const TagCase& of : cases) {
      places.push_back(
          {packer.add(of.aad), packer.add(of.data), packer.add(Bytes(sha256_size_bytes, 0xa5))});
      packer.add(random.bytes(random.below(16)));
    }
    TagLaunch written(cases, places, packer.arena(), keys);
    const Bytes result = written.run(TagUse::write_of_out, iv_bytes);
    Bytes expected = packer.arena();
    for (std::size_t i = 0; i < cases.size(); ++i) {
      std::ranges::copy(cases[i].tag,
                        expected.begin() + static_cast<std::ptrdiff_t>(places[i].tag));
      ASSERT_EQ(to_hex(ByteView(result).subspan(places[i].tag, sha256_size_bytes)),
                to_hex(cases[i].tag))
          << "case " << i << ": " << cases[i].aad.size() << " and " << cases[i].data.size()
          << " bytes";
    }
    ASSERT_TRUE(result == expected) << "bytes beside the tags changed";

    // Each bit of a tag counts: of every second one a bit is another.
    for (std::size_t i = 1; i < cases.size(); i += 2)
      expected[places[i].tag + i / 16 % sha256_size_bytes] ^= static_cast<Byte>(1u << i / 2 % 8);
    TagLaunch compared(cases, places, expected, keys);
    EXPECT_TRUE(compared.run(TagUse::compare_with_in, iv_bytes) == expected);
    const std::vector<std::uint32_t> verdicts = compared.verdicts();
    for (std::size_t i = 0; i < cases.size(); ++i) {
      ASSERT_EQ(verdicts[i], i % 2 == 0 ? 1u : 0u) << "case " << i;
      ASSERT_EQ(compared.crypt_tasks()[i].key, i % 2 == 0 ? cases[i].key : no_key);
    }
  }
}

}  // namespace
}  // namespace nacre::engine::cuda

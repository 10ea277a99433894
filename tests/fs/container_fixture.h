// SPDX-License-Identifier: Apache-2.0
// Containers in memory: tasks whose source and sink are byte strings, and keys that cost little.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "fs/crypt/container_run.h"
#include "gpu_engine/checksum/crc32.h"
#include "tests/support/error_of.h"

namespace nacre::fs {

// One file of a run, outliving its task.
struct MemoryFile {
  Bytes source;
  ContainerAttributes attributes;
  std::optional<std::size_t> read_fails_at;   // bytes
  std::optional<std::size_t> write_fails_at;  // bytes

  Bytes sink;
  std::optional<Result<ContainerEnd>> outcome;
};

class MemoryTask : public ContainerTask {
 public:
  explicit MemoryTask(MemoryFile& file) : file_(file) {}

  Result<std::size_t> read(MutableByteView out) override {
    const std::size_t size = std::min(out.size(), file_.source.size() - at_);
    if (file_.read_fails_at && at_ + size > *file_.read_fails_at) {
      return fail(ErrorCode::io, "the source fails");
    }
    std::copy_n(file_.source.begin() + static_cast<std::ptrdiff_t>(at_), size, out.begin());
    at_ += size;
    return size;
  }
  ContainerAttributes attributes() override { return file_.attributes; }
  Result<> write(std::span<const ByteView> pieces) override {
    EXPECT_FALSE(file_.outcome) << "written to after its end";
    for (const ByteView piece : pieces) {
      file_.sink.insert(file_.sink.end(), piece.begin(), piece.end());
      if (file_.write_fails_at && file_.sink.size() > *file_.write_fails_at) {
        return fail(ErrorCode::no_space, "the sink is full");
      }
    }
    return {};
  }
  void finish(Result<ContainerEnd> outcome) override {
    EXPECT_FALSE(file_.outcome) << "finished twice";
    file_.outcome = std::move(outcome);
  }

 private:
  MemoryFile& file_;
  std::size_t at_ = 0;
};

inline NextContainerTask tasks_of(std::vector<MemoryFile>& files, std::size_t& next) {
  return [&]() -> std::unique_ptr<ContainerTask> {
    if (next == files.size()) return nullptr;
    return std::make_unique<MemoryTask>(files[next++]);
  };
}

inline Bytes random_content(std::size_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Bytes bytes(size);
  // Runs, so that codecs find something.
  for (std::size_t at = 0; at < size;) {
    const std::size_t run = std::min<std::size_t>(size - at, 1 + random() % 40);
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), run, static_cast<Byte>(random()));
    at += run;
  }
  return bytes;
}

class ContainerFixture : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    engine_ = engine::Engine::create({.choice = engine::EngineChoice::cpu}).value();
    identity_ = std::make_unique<metadata::VolumeSecret>(
        engine::RsaPrivateKey::generate(engine::rsa_bits_min).value());
  }
  static void TearDownTestSuite() {
    identity_.reset();
    engine_.reset();
  }

  static ContainerKeys make_keys(engine::CipherSuite suite = engine::CipherSuite::aes_256_gcm,
                                 unsigned chunk_bits = container_chunk_bits_min) {
    const metadata::NewRecipient recipient =
        metadata::NewPublicKey{.key = std::get<engine::RsaPrivateKey>(*identity_).public_key()};
    return make_container_keys(suite, std::span(&recipient, 1), chunk_bits).value();
  }

  static void encrypt(std::vector<MemoryFile>& files, const ContainerKeys& keys,
                      const ContainerPacking& packing = {}) {
    std::size_t next = 0;
    ASSERT_TRUE(encrypt_containers(*engine_, keys, packing, tasks_of(files, next)));
    for (const MemoryFile& file : files)
      ASSERT_TRUE(file.outcome) << "never finished";
  }
  static void decrypt(std::vector<MemoryFile>& files,
                      const metadata::VolumeSecret& secret = *identity_) {
    std::size_t next = 0;
    ContainerUnlocker unlocker(secret);
    ASSERT_TRUE(decrypt_containers(
        *engine_, [&](ByteView text) { return unlocker.unlock(text); }, tasks_of(files, next)));
    for (const MemoryFile& file : files)
      ASSERT_TRUE(file.outcome) << "never finished";
  }

  // The container of one file.
  static Bytes seal(const Bytes& plain, const ContainerKeys& keys,
                    const ContainerPacking& packing = {}) {
    std::vector<MemoryFile> files(1);
    files[0].source = plain;
    encrypt(files, keys, packing);
    EXPECT_TRUE(*files[0].outcome);
    return std::move(files[0].sink);
  }
  static MemoryFile open(const Bytes& container) {
    std::vector<MemoryFile> files(1);
    files[0].source = container;
    decrypt(files);
    return std::move(files[0]);
  }
  // Expects the container to be refused, and the bytes that came out before to be the beginning of
  // plain. Returns the error.
  static ErrorCode refused(const Bytes& container, const Bytes& plain) {
    const MemoryFile file = open(container);
    EXPECT_FALSE(*file.outcome) << "taken for good";
    EXPECT_TRUE(file.sink.size() <= plain.size() &&
                std::equal(file.sink.begin(), file.sink.end(), plain.begin()))
        << "something else was given out";
    return *file.outcome ? ErrorCode::exists : file.outcome->error().code;
  }

  // The offset of each record. The last entry is the end of the container.
  static std::vector<std::size_t> record_offsets(const Bytes& container) {
    const auto header = parse_container_header(container).value();
    std::vector<std::size_t> offsets = {container_header_size_bytes + header.keyring_size};
    while (offsets.back() < container.size()) {
      offsets.push_back(offsets.back() +
                        load_le<std::uint32_t>(container.data() + offsets.back() + 8));
    }
    return offsets;
  }

  static inline std::unique_ptr<engine::Engine> engine_;
  static inline std::unique_ptr<metadata::VolumeSecret> identity_;
};

}  // namespace nacre::fs

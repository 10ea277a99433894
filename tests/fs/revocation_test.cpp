// SPDX-License-Identifier: Apache-2.0
// The attacks of a recipient who was removed with --revoke. The attacker has the secret and the
// keyring from before, every key that they open, and all files of today. Each attempt is first
// shown to succeed with a valid secret, so that none fails for another reason.
#include "fs/store/segment_walk.h"
#include "tests/fs/rotation_fixture.h"

namespace nacre::tests {
namespace {

class Revocation : public RotationTest, private fs::SegmentVisitor {
 protected:
  enum class Who : std::size_t { passphrase, rsa_key };  // as recipients() has them

  static metadata::VolumeSecret secret_of(Who who) {
    if (who == Who::passphrase) return first_secret();
    return metadata::VolumeSecret(
        std::move(*engine::RsaPrivateKey::from_der(identity(0).to_der()->view())));
  }

  // The number of records of today's volume that an epoch key opens, whatever epoch their headers
  // name.
  std::uint64_t records_opened_by(const metadata::KeyTree& keys) {
    tried_with_ = &keys;
    opened_ = tried_ = 0;
    engine_ = std::move(*engine::Engine::create({.thread_count = 1}));
    for (const std::string& path : backing_->files()) {
      if (!path.starts_with("segments/")) continue;
      const auto file = backing_->open(path, metadata::OpenMode::read);
      NACRE_EXPECT_OK(file);
      NACRE_EXPECT_OK(fs::walk_segment(**file, {.file_size = *(*file)->size()}, *this));
    }
    EXPECT_GT(tried_, 0u);
    return opened_;
  }
  std::uint64_t tried() const { return tried_; }

  // Opens the database with keys of the attacker's own making, past the keyring and its MACs.
  bool opens_database_with(const std::shared_ptr<metadata::KeyTree>& keys,
                           std::uint64_t generation) {
    auto options = test_volume_options();
    options.read_only = true;
    options.store.chunk_size_bytes = chunk_size;
    auto engine = engine::Engine::create({.thread_count = 1});
    return fs::Mounted::open(backing_, keys, generation, std::move(*engine), options).has_value();
  }

 private:
  Result<> record(std::uint64_t, const engine::RecordHeader& header, ByteView bytes) override {
    ++tried_;
    const std::uint32_t epoch = tried_with_->current_epoch_number();
    const auto key = tried_with_->session_key(epoch, header.salt);
    if (!key) return tl::unexpected(key.error());
    Bytes plain(chunk_size_bytes_max);
    engine::Payload payload;
    payload.input = bytes.data();
    payload.input_size = bytes.size();
    payload.output = plain.data();
    payload.output_size = plain.size();
    payload.volume_id = tried_with_->volume_id();
    payload.messages.push_back({.operation = engine::Operation::unseal,
                                .key_index = payload.add_key((*key)->suite, (*key)->key.view()),
                                .input_size = bytes.size(),
                                .output_capacity = plain.size()});
    engine_->run(payload);
    if (payload.results[0].ok) ++opened_;
    return {};
  }
  Result<> damage(std::uint64_t, std::uint64_t, const Error& error) override {
    return tl::unexpected(error);
  }
  void passed(std::uint64_t) override {}

  std::unique_ptr<engine::Engine> engine_;
  const metadata::KeyTree* tried_with_ = nullptr;
  std::uint64_t opened_ = 0, tried_ = 0;
};

TEST_F(Revocation, leaves_to_whoever_was_removed_nothing_of_what_is_there_now) {
  for (const auto& [removed, stays] :
       {std::pair(Who::rsa_key, Who::passphrase), std::pair(Who::passphrase, Who::rsa_key)}) {
    SCOPED_TRACE(removed == Who::rsa_key ? "an RSA key is removed" : "a passphrase is removed");
    contents_.clear();
    make_volume(engine::CipherSuite::aes_256_gcm);
    open();
    fill(8);
    const Bytes old_text = *backing_->load("keyring");
    const metadata::Keyring old_keyring = keys_.keyring;
    metadata::Keyring without = keys_.keyring;
    without.recipients.erase(without.recipients.begin() + static_cast<std::ptrdiff_t>(removed));
    without.generation++;
    NACRE_ASSERT_OK(keyring_->replace(without));
    NACRE_ASSERT_OK(rotation_->begin({}));
    write("since", 1, 6);
    NACRE_ASSERT_OK(rotation_->run({}));
    close();

    const auto today = metadata::open_volume_keys(*backing_, secret_of(stays));
    NACRE_ASSERT_OK(today);
    EXPECT_CODE(wrong_key, metadata::open_volume_keys(*backing_, secret_of(removed)));
    const auto parsed = metadata::parse_keyring(old_text);
    NACRE_ASSERT_OK(parsed);
    const auto his = metadata::open_keyring(*parsed, secret_of(removed));
    NACRE_ASSERT_OK(his);

    // Records that were written since, or sealed anew: the attacker uses the old epoch key as the
    // key of today's epoch.
    const std::uint64_t opened = records_opened_by(*today->keys);
    EXPECT_EQ(opened, tried());
    EXPECT_EQ(records_opened_by(*his->keys), 0u);
    // Names, sizes and rows: the same key, in place of the keyring's.
    const auto his_epoch = his->keys->current_epoch();
    const auto forged =
        std::make_shared<metadata::KeyTree>(his->keys->volume_id(), his->keys->volume_key(), [&] {
          std::vector<metadata::EpochKey> epochs;
          epochs.push_back({.number = today->keys->current_epoch_number(),
                            .suite = his_epoch.suite,
                            .key = SecretBytes(his_epoch.key.view())});
          return epochs;
        }());
    const std::uint64_t generation = today->keyring.generation;
    EXPECT_TRUE(opens_database_with(today->keys, generation));
    EXPECT_FALSE(opens_database_with(his->keys, generation));
    EXPECT_FALSE(opens_database_with(forged, generation));

    // The attacker puts the old wrapped volume key into today's keyring, with a MAC under the old
    // key.
    metadata::Keyring grafted = today->keyring;
    grafted.recipients.push_back(old_keyring.recipients[static_cast<std::size_t>(removed)]);
    const std::string text = metadata::encode_keyring(grafted, *his->keys);
    const auto graft = metadata::parse_keyring(as_bytes(text));
    NACRE_ASSERT_OK(graft);
    EXPECT_CODE(tampered, metadata::open_keyring(*graft, secret_of(removed)));

    // The old keyring is put back. It is refused, also with the secret of a recipient who stays.
    backing_->store("keyring", old_text);
    backing_->store("keyring.copy", old_text);
    EXPECT_CODE(tampered, metadata::open_volume_keys(*backing_, secret_of(removed)));
    EXPECT_CODE(tampered, metadata::open_volume_keys(*backing_, secret_of(stays)));
  }
}

}  // namespace
}  // namespace nacre::tests

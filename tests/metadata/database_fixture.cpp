// SPDX-License-Identifier: Apache-2.0
// A database over memory for the tests of this folder.
#include "tests/metadata/database_fixture.h"

namespace nacre::tests {

using metadata::Database;
using metadata::DatabaseOptions;

std::shared_ptr<const metadata::KeyTree> make_keys(Byte id, metadata::EpochFormat format) {
  engine::VolumeId volume_id;
  volume_id.fill(id);
  const Bytes key(32, static_cast<Byte>(id + 1));
  std::vector<metadata::EpochKey> epochs;
  epochs.push_back({.number = 1,
                    .suite = engine::CipherSuite::aes_256_gcm,
                    .key = SecretBytes(ByteView(key)),
                    .format = format});
  return std::make_shared<metadata::KeyTree>(volume_id, SecretBytes(ByteView(key)),
                                             std::move(epochs));
}

DatabaseOptions small_options() {
  DatabaseOptions options;
  options.block_cache_bytes = 1u << 20;
  options.write_buffer_bytes = 1u << 20;
  options.manifest_bytes_max = 4u << 10;
  options.padding = padding_under_test();
  return options;
}

std::unique_ptr<Database> open_database(std::shared_ptr<MemoryBacking> backing,
                                        DatabaseOptions options) {
  auto database = Database::open(std::move(backing), make_keys(), options);
  EXPECT_TRUE(database) << database.error().message;
  return database ? std::move(*database) : nullptr;
}

std::unique_ptr<Database> create_database(std::shared_ptr<MemoryBacking> backing) {
  DatabaseOptions options = small_options();
  options.create = true;
  return open_database(std::move(backing), options);
}

bool commit(Database& database, bool sync) {
  database.freeze();
  return database.commit_frozen(sync).has_value();
}

std::vector<std::string> files_ending(const MemoryBacking& backing, std::string_view suffix) {
  std::vector<std::string> paths;
  for (auto& path : backing.files()) {
    if (path.ends_with(suffix)) paths.push_back(path);
  }
  return paths;
}

std::vector<std::string> files_beginning(const MemoryBacking& backing, std::string_view prefix) {
  std::vector<std::string> paths;
  for (auto& path : backing.files()) {
    if (path.starts_with("db/" + std::string(prefix))) paths.push_back(path);
  }
  return paths;
}

}  // namespace nacre::tests

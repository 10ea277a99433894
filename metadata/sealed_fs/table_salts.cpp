// SPDX-License-Identifier: Apache-2.0
#include "metadata/sealed_fs/table_salts.h"

#include <algorithm>

namespace nacre::metadata {
namespace {

class SaltAsChecksum final : public rocksdb::FileChecksumGenerator {
 public:
  explicit SaltAsChecksum(std::string salt) : salt_(std::move(salt)) {}
  void Update(const char*, std::size_t) override {}
  void Finalize() override {}
  // Empty for a table of format 1: the manifest then says nothing.
  std::string GetChecksum() const override { return salt_; }
  const char* Name() const override { return table_salt_name.data(); }

 private:
  const std::string salt_;
};

}  // namespace

void TableSalts::note(const std::string& path, const FileSalt& salt) {
  const LockGuard lock(mutex_);
  if (noted_.size() == noted_count_max) noted_.clear();
  noted_.insert_or_assign(path, salt);
}

std::unique_ptr<rocksdb::FileChecksumGenerator> TableSalts::CreateFileChecksumGenerator(
    const rocksdb::FileChecksumGenContext& context) {
  std::string salt;
  {
    const LockGuard lock(mutex_);
    const auto noted = std::find_if(noted_.begin(), noted_.end(), [&](const auto& each) {
      // RocksDB composes paths freely; the number in the name is what counts.
      return parse_file_name(each.first).number == parse_file_name(context.file_name).number &&
             parse_file_name(context.file_name).file_class == FileClass::table;
    });
    if (noted != noted_.end()) {
      const auto& bytes = noted->second;
      salt.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      noted_.erase(noted);
    }
  }
  return std::make_unique<SaltAsChecksum>(std::move(salt));
}

std::optional<FileSalt> table_salt_of(std::string_view checksum_name, std::string_view checksum) {
  FileSalt salt;
  if (checksum_name != table_salt_name || checksum.size() != salt.size()) return std::nullopt;
  std::transform(checksum.begin(), checksum.end(), salt.begin(),
                 [](char c) { return static_cast<Byte>(c); });
  return salt;
}

}  // namespace nacre::metadata

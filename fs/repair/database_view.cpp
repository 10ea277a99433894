// SPDX-License-Identifier: Apache-2.0
#include "fs/repair/database_view.h"

#include <utility>

#include "metadata/volume_files.h"

namespace nacre::fs {

using metadata::BackingDirectory;

namespace {

class DatabaseView final : public BackingDirectory {
 public:
  DatabaseView(std::shared_ptr<BackingDirectory> volume, std::shared_ptr<BackingDirectory> holder,
               std::string folder)
      : volume_(std::move(volume)), holder_(std::move(holder)), folder_(std::move(folder)) {}

  Result<std::unique_ptr<metadata::BackingFile>> open(std::string_view path,
                                                      metadata::OpenMode mode) override {
    const auto [directory, real] = find(path);
    return directory->open(real, mode);
  }
  Result<void> remove(std::string_view path) override {
    const auto [directory, real] = find(path);
    return directory->remove(real);
  }
  Result<void> rename(std::string_view from, std::string_view to) override {
    const auto [directory, real] = find(from);
    return directory->rename(real, find(to).second);
  }
  Result<void> make_directory(std::string_view path) override {
    const auto [directory, real] = find(path);
    return directory->make_directory(real);
  }
  Result<bool> exists(std::string_view path) override {
    const auto [directory, real] = find(path);
    return directory->exists(real);
  }
  Result<std::uint64_t> file_size(std::string_view path) override {
    const auto [directory, real] = find(path);
    return directory->file_size(real);
  }
  Result<std::vector<std::string>> list(std::string_view folder) override {
    const auto [directory, real] = find(folder);
    return directory->list(real);
  }
  Result<void> sync_directory(std::string_view folder) override {
    // In the volume's own folder only the name of db/ can change.
    if (folder.empty()) return holder_->sync_directory("");
    const auto [directory, real] = find(folder);
    return directory->sync_directory(real);
  }
  Result<metadata::BackingSpace> space() override { return holder_->space(); }
  std::string description() const override { return volume_->description(); }

 private:
  std::pair<BackingDirectory*, std::string> find(std::string_view path) const {
    constexpr std::string_view database = metadata::database_folder;
    const bool is_below =
        path.starts_with(database) && path.size() > database.size() && path[database.size()] == '/';
    if (path != database && !is_below) return {volume_.get(), std::string(path)};
    return {holder_.get(), folder_ + std::string(path.substr(database.size()))};
  }

  const std::shared_ptr<BackingDirectory> volume_, holder_;
  const std::string folder_;
};

}  // namespace

std::shared_ptr<BackingDirectory> with_database(std::shared_ptr<BackingDirectory> volume,
                                                std::shared_ptr<BackingDirectory> holder,
                                                std::string folder) {
  return std::make_shared<DatabaseView>(std::move(volume), std::move(holder), std::move(folder));
}

}  // namespace nacre::fs

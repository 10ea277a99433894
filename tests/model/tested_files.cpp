// SPDX-License-Identifier: Apache-2.0
#include "tests/model/tested_files.h"

#include <algorithm>
#include <array>
#include <utility>

#include <sys/stat.h>

#include "fs/cache/flush.h"
#include "fs/cache/tidy_chunk.h"
#include "fs/space/compactor.h"
#include "tests/fs/store_fixture.h"
#include "tests/fs/volume_fixture.h"

namespace nacre::tests {

namespace {

constexpr std::uint64_t other_size_max = 8u << 20;
// Moments in which nothing happens come now and then between calls.
constexpr std::chrono::milliseconds idle_moment{1};

std::uint64_t segment_size_of(const TestedFilesOptions& options) {
  return std::max<std::uint64_t>(256u << 10, 4ull * options.chunk_size_bytes);
}

Bytes other_content(const TestedFilesOptions& options) {
  Bytes bytes(std::min(options.cache_budget_bytes * 2, other_size_max));
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<Byte>(i * 0x9E3779B97F4A7C15ull >> 32);
  return bytes;
}

// Chunk by chunk; what is read a second time is not spent.
template <typename Read>
Result<> read_twice(const TestedFilesOptions& options, std::uint64_t size, Read read) {
  Bytes piece(options.chunk_size_bytes);
  for (std::uint64_t offset = 0; offset < size; offset += piece.size()) {
    for (int round = 0; round < 2; ++round)
      NACRE_TRY(read(offset, MutableByteView(piece)));
  }
  return {};
}

class VolumeFiles final : public TestedFiles {
 public:
  explicit VolumeFiles(const TestedFilesOptions& options) : options_(options) {
    volume_options_ = test_volume_options();
    volume_options_.store.chunk_size_bytes = options.chunk_size_bytes;
    volume_options_.store.segment_size_bytes = segment_size_of(options);
    volume_options_.background_compaction = options.background_compaction;
    volume_options_.compaction.idle_after = idle_moment;
    volume_options_.cache_budget_bytes = options.cache_budget_bytes;
    volume_options_.dirty_budget_bytes = options.dirty_budget_bytes;
    volume_options_.inline_commit_bytes_max = options.inline_commit_bytes_max;
  }
  ~VolumeFiles() override {
    if (volume_) (void)volume_.mounted().close();
  }

  Result<> open() override {
    const bool is_new = backing_ == nullptr;
    if (is_new) {
      backing_ = MemoryBacking::create();
      NACRE_TRY(fs::Mounted::format(backing_, test_keys(), 1, caller_));
    }
    NACRE_ASSIGN(auto engine,
                 engine::Engine::create({.choice = engine::EngineChoice::cpu,
                                         .thread_count = options_.engine_thread_count}));
    NACRE_ASSIGN(volume_,
                 fs::Mounted::open(backing_, test_keys(), 1, std::move(engine), volume_options_));
    if (!is_new) return {};
    for (unsigned file = 0; file < tested_file_count; ++file) {
      NACRE_ASSIGN(inodes_.at(file), make("file" + std::to_string(file)));
    }
    NACRE_ASSIGN(other_, make("other"));
    return {};
  }
  Result<> close() override {
    const auto closed = volume_.mounted().close();
    volume_.reset();
    return closed;
  }

  Result<std::uint64_t> size(unsigned file) override {
    NACRE_ASSIGN(const auto attributes, volume_->attributes(inodes_.at(file)));
    return attributes.size;
  }
  Result<std::size_t> read(unsigned file, std::uint64_t offset, MutableByteView out) override {
    return volume_->read(inodes_.at(file), offset, out);
  }
  Result<> write(unsigned file, std::uint64_t offset, ByteView bytes) override {
    return volume_->write(inodes_.at(file), offset, bytes, {});
  }
  Result<> resize(unsigned file, std::uint64_t size) override {
    NACRE_TRY(volume_->change_attributes(inodes_.at(file), {.size = size}));
    return {};
  }
  Result<> allocate(unsigned file, fs::AllocateMode mode, std::uint64_t offset,
                    std::uint64_t size) override {
    return volume_->allocate(inodes_.at(file), mode, offset, size);
  }
  Result<std::uint64_t> copy(unsigned from, std::uint64_t offset, unsigned to, std::uint64_t target,
                             std::uint64_t size) override {
    return volume_->copy_range(inodes_.at(from), offset, inodes_.at(to), target, size);
  }

  Result<> sync(unsigned file) override { return sync_and_wait(*volume_, inodes_.at(file)); }
  Result<> commit() override { return volume_->sync_all(); }
  Result<> compact() override {
    NACRE_TRY(volume_.mounted().compact(fs::CompactionGoal::everything, {}));
    return {};
  }
  Result<> flush() override { return {}; }
  Result<> tidy() override { return {}; }
  Result<> evict() override {
    if (other_size_ == 0) {
      const Bytes bytes = other_content(options_);
      NACRE_TRY(volume_->write(other_, 0, bytes, {}));
      NACRE_TRY(volume_->sync_all());
      other_size_ = bytes.size();
    }
    return read_twice(options_, other_size_, [&](std::uint64_t offset, MutableByteView out) {
      return volume_->read(other_, offset, out);
    });
  }
  Result<> tend() override { return compact(); }

 private:
  Result<fs::InodeNumber> make(const std::string& name) {
    NACRE_ASSIGN(const auto made,
                 volume_->make_node(metadata::root_inode, name, caller_, S_IFREG | 0644, 0));
    return made.inode;
  }

  const TestedFilesOptions options_;
  const fs::Caller caller_{.uid = 1000, .gid = 100, .umask = 022};
  fs::VolumeOptions volume_options_;
  std::shared_ptr<MemoryBacking> backing_;
  OpenVolume volume_;
  std::array<fs::InodeNumber, tested_file_count> inodes_;
  fs::InodeNumber other_;
  std::uint64_t other_size_ = 0;
};

// Inode numbers are the indices plus one; the last one is of the file that takes the cache.
class DataFiles final : public TestedFiles, private fs::RowKeeper {
 public:
  explicit DataFiles(const TestedFilesOptions& options) : options_(options) {}
  ~DataFiles() override {
    if (compactor_) compactor_->stop();
  }

  Result<> open() override {
    if (backing_ == nullptr) {
      backing_ = MemoryBacking::create();
      NACRE_TRY(TestStore::format(backing_));
    }
    NACRE_ASSIGN(engine_, engine::Engine::create({.choice = engine::EngineChoice::cpu,
                                                  .thread_count = options_.engine_thread_count}));
    StoreOptions options;
    options.segments.chunk_size_bytes = options_.chunk_size_bytes;
    options.segments.segment_size_bytes = segment_size_of(options_);
    options.cache.cache_budget_bytes = options_.cache_budget_bytes;
    options.cache.dirty_budget_bytes = options_.dirty_budget_bytes;
    options.inline_commit_bytes_max = options_.inline_commit_bytes_max;
    options.threads = true;
    options.engine = engine_.get();
    NACRE_ASSIGN(store_, TestStore::open(backing_, options));
    compactor_ = std::make_unique<fs::Compactor>(
        store_->database(), store_->segments(), store_->cache().map(), store_->committer(),
        static_cast<fs::RowKeeper&>(*this), fs::CompactorOptions{.idle_after = idle_moment});
    if (options_.background_compaction) compactor_->start();
    return {};
  }
  Result<> close() override {
    compactor_->stop();
    compactor_.reset();
    const auto closed = store_->close();
    store_.reset();
    engine_.reset();
    return closed;
  }

  Result<std::uint64_t> size(unsigned file) override { return data(file).size(); }
  Result<std::size_t> read(unsigned file, std::uint64_t offset, MutableByteView out) override {
    return data(file).read(offset, out);
  }
  Result<> write(unsigned file, std::uint64_t offset, ByteView bytes) override {
    return data(file).write(offset, bytes);
  }
  Result<> resize(unsigned file, std::uint64_t size) override { return data(file).resize(size); }
  Result<> allocate(unsigned file, fs::AllocateMode mode, std::uint64_t offset,
                    std::uint64_t size) override {
    using fs::AllocateMode;
    if (mode != AllocateMode::allocate && mode != AllocateMode::keep_size)
      NACRE_TRY(data(file).punch(offset, size));
    if (mode == AllocateMode::allocate || mode == AllocateMode::zero)
      NACRE_TRY(data(file).extend(offset + size));
    return {};
  }
  Result<std::uint64_t> copy(unsigned from, std::uint64_t offset, unsigned to, std::uint64_t target,
                             std::uint64_t size) override {
    Bytes bytes(size);
    NACRE_ASSIGN(const std::size_t count, data(from).read(offset, bytes));
    NACRE_TRY(data(to).write(target, ByteView(bytes).first(count)));
    return count;
  }

  Result<> sync(unsigned file) override {
    const auto synced = store_->sync(file + 1);
    compactor_->wake();
    return synced;
  }
  Result<> commit() override {
    const auto committed = store_->sync_all();
    compactor_->wake();
    return committed;
  }
  Result<> compact() override {
    NACRE_TRY(compactor_->run(fs::CompactionGoal::everything, {}));
    return {};
  }
  Result<> flush() override {
    fs::Flush flush(store_->cache(), fs::FlushMode::everything);
    constexpr std::uint64_t last_chunk = (1u << 30);
    for (unsigned file = 0; file < tested_file_count; ++file)
      flush.add(store_->shared_file(file + 1), 0, last_chunk);
    return flush.is_empty() ? Result<>() : flush.run();
  }
  Result<> tidy() override {
    for (unsigned file = 0; file < tested_file_count; ++file) {
      const std::uint64_t count = store_->cache().map().chunk_count(data(file).durable_size());
      for (std::uint64_t index = 0; index < count; ++index) {
        const auto tidied = fs::tidy_chunk(store_->cache(), data(file), fs::ChunkIndex{index});
        // If other threads work meanwhile, the chunk may be gone, or its records may have moved.
        if (!tidied && !options_.background_compaction) return tl::unexpected(tidied.error());
      }
    }
    store_->check_layers();
    return {};
  }
  Result<> evict() override {
    fs::FileData& other = data(tested_file_count);
    if (other.size() == 0) {
      NACRE_TRY(other.write(0, other_content(options_)));
      NACRE_TRY(store_->sync_all());
    }
    return read_twice(options_, other.size(), [&](std::uint64_t offset, MutableByteView out) {
      return other.read(offset, out);
    });
  }
  Result<> tend() override {
    NACRE_TRY(tidy());
    NACRE_TRY(flush());
    return compact();
  }

 private:
  fs::FileData& data(unsigned file) { return store_->file(file + 1); }

  // RowKeeper.
  Result<std::size_t> change_rows(fs::InodeNumber inode,
                                  std::span<const fs::RowChange> changes) override {
    return store_->file(inode.value).change_rows(changes);
  }
  bool is_going(fs::InodeNumber) override { return false; }
  Result<> tidy_chunk(fs::InodeNumber inode, fs::ChunkIndex index) override {
    NACRE_TRY(fs::tidy_chunk(store_->cache(), store_->file(inode.value), index));
    return {};
  }
  std::uint64_t inlined_bytes() const override { return store_->cache().inlined_bytes(); }
  fs::PatchedChunks take_patched_chunks() override { return store_->cache().take_patched(); }

  const TestedFilesOptions options_;
  std::shared_ptr<MemoryBacking> backing_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<TestStore> store_;
  std::unique_ptr<fs::Compactor> compactor_;
};

}  // namespace

std::unique_ptr<TestedFiles> make_volume_files(const TestedFilesOptions& options) {
  return std::make_unique<VolumeFiles>(options);
}

std::unique_ptr<TestedFiles> make_data_files(const TestedFilesOptions& options) {
  return std::make_unique<DataFiles>(options);
}

}  // namespace nacre::tests

// SPDX-License-Identifier: Apache-2.0
#include "tests/model/file_calls.h"

#include <algorithm>
#include <array>
#include <future>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>

#include "fs/volume/volume.h"
#include "tests/fs/volume_fixture.h"

namespace nacre::tests {

namespace {

using fs::AllocateMode;
using fs::InodeNumber;

constexpr std::array kind_names = {
    "write",  "resize", "punch",    "zero", "zero_keep_size", "allocate", "allocate_keep_size",
    "copy",   "read",   "read_all", "sync", "commit",         "compact",  "evict",
    "remount"};

// Bytes that tell which write they are of and where they lie. Every other fill does not compress.
void fill_bytes(std::uint32_t fill, MutableByteView out) {
  if (fill % 2 == 0) {
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<Byte>(1 + (i / 64 + fill * 37u) % 255);
    return;
  }
  std::uint64_t state = fill * 0x9E3779B97F4A7C15ull + 1;
  for (Byte& byte : out) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    byte = static_cast<Byte>(state >> 32);
  }
}

class FileUnderTest {
 public:
  explicit FileUnderTest(const FileCallsProfile& profile) : profile_(profile) {
    options_ = test_volume_options();
    options_.store.chunk_size_bytes = profile.chunk_size_bytes;
    options_.store.segment_size_bytes =
        std::max<std::uint64_t>(256u << 10, 4ull * profile.chunk_size_bytes);
    options_.background_compaction = false;  // calls compact
    options_.cache_budget_bytes = profile.cache_budget_bytes;
    options_.inline_commit_bytes_max = profile.inline_commit_bytes_max;
  }
  ~FileUnderTest() {
    if (volume_) (void)volume_->close();
  }

  Result<> open() {
    NACRE_TRY(fs::Volume::format(backing_, test_keys(), 1, caller_));
    NACRE_TRY(mount());
    NACRE_ASSIGN(const auto file,
                 volume_->make_node(metadata::root_inode, "file", caller_, S_IFREG | 0644, 0));
    inode_ = file.inode;
    NACRE_ASSIGN(const auto other,
                 volume_->make_node(metadata::root_inode, "other", caller_, S_IFREG | 0644, 0));
    other_ = other.inode;
    return {};
  }

  // An error is a difference too. Without one: what is wrong, or nothing.
  Result<std::string> carry_out(const Call& call) {
    switch (call.kind) {
      case CallKind::write: {
        Bytes bytes(call.size);
        fill_bytes(call.fill, bytes);
        NACRE_TRY(volume_->write(inode_, call.offset, bytes, {}));
        grow(call.offset + call.size);
        std::copy(bytes.begin(), bytes.end(), model_.begin() + at(call.offset));
        return std::string();
      }
      case CallKind::resize:
        NACRE_TRY(volume_->change_attributes(inode_, {.size = call.size}));
        model_.resize(call.size, Byte{0});
        return std::string();
      case CallKind::punch:
        return clear(AllocateMode::punch_hole, call, /*grows=*/false);
      case CallKind::zero:
        return clear(AllocateMode::zero, call, /*grows=*/true);
      case CallKind::zero_keep_size:
        return clear(AllocateMode::zero_keep_size, call, /*grows=*/false);
      case CallKind::allocate:
        NACRE_TRY(volume_->allocate(inode_, AllocateMode::allocate, call.offset, call.size));
        grow(call.offset + call.size);
        return std::string();
      case CallKind::allocate_keep_size:
        NACRE_TRY(volume_->allocate(inode_, AllocateMode::keep_size, call.offset, call.size));
        return std::string();
      case CallKind::copy:
        return copy(call);
      case CallKind::read:
        return compare(call.offset, call.size);
      case CallKind::read_all:
        return compare(0, model_.size());
      case CallKind::sync:
        NACRE_TRY(sync_and_wait(*volume_, inode_));
        return std::string();
      case CallKind::commit:
        NACRE_TRY(volume_->sync_all());
        return std::string();
      case CallKind::compact:
        NACRE_TRY(volume_->compact(fs::CompactionGoal::everything, {}));
        return std::string();
      case CallKind::evict:
        return evict();
      case CallKind::remount:
        NACRE_TRY(volume_->close());
        volume_.reset();
        NACRE_TRY(mount());
        return std::string();
    }
    return std::string("no such call");
  }

 private:
  Result<> mount() {
    auto engine = engine::Engine::create({.choice = engine::EngineChoice::cpu, .thread_count = 1});
    if (!engine) return tl::unexpected(engine.error());
    NACRE_ASSIGN(volume_, fs::Volume::open(backing_, test_keys(), 1, std::move(*engine), options_));
    return {};
  }
  static std::ptrdiff_t at(std::uint64_t offset) { return static_cast<std::ptrdiff_t>(offset); }
  void grow(std::uint64_t size) {
    if (size > model_.size()) model_.resize(size, Byte{0});
  }
  Result<std::string> clear(AllocateMode mode, const Call& call, bool grows) {
    NACRE_TRY(volume_->allocate(inode_, mode, call.offset, call.size));
    if (grows) grow(call.offset + call.size);
    const std::uint64_t end = std::min<std::uint64_t>(model_.size(), call.offset + call.size);
    if (call.offset < end)
      std::fill(model_.begin() + at(call.offset), model_.begin() + at(end), Byte{0});
    return std::string();
  }
  Result<std::string> copy(const Call& call) {
    if (call.offset >= model_.size()) return std::string();
    const std::uint64_t wanted = std::min<std::uint64_t>(call.size, model_.size() - call.offset);
    for (std::uint64_t done = 0; done < wanted;) {
      NACRE_ASSIGN(const std::uint64_t count,
                   volume_->copy_range(inode_, call.offset + done, inode_, call.target + done,
                                       wanted - done));
      if (count == 0 || count > wanted - done)
        return fmt::format("a copy of {} bytes gave {}", wanted - done, count);
      done += count;
    }
    const Bytes bytes(model_.begin() + at(call.offset), model_.begin() + at(call.offset + wanted));
    grow(call.target + wanted);
    std::copy(bytes.begin(), bytes.end(), model_.begin() + at(call.target));
    return std::string();
  }
  Result<std::string> compare(std::uint64_t offset, std::uint64_t size) {
    NACRE_ASSIGN(const auto attributes, volume_->attributes(inode_));
    if (attributes.size != model_.size())
      return fmt::format("the size is {} and must be {}", attributes.size, model_.size());
    Bytes out(size, Byte{0xEE});
    NACRE_ASSIGN(const std::size_t count, volume_->read(inode_, offset, out));
    const std::uint64_t expected =
        offset < model_.size() ? std::min<std::uint64_t>(size, model_.size() - offset) : 0;
    if (count != expected) return fmt::format("read {} bytes of {}", count, expected);
    const auto differs =
        std::mismatch(out.begin(), out.begin() + at(count), model_.begin() + at(offset));
    if (differs.first == out.begin() + at(count)) return std::string();
    return fmt::format("byte {} is {} and must be {}", differs.second - model_.begin(),
                       *differs.first, *differs.second);
  }
  // What is read of the other file is not spent: it is read once more.
  Result<std::string> evict() {
    const std::uint64_t size = std::min<std::uint64_t>(profile_.cache_budget_bytes * 2, 8u << 20);
    if (!other_is_full_) {
      Bytes bytes(size);
      fill_bytes(1, bytes);
      NACRE_TRY(volume_->write(other_, 0, bytes, {}));
      NACRE_TRY(volume_->sync_all());
      other_is_full_ = true;
    }
    Bytes piece(profile_.chunk_size_bytes);
    for (std::uint64_t offset = 0; offset < size; offset += piece.size()) {
      for (int round = 0; round < 2; ++round)
        NACRE_TRY(volume_->read(other_, offset, piece));
    }
    return std::string();
  }

  const FileCallsProfile profile_;
  const fs::Caller caller_{.uid = 1000, .gid = 100, .umask = 022};
  fs::VolumeOptions options_;
  std::shared_ptr<MemoryBacking> backing_ = MemoryBacking::create();
  std::unique_ptr<fs::Volume> volume_;
  InodeNumber inode_, other_;
  bool other_is_full_ = false;
  Bytes model_;
};

class Drawing {
 public:
  Drawing(const FileCallsProfile& profile, std::uint32_t seed) : profile_(profile), random_(seed) {}

  Call next() {
    const std::uint64_t chance = below(1000);
    if (profile_.state_size_bytes > 0 && chance < 880) return next_of_state(chance);
    if (chance < 380) return range(CallKind::write, profile_.write_size_max);
    if (chance < 560) return range(CallKind::read, profile_.write_size_max);
    if (chance < 600) return range(CallKind::punch, profile_.write_size_max);
    if (chance < 630) return range(CallKind::zero, profile_.write_size_max);
    if (chance < 650) return range(CallKind::zero_keep_size, profile_.write_size_max);
    if (chance < 670) return range(CallKind::allocate, profile_.write_size_max);
    if (chance < 680) return range(CallKind::allocate_keep_size, profile_.write_size_max);
    if (chance < 740) return Call{.kind = CallKind::resize, .size = below(profile_.file_size_max)};
    if (chance < 790) return copy();
    if (chance < 920) return Call{.kind = CallKind::sync};
    if (chance < 940) return Call{.kind = CallKind::commit};
    if (chance < 960) return Call{.kind = CallKind::compact};
    if (chance < 997) return Call{.kind = CallKind::read_all};
    if (chance < 999) return Call{.kind = CallKind::evict};
    return Call{.kind = CallKind::remount};
  }

 private:
  std::uint64_t below(std::uint64_t end) { return end == 0 ? 0 : random_() % end; }
  // Sizes of a few bytes are as likely as long ones, and places are often those of pages.
  std::uint64_t size(std::uint64_t size_max) {
    switch (below(4)) {
      case 0:
        return 1 + below(std::min<std::uint64_t>(size_max, 5000));
      case 1:
        return std::min<std::uint64_t>(size_max, 4096u << below(6));
      default:
        return 1 + below(size_max);
    }
  }
  Call range(CallKind kind, std::uint64_t size_max) {
    Call call{.kind = kind, .size = size(size_max), .fill = static_cast<std::uint32_t>(random_())};
    call.offset = below(profile_.file_size_max);
    if (below(3) == 0) call.offset -= call.offset % 4096;
    if (below(8) == 0) call.offset -= call.offset % profile_.chunk_size_bytes;
    call.size = std::min(call.size, profile_.file_size_max - call.offset);
    return call;
  }
  Call copy() {
    Call call = range(CallKind::copy, profile_.write_size_max);
    call.target = below(profile_.file_size_max);
    if (below(3) == 0) call.target -= call.target % 4096;
    call.size = std::min(call.size, profile_.file_size_max - call.target);
    // Ranges of one file may not meet.
    const std::uint64_t apart =
        call.offset < call.target ? call.target - call.offset : call.offset - call.target;
    call.size = std::min(call.size, apart);
    return call.size > 0 ? call : Call{.kind = CallKind::read_all};
  }
  Call next_of_state(std::uint64_t chance) {
    if (chance < 260)
      return Call{.kind = CallKind::write,
                  .size = profile_.state_size_bytes,
                  .fill = static_cast<std::uint32_t>(random_())};
    if (chance < 280) {
      Call part = {.kind = CallKind::write, .fill = static_cast<std::uint32_t>(random_())};
      part.offset = below(profile_.state_size_bytes);
      part.size = 1 + below(profile_.state_size_bytes - part.offset);
      return part;
    }
    if (chance < 580) return Call{.kind = CallKind::sync};
    // Merged seldom: a state is many versions old by then.
    if (chance < 878) return Call{.kind = CallKind::read, .size = profile_.state_size_bytes};
    return Call{.kind = CallKind::compact};
  }

  const FileCallsProfile& profile_;
  std::mt19937 random_;
};

}  // namespace

std::string to_string(const Call& call) {
  return fmt::format("{} offset {} size {} target {} fill {}",
                     kind_names.at(static_cast<std::size_t>(call.kind)), call.offset, call.size,
                     call.target, call.fill);
}

std::vector<Call> draw_calls(const FileCallsProfile& profile, std::uint32_t seed,
                             std::size_t count) {
  Drawing drawing(profile, seed);
  std::vector<Call> calls(count);
  std::generate(calls.begin(), calls.end(), [&] { return drawing.next(); });
  return calls;
}

std::optional<Difference> run_calls(const FileCallsProfile& profile, std::span<const Call> calls) {
  FileUnderTest file(profile);
  if (const auto opened = file.open(); !opened) return Difference{0, opened.error().message};
  for (std::size_t i = 0; i <= calls.size(); ++i) {
    const auto wrong = file.carry_out(i < calls.size() ? calls[i] : Call{});
    if (!wrong) {
      return Difference{
          i, fmt::format("{}: {}", nacre::to_string(wrong.error().code), wrong.error().message)};
    }
    if (!wrong->empty()) return Difference{i, *wrong};
  }
  return std::nullopt;
}

std::vector<Call> shrink_calls(const FileCallsProfile& profile, std::vector<Call> calls,
                               std::size_t run_count_max) {
  std::size_t runs = 0;
  const auto differs = [&](const std::vector<Call>& candidate) {
    ++runs;
    return run_calls(profile, candidate);
  };
  for (std::size_t piece = calls.size() / 2; piece > 0 && runs < run_count_max;) {
    bool shrunk = false;
    for (std::size_t from = 0; from < calls.size() && runs < run_count_max;) {
      std::vector<Call> candidate(calls.begin(), calls.begin() + static_cast<std::ptrdiff_t>(from));
      const std::size_t behind = std::min(calls.size(), from + piece);
      candidate.insert(candidate.end(), calls.begin() + static_cast<std::ptrdiff_t>(behind),
                       calls.end());
      if (const auto still = differs(candidate)) {
        // What comes behind the difference is of no use.
        candidate.resize(std::min(candidate.size(), still->call + 1));
        calls = std::move(candidate);
        shrunk = true;
      } else {
        from += piece;
      }
    }
    if (!shrunk || piece > calls.size()) piece /= 2;
  }
  return calls;
}

}  // namespace nacre::tests

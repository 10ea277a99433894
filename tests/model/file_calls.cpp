// SPDX-License-Identifier: Apache-2.0
#include "tests/model/file_calls.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/format.h>

namespace nacre::tests {

namespace {

using fs::AllocateMode;

constexpr std::array kind_names = {
    "write",   "resize", "punch",    "zero", "zero_keep_size", "allocate", "allocate_keep_size",
    "copy",    "read",   "read_all", "sync", "commit",         "flush",    "tidy",
    "compact", "evict",  "remount"};

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

// Merges and compacts on a thread of its own, once in a number of calls.
class Tending {
 public:
  explicit Tending(TestedFiles& files) : files_(files), thread_([this] { run(); }) {}
  ~Tending() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }
  Tending(const Tending&) = delete;
  Tending& operator=(const Tending&) = delete;

  // Returns the error since the last call, if there was one.
  Result<> note_call() {
    std::lock_guard lock(mutex_);
    if (++calls_ % calls_in_turn == 0) wake_.notify_one();
    return std::exchange(outcome_, Result<>());
  }

 private:
  static constexpr std::uint64_t calls_in_turn = 150;

  void run() {
    std::unique_lock lock(mutex_);
    for (std::uint64_t next = calls_in_turn;; next = calls_ + calls_in_turn) {
      wake_.wait(lock, [&] { return stopping_ || calls_ >= next; });
      if (stopping_) return;
      lock.unlock();
      auto tended = files_.tend();
      lock.lock();
      if (!tended) outcome_ = std::move(tended);
    }
  }

  TestedFiles& files_;
  std::mutex mutex_;  // guards the next four
  std::condition_variable wake_;
  std::uint64_t calls_ = 0;
  bool stopping_ = false;
  Result<> outcome_ = {};
  std::thread thread_;
};

class FilesUnderTest {
 public:
  explicit FilesUnderTest(const FileCallsProfile& profile)
      : is_tended_(profile.is_tended),
        files_(profile.level == TestedLevel::volume ? make_volume_files(profile.options)
                                                    : make_data_files(profile.options)) {}
  ~FilesUnderTest() { tending_.reset(); }

  Result<> open() {
    NACRE_TRY(files_->open());
    if (is_tended_) tending_ = std::make_unique<Tending>(*files_);
    return {};
  }

  // Makes the call. An error counts as a difference. Otherwise returns what differs, or an empty
  // text.
  Result<std::string> carry_out(const Call& call) {
    if (tending_) NACRE_TRY(tending_->note_call());
    Bytes& model = models_.at(call.file);
    switch (call.kind) {
      case CallKind::write: {
        Bytes bytes(call.size);
        fill_bytes(call.fill, bytes);
        NACRE_TRY(files_->write(call.file, call.offset, bytes));
        grow(model, call.offset + call.size);
        std::copy(bytes.begin(), bytes.end(), model.begin() + at(call.offset));
        return std::string();
      }
      case CallKind::resize:
        NACRE_TRY(files_->resize(call.file, call.size));
        model.resize(call.size, Byte{0});
        return std::string();
      case CallKind::punch:
        return clear(AllocateMode::punch_hole, call, /*grows=*/false);
      case CallKind::zero:
        return clear(AllocateMode::zero, call, /*grows=*/true);
      case CallKind::zero_keep_size:
        return clear(AllocateMode::zero_keep_size, call, /*grows=*/false);
      case CallKind::allocate:
        NACRE_TRY(files_->allocate(call.file, AllocateMode::allocate, call.offset, call.size));
        grow(model, call.offset + call.size);
        return std::string();
      case CallKind::allocate_keep_size:
        NACRE_TRY(files_->allocate(call.file, AllocateMode::keep_size, call.offset, call.size));
        return std::string();
      case CallKind::copy:
        return copy(call);
      case CallKind::read:
        return compare(call.file, call.offset, call.size);
      case CallKind::read_all:
        return compare_all();
      case CallKind::sync:
        return done(files_->sync(call.file));
      case CallKind::commit:
        return done(files_->commit());
      case CallKind::flush:
        return done(files_->flush());
      case CallKind::tidy:
        return done(files_->tidy());
      case CallKind::compact:
        return done(files_->compact());
      case CallKind::evict:
        return done(files_->evict());
      case CallKind::remount:
        tending_.reset();
        NACRE_TRY(files_->close());
        return done(open());
    }
    return std::string("no such call");
  }

 private:
  static std::ptrdiff_t at(std::uint64_t offset) { return static_cast<std::ptrdiff_t>(offset); }
  static Result<std::string> done(const Result<>& outcome) {
    if (!outcome) return tl::unexpected(outcome.error());
    return std::string();
  }
  static void grow(Bytes& model, std::uint64_t size) {
    if (size > model.size()) model.resize(size, Byte{0});
  }
  Result<std::string> clear(AllocateMode mode, const Call& call, bool grows) {
    Bytes& model = models_.at(call.file);
    NACRE_TRY(files_->allocate(call.file, mode, call.offset, call.size));
    if (grows) grow(model, call.offset + call.size);
    const std::uint64_t end = std::min<std::uint64_t>(model.size(), call.offset + call.size);
    if (call.offset < end)
      std::fill(model.begin() + at(call.offset), model.begin() + at(end), Byte{0});
    return std::string();
  }
  Result<std::string> copy(const Call& call) {
    const Bytes& from = models_.at(call.file);
    Bytes& to = models_.at(call.to_file);
    if (call.offset >= from.size()) return std::string();
    const std::uint64_t wanted = std::min<std::uint64_t>(call.size, from.size() - call.offset);
    for (std::uint64_t done = 0; done < wanted;) {
      NACRE_ASSIGN(const std::uint64_t count,
                   files_->copy(call.file, call.offset + done, call.to_file, call.target + done,
                                wanted - done));
      if (count == 0 || count > wanted - done)
        return fmt::format("a copy of {} bytes gave {}", wanted - done, count);
      done += count;
    }
    const Bytes bytes(from.begin() + at(call.offset), from.begin() + at(call.offset + wanted));
    grow(to, call.target + wanted);
    std::copy(bytes.begin(), bytes.end(), to.begin() + at(call.target));
    return std::string();
  }
  Result<std::string> compare(unsigned file, std::uint64_t offset, std::uint64_t size) {
    const Bytes& model = models_.at(file);
    NACRE_ASSIGN(const std::uint64_t size_now, files_->size(file));
    if (size_now != model.size())
      return fmt::format("the size is {} and must be {}", size_now, model.size());
    Bytes out(size, Byte{0xEE});
    NACRE_ASSIGN(const std::size_t count, files_->read(file, offset, out));
    const std::uint64_t expected =
        offset < model.size() ? std::min<std::uint64_t>(size, model.size() - offset) : 0;
    if (count != expected) return fmt::format("read {} bytes of {}", count, expected);
    if (std::memcmp(out.data(), model.data() + offset, count) == 0) return std::string();
    const auto end = out.begin() + at(count);
    const auto differs = std::mismatch(out.begin(), end, model.begin() + at(offset));
    return fmt::format("byte {} of file {} is {} and must be {}", differs.second - model.begin(),
                       file, *differs.first, *differs.second);
  }
  Result<std::string> compare_all() {
    for (unsigned file = 0; file < tested_file_count; ++file) {
      NACRE_ASSIGN(std::string wrong, compare(file, 0, models_.at(file).size()));
      if (!wrong.empty()) return wrong;
    }
    return std::string();
  }

  const bool is_tended_;
  const std::unique_ptr<TestedFiles> files_;
  std::unique_ptr<Tending> tending_;
  std::array<Bytes, tested_file_count> models_;
};

class Drawing {
 public:
  Drawing(const FileCallsProfile& profile, std::uint32_t seed) : profile_(profile), random_(seed) {}

  Call next() {
    if (run_.empty() && below(profile_.state_size_bytes > 0 ? 30 : 600) == 0) begin_run();
    if (!run_.empty()) {
      const Call call = run_.front();
      run_.pop_front();
      return call;
    }
    Call call = draw();
    // Now and then the call goes to the other file.
    if (call.kind != CallKind::copy && below(8) == 0) call.file = 1;
    return call;
  }

 private:
  Call draw() {
    const std::uint64_t chance = below(1000);
    if (chance < 380) return range(CallKind::write, profile_.write_size_max);
    if (chance < 560) return range(CallKind::read, profile_.write_size_max);
    if (chance < 600) return range(CallKind::punch, profile_.write_size_max);
    if (chance < 630) return range(CallKind::zero, profile_.write_size_max);
    if (chance < 650) return range(CallKind::zero_keep_size, profile_.write_size_max);
    if (chance < 670) return range(CallKind::allocate, profile_.write_size_max);
    if (chance < 680) return range(CallKind::allocate_keep_size, profile_.write_size_max);
    if (chance < 740) return Call{.kind = CallKind::resize, .size = below(profile_.file_size_max)};
    if (chance < 790) return copy();
    if (chance < 880) return Call{.kind = CallKind::sync};
    if (chance < 900) return Call{.kind = CallKind::commit};
    if (chance < 930) return Call{.kind = CallKind::flush};
    if (chance < 950) return Call{.kind = CallKind::tidy};
    if (chance < 960) return Call{.kind = CallKind::compact};
    if (chance < 997) return Call{.kind = CallKind::read_all};
    if (chance < 999) return Call{.kind = CallKind::evict};
    return Call{.kind = CallKind::remount};
  }

  // A file like the state of a program: rewritten in place some dozens of times, each time synced
  // and read back. In the end it is merged and read again.
  void begin_run() {
    const unsigned file = below(8) == 0 ? 1 : 0;
    const std::uint64_t size =
        profile_.state_size_bytes > 0 ? profile_.state_size_bytes : 1 + below(5000);
    const Call read{.kind = CallKind::read, .file = file, .size = size};
    if (below(4) > 0) run_.push_back(Call{.kind = CallKind::resize, .file = file});
    if (below(2) == 0) run_.push_back(Call{.kind = CallKind::commit});
    for (std::uint64_t count = 60 + below(12); count > 0; --count) {
      run_.push_back(Call{.kind = CallKind::write,
                          .file = file,
                          .size = size,
                          .fill = static_cast<std::uint32_t>(random_())});
      const CallKind durable = below(20) == 0 ? CallKind::flush : CallKind::sync;
      run_.push_back(Call{.kind = durable, .file = file});
      run_.push_back(read);
    }
    constexpr std::array ends = {CallKind::tidy, CallKind::tidy, CallKind::compact,
                                 CallKind::commit};
    run_.push_back(Call{.kind = ends.at(below(ends.size()))});
    run_.push_back(read);
  }

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
    if (below(8) == 0) call.offset -= call.offset % profile_.options.chunk_size_bytes;
    call.size = std::min(call.size, profile_.file_size_max - call.offset);
    return call;
  }
  Call copy() {
    Call call = range(CallKind::copy, profile_.write_size_max);
    call.target = below(profile_.file_size_max);
    if (below(3) == 0) call.target -= call.target % 4096;
    call.size = std::min(call.size, profile_.file_size_max - call.target);
    // There and back; or within a file, where the ranges may not meet.
    const std::uint64_t way = below(4);
    call.file = way % 2;
    call.to_file = way == 0 || way == 3 ? call.file : 1 - call.file;
    if (call.file != call.to_file) return call;
    const std::uint64_t apart =
        call.offset < call.target ? call.target - call.offset : call.offset - call.target;
    call.size = std::min(call.size, apart);
    return call.size > 0 ? call : Call{.kind = CallKind::read_all};
  }
  const FileCallsProfile& profile_;
  std::mt19937 random_;
  std::deque<Call> run_;  // what comes next
};

}  // namespace

std::string to_string(const Call& call) {
  return fmt::format("{} file {} offset {} size {} to file {} target {} fill {}",
                     kind_names.at(static_cast<std::size_t>(call.kind)), call.file, call.offset,
                     call.size, call.to_file, call.target, call.fill);
}

std::vector<Call> draw_calls(const FileCallsProfile& profile, std::uint32_t seed,
                             std::size_t count) {
  Drawing drawing(profile, seed);
  std::vector<Call> calls(count);
  std::generate(calls.begin(), calls.end(), [&] { return drawing.next(); });
  return calls;
}

std::optional<Difference> run_calls(const FileCallsProfile& profile, std::span<const Call> calls) {
  FilesUnderTest files(profile);
  if (const auto opened = files.open(); !opened) return Difference{0, opened.error().message};
  for (std::size_t i = 0; i <= calls.size(); ++i) {
    const auto wrong = files.carry_out(i < calls.size() ? calls[i] : Call{});
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
        // Calls after the difference are left out.
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

// SPDX-License-Identifier: Apache-2.0
// An open file of a MemoryBacking.
#include <fmt/format.h>

#include <algorithm>

#include "tests/support/memory_backing_state.h"

namespace nacre::tests {

using metadata::BackingFile;

namespace {

class OpenMemoryFile final : public BackingFile {
 public:
  OpenMemoryFile(std::shared_ptr<MemoryBacking::State> state, std::shared_ptr<MemoryFile> file,
                 std::string path, bool writable)
      : state_(std::move(state)),
        file_(std::move(file)),
        path_(std::move(path)),
        writable_(writable) {
    ++state_->open_file_count;
  }
  ~OpenMemoryFile() override { --state_->open_file_count; }

  Result<std::size_t> read(std::uint64_t offset, MutableByteView out) override {
    state_->announce(operation_read, path_);
    const std::lock_guard lock(state_->mutex);
    const auto admission = state_->admit(operation_read, path_);
    if (admission.error) return tl::unexpected(*admission.error);
    if (admission.is_partial) out = out.first(out.size() / 2);
    if (!file_->is_readable(offset, out.size())) {
      return fail(ErrorCode::io, fmt::format("(memory)/{}: a bad block", path_));
    }
    const std::size_t got = file_->read(offset, out);
    if (admission.is_flipped) flip_last(out.first(got));
    return got;
  }

  Result<void> write(std::uint64_t offset, std::span<const ByteView> pieces) override {
    Bytes bytes;
    for (const ByteView piece : pieces)
      bytes.insert(bytes.end(), piece.begin(), piece.end());
    state_->announce(change_write, path_);
    const std::lock_guard lock(state_->mutex);
    NACRE_TRY(check_writable());
    const auto admission = state_->admit(change_write, path_);
    if (admission.is_partial) bytes.resize(bytes.size() / 2);
    if (admission.takes_effect) {
      NACRE_TRY(state_->check_space(*file_, offset + bytes.size()));
      file_->write(offset, bytes);
    }
    return outcome(admission);
  }

  Result<void> sync() override {
    state_->announce(change_sync, path_);
    const std::lock_guard lock(state_->mutex);
    const auto admission = state_->admit(change_sync, path_);
    if (admission.error) {
      file_->fail_sync();
    } else {
      file_->sync();
    }
    return outcome(admission);
  }

  void start_writeback(std::uint64_t, std::uint64_t) override {}
  void advise(std::uint64_t, std::uint64_t, bool) override {}

  Result<std::uint64_t> size() override {
    const std::lock_guard lock(state_->mutex);
    if (auto admission = state_->admit(operation_look, path_); admission.error) {
      return tl::unexpected(*admission.error);
    }
    return file_->size();
  }

  Result<void> truncate(std::uint64_t size) override {
    state_->announce(change_truncate, path_);
    const std::lock_guard lock(state_->mutex);
    NACRE_TRY(check_writable());
    const auto admission = state_->admit(change_truncate, path_);
    if (admission.takes_effect) {
      NACRE_TRY(state_->check_space(*file_, size));
      file_->truncate(size);
    }
    return outcome(admission);
  }

  Result<void> allocate(std::uint64_t size) override {
    state_->announce(change_write, path_);
    const std::lock_guard lock(state_->mutex);
    NACRE_TRY(check_writable());
    const auto admission = state_->admit(change_write, path_);
    if (admission.takes_effect && size > file_->size()) {
      NACRE_TRY(state_->check_space(*file_, size));
      file_->truncate(size);
    }
    return outcome(admission);
  }

  bool is_nameless() override {
    const std::lock_guard lock(state_->mutex);
    return !state_->root->names(*file_);
  }

 private:
  static void flip_last(MutableByteView bytes) {
    const auto last = std::find_if(bytes.rbegin(), bytes.rend(), [](Byte b) { return b != 0; });
    if (last != bytes.rend()) *last ^= Byte{0x10};
  }
  Result<void> check_writable() const {
    if (writable_) return {};
    return fail(ErrorCode::invalid_argument,
                fmt::format("(memory)/{}: opened for reading only", path_));
  }
  static Result<void> outcome(const Admission& admission) {
    if (admission.error) return tl::unexpected(*admission.error);
    return {};
  }

  const std::shared_ptr<MemoryBacking::State> state_;
  const std::shared_ptr<MemoryFile> file_;
  const std::string path_;
  const bool writable_;
};

}  // namespace

std::unique_ptr<BackingFile> open_memory_file(std::shared_ptr<MemoryBacking::State> state,
                                              std::shared_ptr<MemoryFile> file, std::string path,
                                              bool writable) {
  return std::make_unique<OpenMemoryFile>(std::move(state), std::move(file), std::move(path),
                                          writable);
}

}  // namespace nacre::tests

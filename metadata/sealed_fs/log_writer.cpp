// SPDX-License-Identifier: Apache-2.0
// A write-ahead log that keeps its errors from RocksDB.
#include "metadata/sealed_fs/log_writer.h"

#include "metadata/sealed_fs/reseal_files.h"

namespace nacre::metadata {

void FailStop::stop(const Error& error) {
  LockGuard lock(mutex_);
  if (!error_) error_ = error;
  stopped_.store(true, std::memory_order_release);
}

Result<void> FailStop::check() const {
  if (!stopped_.load(std::memory_order_acquire)) return {};
  LockGuard lock(mutex_);
  return tl::unexpected<Error>(*error_);
}

LogWriter::LogWriter(std::shared_ptr<BackingDirectory> directory, FileSeal seal,
                     std::shared_ptr<LogWriter> previous, const LogWitness& witness,
                     std::shared_ptr<FailStop> fail_stop)
    : fail_stop_(std::move(fail_stop)),
      frames_(std::move(directory), std::move(seal)),
      previous_(std::move(previous)),
      witness_(witness) {}

Result<void> LogWriter::note(Result<void> result) {
  if (!result && result.error().code != ErrorCode::no_space) fail_stop_->stop(result.error());
  return result;
}

Result<void> LogWriter::settle_previous() {
  if (previous_ == nullptr) return {};
  NACRE_TRY(previous_->settle(true));
  // Nothing more is appended to it.
  witness_.previous_frames = previous_->synced_frames();
  witness_.previous_salt = previous_->name().salt;
  witness_.previous_tag = previous_->synced_tag();
  previous_ = nullptr;
  return {};
}

Result<void> LogWriter::ensure_exists_locked() {
  NACRE_TRY(fail_stop_->check());
  NACRE_TRY(settle_previous());
  if (frames_.is_open()) return {};
  if (!has_witness_) frames_.append_witness(witness_);
  has_witness_ = true;
  return note(frames_.open());
}

Result<void> LogWriter::ensure_exists() {
  LockGuard lock(mutex_);
  return ensure_exists_locked();
}

Result<void> LogWriter::append(ByteView bytes) {
  LockGuard lock(mutex_);
  static_cast<void>(ensure_exists_locked());
  static_cast<void>(note(frames_.append(bytes)));
  return {};
}

Result<void> LogWriter::flush() {
  LockGuard lock(mutex_);
  if (ensure_exists_locked()) static_cast<void>(note(frames_.flush()));
  return {};
}

Result<void> LogWriter::sync() {
  LockGuard lock(mutex_);
  if (ensure_exists_locked()) static_cast<void>(note(frames_.sync()));
  return {};
}

Result<void> LogWriter::close() {
  LockGuard lock(mutex_);
  if (ensure_exists_locked()) static_cast<void>(note(frames_.close()));
  return {};
}

Result<void> LogWriter::settle(bool sync) {
  LockGuard lock(mutex_);
  NACRE_TRY(ensure_exists_locked());
  if (sync ? frames_.is_synced() : frames_.is_written()) return {};
  return note(sync ? frames_.sync() : frames_.flush());
}

Result<void> LogWriter::write_witness(std::uint64_t done_log,
                                      const ManifestState::Durable& manifest) {
  LockGuard lock(mutex_);
  NACRE_TRY(ensure_exists_locked());
  witness_.done_log = done_log;
  manifest.write_to(witness_);
  frames_.append_witness(witness_);
  return note(frames_.sync());
}

std::uint64_t LogWriter::stored_bytes() const {
  LockGuard lock(mutex_);
  return frames_.stored_bytes();
}

std::uint64_t LogWriter::synced_frames() const {
  LockGuard lock(mutex_);
  return frames_.synced_frames();
}

std::string LogWriter::path() const {
  const LockGuard lock(mutex_);
  return frames_.path();
}

ManifestLink LogWriter::name() const {
  LockGuard lock(mutex_);
  return {.log = parse_file_name(frames_.path()).number, .salt = frames_.header().salt};
}

Result<FrameWriter::Replacement> LogWriter::make_resealed(BackingDirectory& directory,
                                                          const KeyTree& keys, FileSeal to,
                                                          const LogWitness& witness) {
  LockGuard lock(mutex_);
  NACRE_TRY(ensure_exists_locked());
  NACRE_TRY(note(frames_.sync()));
  return make_resealed_frames(directory, frames_.path(), keys, std::move(to),
                              {.witness = witness, .expected = frames_.synced_end()});
}

void LogWriter::replace(FrameWriter::Replacement replacement, const LogWitness& witness) {
  LockGuard lock(mutex_);
  frames_.continue_in(std::move(replacement));
  witness_ = witness;
}

FrameTag LogWriter::synced_tag() const {
  LockGuard lock(mutex_);
  return frames_.synced_tag();
}

LogWitness LogWriter::witness() const {
  LockGuard lock(mutex_);
  return witness_;
}

}  // namespace nacre::metadata

// SPDX-License-Identifier: Apache-2.0
// The writing half of frame_file.h. A log's file grows by pieces of zeros, so that most syncs have
// no new size to record: a new size would cost the backing file system one more journal commit.
#include <algorithm>

#include "gpu_engine/base/check.h"
#include "gpu_engine/record/record.h"
#include "metadata/sealed_fs/frame_file.h"

namespace nacre::metadata {
namespace {

constexpr std::uint64_t growth_bytes_min = 256u << 10;
constexpr std::uint64_t growth_bytes_max = 1u << 20;
constexpr std::size_t output_size_bytes = 1u << 20;  // of one write
constexpr std::size_t zero_piece_bytes = 64u << 10;
constexpr std::array<Byte, zero_piece_bytes> zeros = {};

}  // namespace

std::size_t padded_frame_size(std::size_t content_size) {
  return engine::padded_size(engine::Padding::padme, padded_head_bytes + content_size);
}

FrameTag seal_frame(const FileSeal& seal, FrameHeader header, const FrameContent& content,
                    Bytes& out) {
  const bool is_padded = seal.header().is_padded;
  const std::size_t size = content.bytes.size();
  const std::size_t sealed_size = is_padded ? content.sealed_size : size;
  NACRE_CHECK(size <= frame_plain_bytes_max && sealed_size <= frame_padded_bytes_max,
              "a frame of {} bytes, {} with padding", size, sealed_size);
  ByteView plain = content.bytes;
  Bytes padded;
  if (is_padded) {
    NACRE_CHECK(sealed_size >= padded_head_bytes + size, "{} bytes are to be sealed in {}", size,
                sealed_size);
    padded.resize(sealed_size);
    store_le(&padded[0], static_cast<std::uint32_t>(size));
    store_le(&padded[4], content.position);
    std::copy(plain.begin(), plain.end(), padded.begin() + padded_head_bytes);
    plain = padded;
  }
  header.plain_size = static_cast<std::uint32_t>(sealed_size);
  const std::size_t begin = out.size();
  out.resize(begin + frame_overhead_bytes + sealed_size);
  const MutableByteView frame = MutableByteView(out).subspan(begin);
  encode_frame_header(header, frame);
  const MutableByteView tag = frame.last(frame_tag_size_bytes);
  seal.seal(header.sequence, 0, frame.first(frame_authenticated_bytes), plain,
            frame.subspan(frame_header_size_bytes, sealed_size), tag);
  store_le(&frame[frame_authenticated_bytes], frame_crc(seal.header().salt, frame));
  FrameTag copy;
  std::copy(tag.begin(), tag.end(), copy.begin());
  return copy;
}

FrameWriter::FrameWriter(std::shared_ptr<BackingDirectory> directory, FileSeal seal)
    : directory_(std::move(directory)), seal_(std::move(seal)), end_(file_header_size_bytes) {}

// A log must be there after power loss before its first frame can be confirmed. Otherwise a log
// that was never made and a log that was lost would look alike. Its header is durable before a
// frame is written. Otherwise a torn header and a damaged one would look alike.
Result<void> FrameWriter::open() {
  const std::string& path = seal_.path();
  NACRE_ASSIGN(file_, directory_->open(path, OpenMode::create_or_empty));
  auto made = [&]() -> Result<void> {
    const auto header = encode(seal_.header());
    NACRE_TRY(file_->write(0, ByteView(header)));
    allocated_ = file_header_size_bytes;
    if (!is_log()) return {};
    NACRE_TRY(extend(allocated_ + output_.size() + 1));
    NACRE_TRY(file_->sync());
    NACRE_TRY(directory_->sync_directory(path.substr(0, path.rfind('/'))));
    return sync();
  }();
  if (!made) file_ = nullptr;  // the next call makes the file anew
  return made;
}

Result<void> FrameWriter::append(ByteView bytes) {
  while (!bytes.empty()) {
    const std::size_t size = std::min(bytes.size(), content_bytes_max() - pending_.size());
    pending_.insert(pending_.end(), bytes.begin(),
                    bytes.begin() + static_cast<std::ptrdiff_t>(size));
    bytes = bytes.subspan(size);
    if (pending_.size() == content_bytes_max()) seal_full();
  }
  return output_.size() >= output_size_bytes ? write_out() : Result<void>{};
}

void FrameWriter::append_witness(const LogWitness& witness) {
  if (!pending_.empty() || run_bytes_ > 0) seal_pending(0);
  const Bytes content = encode(witness, seal_.header().format);
  add_frame(frame_flag_witness, content, padded_frame_size(content.size()));
}

void FrameWriter::append_link(const ManifestLink& link) {
  const auto content = encode(link);
  add_frame(frame_flag_witness, content, padded_frame_size(content.size()));
}

// A full padded frame needs no padding: its size is a Padmé length.
std::size_t FrameWriter::content_bytes_max() const {
  return frame_plain_bytes_max - (is_padded() ? padded_head_bytes : 0);
}

void FrameWriter::seal_full() {
  add_frame(0, pending_, frame_plain_bytes_max);
  run_bytes_ += frame_plain_bytes_max;
  pending_.clear();
}

// The frames that are written at once have a Padmé length together. An attacker who sees the file
// grow learns only that length.
void FrameWriter::seal_pending(std::uint32_t flags) {
  std::size_t left = pending_.size();
  if (is_padded()) {
    const std::uint64_t run = run_bytes_ + padded_head_bytes + pending_.size();
    left = engine::padded_size(engine::Padding::padme, run) - run_bytes_;
    for (; left > frame_plain_bytes_max; left -= frame_plain_bytes_max) {
      add_frame(0, pending_, frame_plain_bytes_max);
      pending_.clear();
    }
  }
  add_frame(flags, pending_, left);
  pending_.clear();
  run_bytes_ = 0;
}

void FrameWriter::add_frame(std::uint32_t flags, ByteView content, std::size_t sealed_size) {
  last_tag_ = seal_frame(
      seal_, {.sequence = next_sequence_, .synced_up_to = synced_up_to_, .flags = flags},
      {.bytes = content, .position = content_bytes_, .sealed_size = sealed_size}, output_);
  if ((flags & frame_flag_witness) == 0) content_bytes_ += content.size();
  next_sequence_++;
  is_complete_ = (flags & frame_flag_complete) != 0;
}

Result<void> FrameWriter::write_out() {
  if (output_.empty() || file_ == nullptr) return {};
  if (is_log() && !is_closed_) NACRE_TRY(extend(end_ + output_.size()));
  NACRE_TRY(file_->write(end_, ByteView(output_)));
  end_ += output_.size();
  allocated_ = std::max(allocated_, end_);
  output_.clear();
  return {};
}

// Grows a log to hold end bytes. It grows by as much as it has already, within bounds.
Result<void> FrameWriter::extend(std::uint64_t end) {
  if (end <= allocated_) return {};
  const std::uint64_t growth = std::clamp(allocated_, growth_bytes_min, growth_bytes_max);
  const std::uint64_t target = round_up(std::max(end, allocated_ + growth), zero_piece_bytes);
  std::array<ByteView, growth_bytes_max / zero_piece_bytes> pieces;
  while (allocated_ < target) {
    std::size_t count = 0;
    std::uint64_t size = 0;
    for (; count < pieces.size() && allocated_ + size < target; count++) {
      const std::uint64_t left = target - allocated_ - size;
      pieces[count] = ByteView(zeros).first(std::min<std::uint64_t>(zeros.size(), left));
      size += pieces[count].size();
    }
    NACRE_TRY(file_->write(allocated_, std::span<const ByteView>(pieces).first(count)));
    allocated_ += size;
  }
  return {};
}

void FrameWriter::continue_in(Replacement replacement) {
  // Frames that were still pending would be sealed under the old key, but written to places of the
  // new file.
  NACRE_CHECK(is_synced(), "a file is replaced below {} frames of which {} are synced",
              next_sequence_, synced_up_to_);
  seal_ = std::move(replacement.seal);
  file_ = std::move(replacement.file);
  allocated_ = end_ = replacement.stored_bytes;
  next_sequence_ = synced_up_to_ = replacement.frame_count;
  content_bytes_ = replacement.content_bytes;
  run_bytes_ = 0;
  last_tag_ = synced_tag_ = replacement.last_tag;
}

Result<void> FrameWriter::flush() {
  if (is_small_file()) return {};
  if (!pending_.empty() || run_bytes_ > 0) seal_pending(0);
  return write_out();
}

Result<void> FrameWriter::sync() {
  if (sync_error_) return tl::unexpected<Error>(*sync_error_);
  if (is_small_file() && (!pending_.empty() || !is_complete_)) seal_pending(frame_flag_complete);
  NACRE_TRY(flush());
  NACRE_TRY(write_out());
  if (file_ == nullptr) return {};  // nothing was ever appended
  if (auto synced = file_->sync(); !synced) {
    // The error is not no_space even if that is the reason: waiting for space would not bring the
    // frames back.
    sync_error_ = Error{ErrorCode::io, synced.error().message};
    return tl::unexpected<Error>(*sync_error_);
  }
  synced_up_to_ = next_sequence_;
  synced_tag_ = last_tag_;
  return {};
}

Result<void> FrameWriter::close() {
  if (is_small_file() && (!pending_.empty() || !is_complete_)) seal_pending(frame_flag_complete);
  NACRE_TRY(flush());
  NACRE_TRY(write_out());
  is_closed_ = true;
  if (file_ == nullptr || allocated_ <= end_) return {};
  NACRE_TRY(file_->truncate(end_));
  allocated_ = end_;
  return {};
}

}  // namespace nacre::metadata

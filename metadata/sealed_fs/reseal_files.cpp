// SPDX-License-Identifier: Apache-2.0
#include "metadata/sealed_fs/reseal_files.h"

#include <fmt/format.h>

#include <algorithm>

namespace nacre::metadata {

// Opening the database removes files with this suffix.
std::string resealed_path(std::string_view path) {
  const auto name_at = path.rfind('/') + 1;
  return fmt::format("{}rekey-{}.dbtmp", path.substr(0, name_at), path.substr(name_at));
}

namespace {

struct Resealed {
  Bytes bytes;  // of the whole file
  std::uint64_t frame_count = 0;
  std::uint64_t content_bytes = 0;
  FrameTag last_tag = {};
};

class Resealer {
 public:
  Resealer(FrameBytes& stored, const FileSeal& from, const FileSeal& to,
           const ResealChanges& changes)
      : stored_(stored), from_(from), to_(to), changes_(changes) {}

  Result<Resealed> run() {
    Bytes plain;
    // Finds out whether the file is whole, and where it ends.
    NACRE_ASSIGN(const FrameWalk walk,
                 walk_frames(from_.path(), from_.header(), stored_, &from_, &plain));
    const FramesEnd end{from_.header().salt, walk.frame_count, walk.last_tag};
    if ((changes_.expected && *changes_.expected != end) ||
        (changes_.expected_content && *changes_.expected_content != plain)) {
      return fail_in_file(
          ErrorCode::tampered, from_.path(),
          "the file is not the one that the database has: another one was put in its place");
    }
    const auto header = encode(to_.header());
    fresh_.bytes.assign(header.begin(), header.end());
    const bool has_link =
        to_.header().file_class == FileClass::manifest && to_.header().format != EpochFormat::one;
    if (has_link) {
      const ManifestLink link = changes_.link.value_or(walk.link.value_or(ManifestLink{}));
      add({.flags = frame_flag_witness}, encode(link));
    }
    // If the manifest gets its first link, all later frames have one more frame before them than
    // they had.
    shift_ = has_link && !walk.link ? 1 : 0;
    for (std::uint64_t at = file_header_size_bytes; at < walk.end;) {
      const auto frame = parse_frame(from_.header(), stored_.frame_at(at));
      if (!frame) {
        return fail_in_file(ErrorCode::corrupt, from_.path(), "a frame changed meanwhile");
      }
      plain.clear();
      if (!open_frame(from_, *frame, plain)) {
        return fail_in_file(ErrorCode::tampered, from_.path(), "the tag of a frame is wrong");
      }
      at += frame->stored_size;
      const bool is_witness = (frame->header.flags & frame_flag_witness) != 0;
      if (!is_witness) {
        add(frame->header, plain);
      } else if (!walk.link) {
        const auto said = decode_log_witness(plain, from_.header().format);
        if (!said) {
          return fail_in_file(ErrorCode::corrupt, from_.path(), "a witness cannot be read");
        }
        add(frame->header, encode(changes_.witness.value_or(*said), to_.header().format));
      }
    }
    return std::move(fresh_);
  }

 private:
  void add(FrameHeader header, ByteView plain) {
    // Frames that were written at once have a Padmé length together, which stays.
    const std::size_t size_before = from_.header().is_padded ? header.plain_size : 0;
    header.sequence = fresh_.frame_count++;
    if (header.synced_up_to > 0) header.synced_up_to += shift_;
    fresh_.last_tag =
        seal_frame(to_, header,
                   {.bytes = plain,
                    .position = fresh_.content_bytes,
                    .sealed_size = std::max(size_before, padded_frame_size(plain.size()))},
                   fresh_.bytes);
    if ((header.flags & frame_flag_witness) == 0) fresh_.content_bytes += plain.size();
  }

  FrameBytes& stored_;
  const FileSeal& from_;
  const FileSeal& to_;
  const ResealChanges& changes_;
  std::uint64_t shift_ = 0;
  Resealed fresh_;
};

}  // namespace

Result<FrameWriter::Replacement> make_resealed_frames(BackingDirectory& directory,
                                                      const std::string& path, const KeyTree& keys,
                                                      FileSeal to, const ResealChanges& changes) {
  NACRE_ASSIGN(FrameBytes stored, FrameBytes::open(directory, path));
  NACRE_ASSIGN(const FileSeal from,
               FileSeal::open(keys, path, stored.view(0, file_header_size_bytes)));
  NACRE_ASSIGN(const Resealed fresh, Resealer(stored, from, to, changes).run());
  NACRE_ASSIGN(auto file, directory.open(resealed_path(path), OpenMode::create_or_empty));
  NACRE_TRY(file->write(0, ByteView(fresh.bytes)));
  NACRE_TRY(file->sync());
  return FrameWriter::Replacement{.seal = std::move(to),
                                  .file = std::move(file),
                                  .stored_bytes = fresh.bytes.size(),
                                  .frame_count = fresh.frame_count,
                                  .content_bytes = fresh.content_bytes,
                                  .last_tag = fresh.last_tag};
}

Result<std::optional<FrameWriter::Replacement>> reseal_frames_file(BackingDirectory& directory,
                                                                   const std::string& path,
                                                                   const KeyTree& keys,
                                                                   engine::Padding padding,
                                                                   const ResealChanges& changes) {
  NACRE_ASSIGN(const auto epoch, epoch_of_file(directory, path));
  if (epoch && *epoch == keys.current_epoch_number()) {
    return std::optional<FrameWriter::Replacement>();
  }
  NACRE_ASSIGN(FileSeal to, FileSeal::create(keys, path, padding));
  NACRE_ASSIGN(auto fresh, make_resealed_frames(directory, path, keys, std::move(to), changes));
  NACRE_TRY(directory.rename(resealed_path(path), path));
  return std::optional(std::move(fresh));
}

Result<std::optional<std::uint32_t>> epoch_of_file(BackingDirectory& directory,
                                                   const std::string& path) {
  NACRE_ASSIGN(auto file, directory.open(path, OpenMode::read));
  std::array<Byte, file_header_size_bytes> bytes{};
  NACRE_ASSIGN(const std::size_t got, file->read(0, bytes));
  const auto header = decode_file_header(ByteView(bytes).first(got));
  return header ? std::optional(header->epoch) : std::nullopt;
}

Result<std::vector<std::string>> list_files_of_other_epochs(BackingDirectory& directory,
                                                            std::string_view folder,
                                                            std::uint32_t epoch) {
  NACRE_ASSIGN(const auto names, directory.list(folder));
  std::vector<std::string> paths;
  for (const auto& name : names) {
    if (!is_database_file_name(name)) continue;
    std::string path = fmt::format("{}/{}", folder, name);
    const auto found = epoch_of_file(directory, path);
    if (!found && found.error().code == ErrorCode::not_found) continue;
    if (!found) return tl::unexpected(found.error());
    if (*found != epoch) paths.push_back(std::move(path));
  }
  return paths;
}

}  // namespace nacre::metadata

// SPDX-License-Identifier: Apache-2.0
// See reseal_files.h.
#include "metadata/sealed_fs/reseal_files.h"

#include <fmt/format.h>

#include "metadata/sealed_fs/frame_file.h"

namespace nacre::metadata {
namespace {

// RocksDB takes no name that begins so for one of its own, and opening the database removes what
// ends so.
std::string unfinished_path(std::string_view path) {
  const auto name_at = path.rfind('/') + 1;
  return fmt::format("{}rekey-{}.dbtmp", path.substr(0, name_at), path.substr(name_at));
}

// The frames of a file, opened with one seal and sealed with another.
Result<Bytes> reseal_frames(FrameBytes& stored, const FileSeal& from, const FileSeal& to) {
  // Whether it is whole, and where it ends.
  Bytes plain;
  NACRE_ASSIGN(const FrameWalk walk,
               walk_frames(from.path(), from.header(), stored, &from, &plain));
  const auto header = encode(to.header());
  Bytes fresh(header.begin(), header.end());
  fresh.resize(walk.end);
  for (std::uint64_t at = file_header_size_bytes; at < walk.end;) {
    const auto frame = parse_frame(from.header().salt, stored.frame_at(at));
    if (!frame) return fail_in_file(ErrorCode::corrupt, from.path(), "a frame changed meanwhile");
    plain.resize(frame->header.plain_size);
    if (!from.open(frame->header.sequence, 0, frame->authenticated, frame->ciphertext, frame->tag,
                   plain)) {
      return fail_in_file(ErrorCode::tampered, from.path(), "the tag of a frame is wrong");
    }
    const MutableByteView out = MutableByteView(fresh).subspan(at, frame->stored_size);
    encode_frame_header(frame->header, out);
    to.seal(frame->header.sequence, 0, out.first(frame_authenticated_bytes), plain,
            out.subspan(frame_header_size_bytes, plain.size()), out.last(frame_tag_size_bytes));
    store_le(&out[frame_authenticated_bytes], frame_crc(to.header().salt, out));
    at += frame->stored_size;
  }
  return fresh;
}

}  // namespace

Result<std::optional<ResealedFile>> reseal_frames_file(BackingDirectory& directory,
                                                       const std::string& path,
                                                       const KeyTree& keys) {
  NACRE_ASSIGN(FrameBytes stored, FrameBytes::open(directory, path));
  NACRE_ASSIGN(const FileSeal from,
               FileSeal::open(keys, path, stored.view(0, file_header_size_bytes)));
  if (from.header().epoch == keys.current_epoch_number()) return std::optional<ResealedFile>();
  NACRE_ASSIGN(FileSeal to, FileSeal::create(keys, path));
  NACRE_ASSIGN(const Bytes fresh, reseal_frames(stored, from, to));
  const std::string unfinished = unfinished_path(path);
  NACRE_ASSIGN(auto file, directory.open(unfinished, OpenMode::create_or_empty));
  NACRE_TRY(file->write(0, ByteView(fresh)));
  NACRE_TRY(file->sync());
  NACRE_TRY(directory.rename(unfinished, path));
  return std::optional(
      ResealedFile{.seal = std::move(to), .file = std::move(file), .stored_bytes = fresh.size()});
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
    std::string path = fmt::format("{}/{}", folder, name);
    const auto found = epoch_of_file(directory, path);
    if (!found && found.error().code == ErrorCode::not_found) continue;
    if (!found) return tl::unexpected(found.error());
    if (*found != epoch) paths.push_back(std::move(path));
  }
  return paths;
}

}  // namespace nacre::metadata

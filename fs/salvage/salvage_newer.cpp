// SPDX-License-Identifier: Apache-2.0
#include "fs/salvage/salvage_newer.h"

#include <sys/stat.h>

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "fs/check/deep_check.h"

namespace nacre::fs {

using metadata::InodeNumber;
using metadata::RecordKind;

namespace {

constexpr std::string_view folder_name = "lost+found";
constexpr std::uint32_t folder_mode = 0700;
constexpr std::uint32_t file_mode = 0600;
constexpr int name_tries_max = 10'000;

using Records = std::span<const FoundRecord* const>;

// The records at the front for which key returns the same value.
template <typename Key>
Records front_run(Records records, Key key) {
  const auto end = std::find_if(records.begin(), records.end(), [&](const FoundRecord* record) {
    return key(*record) != key(*records.front());
  });
  return {records.begin(), end};
}

// Collects which bytes of a file are known, from the front on, and the gaps between them.
class KnownBytes {
 public:
  // Calls come in the order of offsets; only bytes that an earlier call covers may come again.
  void add(std::uint64_t offset, std::uint64_t size) {
    if (offset > end_) gaps_.push_back({end_, offset - end_});
    end_ = std::max(end_, offset + size);
  }
  // The gaps up to the file's end.
  std::vector<ByteRange> take(std::uint64_t file_size) {
    add(file_size, 0);
    return std::move(gaps_);
  }

 private:
  std::uint64_t end_ = 0;
  std::vector<ByteRange> gaps_;
};

// The bytes of one chunk, and which of them are known from a record.
struct ChunkContent {
  Bytes bytes;
  std::vector<ByteRange> known;
};

class NewerFiles {
 public:
  NewerFiles(Volume& volume, std::uint32_t chunk_size_bytes, RecordOpener& opener,
             FindingList& findings)
      : volume_(volume), chunk_(chunk_size_bytes), opener_(opener), findings_(findings) {}

  Result<> make_folder() {
    NACRE_ASSIGN(folder_, make(metadata::root_inode, std::string(folder_name), S_IFDIR));
    return {};
  }

  Result<SalvagedFile> write(Records records) {
    SalvagedFile file{.inode = records.front()->inode};
    file.name = fmt::format("#{}", file.inode.value);
    NACRE_ASSIGN(const InodeNumber inode, make(folder_, file.name, S_IFREG));
    KnownBytes known;
    while (!records.empty()) {
      const Records of_chunk = front_run(records, [](const FoundRecord& r) { return r.chunk; });
      NACRE_TRY(write_chunk(inode, of_chunk, file, known));
      records = records.subspan(of_chunk.size());
    }
    NACRE_ASSIGN(const auto attributes, volume_.attributes(inode));
    file.size = attributes.size;
    file.gaps = known.take(file.size);
    volume_.forget(inode, 1);
    return file;
  }

 private:
  // If the name of a file is taken, the file gets a number behind its name. A folder that exists is
  // used as it is.
  Result<InodeNumber> make(InodeNumber parent, std::string name, std::uint32_t type) {
    const std::string wanted = name;
    for (int i = 2; i < name_tries_max; ++i) {
      const auto made = S_ISDIR(type)
                            ? volume_.make_directory(parent, name, Caller{}, folder_mode)
                            : volume_.make_node(parent, name, Caller{}, type | file_mode, 0);
      if (made) return made->inode;
      if (made.error().code != ErrorCode::exists) return tl::unexpected(made.error());
      if (S_ISDIR(type)) {
        NACRE_ASSIGN(const auto there, volume_.lookup(parent, name));
        if (S_ISDIR(there.mode)) return there.inode;
        volume_.forget(there.inode, 1);
      }
      name = fmt::format("{}.{}", wanted, i);
    }
    return fail(ErrorCode::exists, fmt::format("all names like '{}' are taken", wanted));
  }

  // Applies the last whole chunk, then the pieces that were sealed after it, in that order.
  Result<> write_chunk(InodeNumber inode, Records records, SalvagedFile& file, KnownBytes& known) {
    const auto last = std::find_if(records.rbegin(), records.rend(), [](const FoundRecord* r) {
      return r->kind == RecordKind::chunk;
    });
    const metadata::ChunkIndex index = records.front()->chunk;
    ChunkContent content;
    if (last != records.rend()) {
      const auto base = static_cast<std::size_t>(records.rend() - last) - 1;
      NACRE_TRY(put(*records[base], content));
      records = records.subspan(base + 1);
    } else {
      content = content_of(records.front()->inode, index);
    }
    for (const FoundRecord* patch : records)
      NACRE_TRY(put(*patch, content));
    ++file.chunk_count;
    if (!records.empty()) ++file.pieced_count;
    std::sort(content.known.begin(), content.known.end(),
              [](const ByteRange& a, const ByteRange& b) { return a.offset < b.offset; });
    const std::uint64_t begin = index.value * chunk_;
    for (const ByteRange& range : content.known)
      known.add(begin + range.offset, range.size);
    return volume_.write(inode, begin, content.bytes, {});
  }

  // If the record cannot be opened any more, the content stays as it is, and a finding tells.
  Result<> put(const FoundRecord& record, ChunkContent& content) {
    const auto plain = opener_.open(record);
    if (!plain) {
      if (plain.error().code == ErrorCode::out_of_memory) return tl::unexpected(plain.error());
      findings_.add({.verdict = verdict_of(plain.error().code),
                     .what = fmt::format("{}, newer than the checkpoint: {}",
                                         describe(record.name()), plain.error().message),
                     .inode = record.inode});
      return {};
    }
    const bool is_whole = record.kind == RecordKind::chunk;  // a chunk is zeros behind its bytes
    const std::size_t offset = is_whole ? 0 : record.patch_offset;
    Bytes& bytes = content.bytes;
    if (bytes.size() < offset + plain->size()) bytes.resize(offset + plain->size());
    std::copy(plain->begin(), plain->end(), bytes.begin() + static_cast<std::ptrdiff_t>(offset));
    content.known.push_back({offset, is_whole ? chunk_ : plain->size()});
    return {};
  }

  // The chunk's content in the checkpoint's file. It is empty if the file has none there, or none
  // that can be read.
  ChunkContent content_of(InodeNumber inode, metadata::ChunkIndex index) {
    const auto known = volume_.lookup_inode(inode);
    if (!known) return {};
    Bytes bytes(chunk_);
    const auto got = S_ISREG(known->mode) ? volume_.read(inode, index.value * chunk_, bytes)
                                          : Result<std::size_t>(0);
    volume_.forget(inode, 1);
    bytes.resize(got.value_or(0));
    const std::uint64_t size = bytes.size();
    return {.bytes = std::move(bytes), .known = {{0, size}}};
  }

  Volume& volume_;
  const std::uint32_t chunk_;
  RecordOpener& opener_;
  FindingList& findings_;
  InodeNumber folder_;
};

}  // namespace

std::vector<const FoundRecord*> newer_records(const FoundRecords& records,
                                              metadata::RecordVersion settled,
                                              const NewestVersions& newest) {
  std::vector<const FoundRecord*> newer;
  const auto begin =
      std::partition_point(records.all.begin(), records.all.end(),
                           [&](const FoundRecord& record) { return record.version < settled; });
  for (auto record = begin; record != records.all.end();) {
    const auto end = std::find_if(record, records.all.end(), [&](const FoundRecord& other) {
      return other.version != record->version;
    });
    const bool is_named = std::any_of(record, end, [](const FoundRecord& r) { return r.is_named; });
    const auto named = newest.find({record->inode, record->chunk});
    const bool is_older = named != newest.end() && record->version < named->second;
    if (!is_named && !is_older && is_of_file(record->kind)) newer.push_back(&*record);
    record = end;
  }
  std::sort(newer.begin(), newer.end(), [](const FoundRecord* a, const FoundRecord* b) {
    return std::tuple(a->inode, a->chunk, a->version) < std::tuple(b->inode, b->chunk, b->version);
  });
  return newer;
}

std::uint64_t plain_bytes_of(const std::vector<const FoundRecord*>& records) {
  std::uint64_t sum = 0;
  for (const FoundRecord* record : records)
    sum += record->plain_size;
  return sum;
}

Result<std::vector<SalvagedFile>> write_newer(Volume& volume, std::uint32_t chunk_size_bytes,
                                              const std::vector<const FoundRecord*>& newer,
                                              RecordOpener& opener, FindingList& findings,
                                              const ProgressFunction& progress) {
  std::vector<SalvagedFile> files;
  if (newer.empty()) return files;
  NewerFiles writer(volume, chunk_size_bytes, opener, findings);
  NACRE_TRY(writer.make_folder());
  Progress state{.stage = "lost+found", .total = plain_bytes_of(newer)};
  for (Records rest(newer); !rest.empty();) {
    const Records of_inode = front_run(rest, [](const FoundRecord& r) { return r.inode; });
    NACRE_ASSIGN(auto file, writer.write(of_inode));
    files.push_back(std::move(file));
    for (const FoundRecord* record : of_inode)
      state.done += record->plain_size;
    if (progress) progress(state);
    rest = rest.subspan(of_inode.size());
  }
  return files;
}

}  // namespace nacre::fs

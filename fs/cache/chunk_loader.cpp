// SPDX-License-Identifier: Apache-2.0
// Reads the bases and patches of several chunks together, and assembles their content.
#include "fs/cache/chunk_loader.h"

#include <algorithm>
#include <new>
#include <utility>

#include <fmt/format.h>

namespace nacre::fs {

using metadata::ChunkPatch;
using metadata::ChunkRow;

namespace {

// A row may only name bytes inside its chunk.
bool is_sound(const ChunkRow& row, std::uint32_t chunk_size_bytes) {
  if (row.base &&
      (row.base->plain_size > chunk_size_bytes || row.base->valid_size > row.base->plain_size)) {
    return false;
  }
  if (!row.lost.empty() && row.lost.back().end() > chunk_size_bytes) return false;
  return std::all_of(row.patches.begin(), row.patches.end(), [&](const ChunkPatch& patch) {
    return patch.valid_size <= patch.plain_size &&
           std::uint64_t{patch.offset} + patch.plain_size <= chunk_size_bytes;
  });
}

// Whether the patch can be read directly into its place: no other piece lies under it or over its
// end.
bool lies_alone(const ChunkRow& row, const ChunkPatch& patch, std::uint32_t content_size) {
  const std::uint32_t end = patch.offset + patch.plain_size;
  if (row.base || end > content_size) return false;
  return std::none_of(row.patches.data(), &patch, [&](const ChunkPatch& under) {
    return under.offset < end && patch.offset < under.offset + under.plain_size;
  });
}

struct Part {
  std::size_t chunk;                // index of the chunk that it belongs to
  const ChunkPatch* patch;          // null: the base
  std::unique_ptr<Byte[]> scratch;  // null: it was read into place
  std::size_t request = 0;          // index of its read request; none for inlined bytes
  std::string inlined;
};

std::vector<Result<SharedContent>> load_all(metadata::Database& database, SegmentStore& store,
                                            std::uint32_t chunk_size_bytes,
                                            std::span<const ChunkToLoad> chunks) {
  std::vector<Result<SharedContent>> results(chunks.size());
  std::vector<std::shared_ptr<ChunkContent>> contents(chunks.size());
  std::vector<Part> parts;
  std::vector<ReadRequest> requests;

  const auto ask = [&](const ChunkToLoad& chunk, const RecordLocation& location,
                       RecordVersion version, std::uint32_t offset, metadata::RecordKind kind,
                       MutableByteView out) {
    requests.push_back(
        ReadRequest{.location = location,
                    .name = RecordName{chunk.inode, chunk.index, version, offset, kind},
                    .out = out});
    return requests.size() - 1;
  };

  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const ChunkToLoad& chunk = chunks[i];
    const ChunkRow& row = *chunk.row;
    if (!is_sound(row, chunk_size_bytes)) {
      results[i] = fail(ErrorCode::corrupt,
                        fmt::format("the row of chunk {} of inode {} names bytes outside the chunk",
                                    chunk.index.value, chunk.inode.value));
      continue;
    }
    auto content = std::make_shared<ChunkContent>(&store.clean_memory());
    const std::uint32_t size = content_end(row);
    content->resize(size);
    // The end of the bytes that are read into their place in order, or that the caller does not
    // need.
    std::uint32_t filled_end = row.base ? row.base->valid_size : std::min(chunk.from, size);
    for (const ChunkPatch& patch : row.patches) {
      if (patch.offset > filled_end || !patch.location || !lies_alone(row, patch, size)) {
        break;
      }
      filled_end = std::max(filled_end, patch.offset + patch.plain_size);
    }
    std::fill(content->data() + filled_end, content->data() + size, Byte{0});
    if (row.base) {
      Part part{.chunk = i, .patch = nullptr};
      Byte* into = content->data();
      if (row.base->plain_size > size) {
        part.scratch = std::make_unique_for_overwrite<Byte[]>(row.base->plain_size);
        into = part.scratch.get();
      }
      part.request = ask(chunk, row.base->location, row.base->version, 0,
                         metadata::RecordKind::chunk, {into, row.base->plain_size});
      parts.push_back(std::move(part));
    }
    contents[i] = content;
    for (const ChunkPatch& patch : row.patches) {
      Part part{.chunk = i, .patch = &patch};
      if (patch.location) {
        Byte* into = content->data() + patch.offset;
        if (!lies_alone(row, patch, size)) {
          part.scratch = std::make_unique_for_overwrite<Byte[]>(patch.plain_size);
          into = part.scratch.get();
        }
        part.request = ask(chunk, *patch.location, patch.version, patch.offset,
                           metadata::RecordKind::patch, {into, patch.plain_size});
      } else {
        auto value = database.get(
            metadata::Table::inlined,
            metadata::inlined_key(chunk.inode, chunk.index, patch.version, patch.offset));
        if (!value) {
          results[i] = tl::unexpected(value.error());
        } else if (!*value || (*value)->size() != patch.plain_size) {
          results[i] =
              fail(*value ? ErrorCode::corrupt : ErrorCode::missing,
                   fmt::format("inlined bytes of chunk {} of inode {} are {}", chunk.index.value,
                               chunk.inode.value, *value ? "of another size" : "not there"));
        } else {
          part.inlined = std::move(**value);
        }
      }
      parts.push_back(std::move(part));
    }
  }
  if (!requests.empty()) store.read(requests);

  // Parts are in the order of their chunks, each base before its patches in their order.
  for (const Part& part : parts) {
    ChunkContent& content = *contents[part.chunk];
    Result<SharedContent>& result = results[part.chunk];
    if (!result) continue;
    const bool is_read = part.patch == nullptr || part.patch->location;
    if (is_read && !requests[part.request].result) {
      const ChunkToLoad& chunk = chunks[part.chunk];
      result = add_context(requests[part.request].result.error(),
                           fmt::format("inode {} chunk {}", chunk.inode.value, chunk.index.value));
      continue;
    }
    if (part.patch == nullptr) {
      const std::uint32_t valid = chunks[part.chunk].row->base->valid_size;
      if (part.scratch) {
        std::copy_n(part.scratch.get(), valid, content.data());
      } else {
        // The base was read into place. Bytes past its valid size do not count any more.
        const std::uint32_t plain = chunks[part.chunk].row->base->plain_size;
        std::fill(content.data() + valid, content.data() + plain, Byte{0});
      }
      continue;
    }
    Byte* const place = content.data() + part.patch->offset;
    if (is_read && !part.scratch) {  // read into place, like a base
      std::fill(place + part.patch->valid_size, place + part.patch->plain_size, Byte{0});
      continue;
    }
    const Byte* from =
        part.scratch ? part.scratch.get() : reinterpret_cast<const Byte*>(part.inlined.data());
    std::copy_n(from, part.patch->valid_size, place);
  }
  // Lost bytes become zeros, so that neither older bytes nor those stored in their place show.
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    if (!results[i]) continue;
    for (const metadata::LostRange& range : chunks[i].row->lost)
      std::fill_n(contents[i]->data() + range.offset, range.size, Byte{0});
  }
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    if (results[i]) results[i] = SharedContent(std::move(contents[i]));
  }
  return results;
}

}  // namespace

std::vector<Result<SharedContent>> load_chunks(metadata::Database& database, SegmentStore& store,
                                               std::uint32_t chunk_size_bytes,
                                               std::span<const ChunkToLoad> chunks) {
  try {
    return load_all(database, store, chunk_size_bytes, chunks);
  } catch (const std::bad_alloc&) {
    const Result<SharedContent> none =
        fail(ErrorCode::out_of_memory, fmt::format("no memory to read {} chunks", chunks.size()));
    return std::vector<Result<SharedContent>>(chunks.size(), none);
  }
}

}  // namespace nacre::fs

// SPDX-License-Identifier: Apache-2.0
// Pages and frames as the file objects that RocksDB asks for.
#include "metadata/sealed_fs/rocksdb_files.h"

#include <algorithm>
#include <numeric>

#include "metadata/sealed_fs/page_layout.h"

namespace nacre::metadata {
namespace {

using rocksdb::FSReadRequest;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

// The interface of both kinds of content for readers.
class FramesSource {
 public:
  explicit FramesSource(Bytes content) : content_(std::move(content)) {}
  Result<std::size_t> read(std::uint64_t offset, MutableByteView out) const {
    if (offset >= content_.size()) return 0;
    const std::size_t size = std::min<std::uint64_t>(out.size(), content_.size() - offset);
    std::copy_n(content_.begin() + static_cast<std::ptrdiff_t>(offset), size, out.begin());
    return size;
  }
  std::uint64_t size() const { return content_.size(); }

 private:
  Bytes content_;
};

class PagesSource {
 public:
  explicit PagesSource(std::shared_ptr<PageReader> reader) : reader_(std::move(reader)) {}
  Result<std::size_t> read(std::uint64_t offset, MutableByteView out) const {
    return reader_->read(offset, out);
  }
  std::uint64_t size() const { return reader_->size(); }

 private:
  std::shared_ptr<PageReader> reader_;
};

template <typename Source>
IOStatus read_into(const Source& source, std::uint64_t offset, std::size_t n, Slice* result,
                   char* scratch) {
  return without_exceptions([&] {
    *result = Slice();
    auto got = source.read(offset, {reinterpret_cast<Byte*>(scratch), n});
    if (!got) return to_io_status(got.error());
    *result = Slice(scratch, *got);
    return IOStatus::OK();
  });
}

template <typename Source>
class SequentialFile final : public rocksdb::FSSequentialFile {
 public:
  explicit SequentialFile(Source source) : source_(std::move(source)) {}

  IOStatus Read(std::size_t n, const IOOptions&, Slice* result, char* scratch,
                IODebugContext*) override {
    const IOStatus status = read_into(source_, offset_, n, result, scratch);
    offset_ += result->size();
    return status;
  }
  IOStatus Skip(std::uint64_t n) override {
    offset_ = std::min(source_.size(), offset_ + n);
    return IOStatus::OK();
  }
  IOStatus InvalidateCache(std::size_t, std::size_t) override { return IOStatus::OK(); }

 private:
  Source source_;
  std::uint64_t offset_ = 0;
};

template <typename Source>
class RandomAccessFile final : public rocksdb::FSRandomAccessFile {
 public:
  explicit RandomAccessFile(Source source) : source_(std::move(source)) {}

  IOStatus Read(std::uint64_t offset, std::size_t n, const IOOptions&, Slice* result, char* scratch,
                IODebugContext*) const override {
    return read_into(source_, offset, n, result, scratch);
  }

  // Requests whose pages touch or follow one another are read and opened together.
  IOStatus MultiRead(FSReadRequest* requests, std::size_t count, const IOOptions& options,
                     IODebugContext* debug) override {
    return without_exceptions([&] {
      std::vector<std::size_t> order(count);
      std::iota(order.begin(), order.end(), std::size_t{0});
      std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return requests[a].offset < requests[b].offset;
      });
      for (std::size_t begin = 0; begin < count;) {
        const std::size_t end = group_end(requests, order, begin);
        read_group(requests, std::span(order).subspan(begin, end - begin), options, debug);
        begin = end;
      }
      return IOStatus::OK();
    });
  }

  // With this RocksDB keeps a buffer of its own, so pages are opened once, in large reads.
  IOStatus Prefetch(std::uint64_t, std::size_t, const IOOptions&, IODebugContext*) override {
    return IOStatus::NotSupported("Prefetch");
  }
  IOStatus InvalidateCache(std::size_t, std::size_t) override { return IOStatus::OK(); }

 private:
  static constexpr std::uint64_t group_bytes_max = 1u << 20;

  static std::size_t group_end(const FSReadRequest* requests, std::span<const std::size_t> order,
                               std::size_t begin) {
    const std::uint64_t first = requests[order[begin]].offset;
    std::uint64_t reach = first + requests[order[begin]].len;
    std::size_t end = begin + 1;
    for (; end < order.size(); end++) {
      const FSReadRequest& next = requests[order[end]];
      if (next.offset > reach + page_plain_bytes ||
          next.offset + next.len > first + group_bytes_max)
        break;
      reach = std::max(reach, next.offset + next.len);
    }
    return end;
  }

  void read_group(FSReadRequest* requests, std::span<const std::size_t> group,
                  const IOOptions& options, IODebugContext* debug) {
    FSReadRequest& first = requests[group.front()];
    std::uint64_t end = 0;
    for (const std::size_t index : group)
      end = std::max(end, requests[index].offset + requests[index].len);
    bool done = group.size() > 1;
    if (done) {
      Bytes buffer(end - first.offset);
      const auto got = source_.read(first.offset, buffer);
      done = got.has_value();
      for (std::size_t i = 0; done && i < group.size(); i++) {
        FSReadRequest& request = requests[group[i]];
        const std::uint64_t at = request.offset - first.offset;
        const std::size_t size = at >= *got ? 0 : std::min<std::size_t>(request.len, *got - at);
        std::copy_n(buffer.begin() + static_cast<std::ptrdiff_t>(at), size, request.scratch);
        request.result = Slice(request.scratch, size);
        request.status = IOStatus::OK();
      }
    }
    if (done) return;
    // The request is read alone: it has no neighbours, or the joint read failed and this finds out
    // which request fails.
    for (const std::size_t index : group) {
      FSReadRequest& request = requests[index];
      request.status =
          Read(request.offset, request.len, options, &request.result, request.scratch, debug);
    }
  }

  Source source_;
};

// Over a PageWriter, a FrameWriter or a LogWriter.
template <typename Writer>
class WritableFile final : public rocksdb::FSWritableFile {
 public:
  WritableFile(std::shared_ptr<Writer> writer, WriteGate gate, const rocksdb::FileOptions& options)
      : FSWritableFile(options), writer_(std::move(writer)), gate_(std::move(gate)) {}

  using FSWritableFile::Append;
  IOStatus Append(const Slice& data, const IOOptions&, IODebugContext*) override {
    const IOStatus status = run([&] { return writer_->append(as_bytes(data.ToStringView())); });
    if (status.ok()) size_ += data.size();
    return status;
  }
  std::uint64_t GetFileSize(const IOOptions&, IODebugContext*) override { return size_; }
  IOStatus Flush(const IOOptions&, IODebugContext*) override {
    return run([&] { return writer_->flush(); });
  }
  IOStatus Sync(const IOOptions&, IODebugContext*) override {
    return run([&] { return writer_->sync(); });
  }
  IOStatus Close(const IOOptions&, IODebugContext*) override {
    return run([&] { return writer_->close(); });
  }
  IOStatus RangeSync(std::uint64_t, std::uint64_t, const IOOptions&, IODebugContext*) override {
    if constexpr (std::is_same_v<Writer, PageWriter>) writer_->start_writeback();
    return IOStatus::OK();
  }

 private:
  template <typename F>
  IOStatus run(F&& body) {
    return without_exceptions([&] {
      if (gate_ != nullptr) {
        if (auto allowed = gate_(); !allowed) return to_io_status(allowed);
      }
      return to_io_status(body());
    });
  }

  std::shared_ptr<Writer> writer_;
  WriteGate gate_;
  std::uint64_t size_ = 0;  // of what was appended
};

class TrimOnlyFile final : public rocksdb::FSWritableFile {
 public:
  explicit TrimOnlyFile(std::function<Result<void>()> trim) : trim_(std::move(trim)) {}

  using FSWritableFile::Append;
  IOStatus Append(const Slice&, const IOOptions&, IODebugContext*) override {
    return IOStatus::NotSupported("a closed file is never appended to");
  }
  // The value that RocksDB 7 uses for files that do not know their size. RocksDB asks only before
  // it appends.
  std::uint64_t GetFileSize(const IOOptions&, IODebugContext*) override { return 0; }
  IOStatus Truncate(std::uint64_t, const IOOptions&, IODebugContext*) override {
    return without_exceptions([&] { return to_io_status(trim_()); });
  }
  IOStatus Flush(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus Sync(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus Close(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }

 private:
  std::function<Result<void>()> trim_;
};

}  // namespace

std::unique_ptr<rocksdb::FSSequentialFile> make_sequential_file(Bytes content) {
  return std::make_unique<SequentialFile<FramesSource>>(FramesSource(std::move(content)));
}
std::unique_ptr<rocksdb::FSRandomAccessFile> make_random_access_file(Bytes content) {
  return std::make_unique<RandomAccessFile<FramesSource>>(FramesSource(std::move(content)));
}
std::unique_ptr<rocksdb::FSSequentialFile> make_sequential_file(
    std::shared_ptr<PageReader> reader) {
  return std::make_unique<SequentialFile<PagesSource>>(PagesSource(std::move(reader)));
}
std::unique_ptr<rocksdb::FSRandomAccessFile> make_random_access_file(
    std::shared_ptr<PageReader> reader) {
  return std::make_unique<RandomAccessFile<PagesSource>>(PagesSource(std::move(reader)));
}
std::unique_ptr<rocksdb::FSWritableFile> make_writable_file(std::unique_ptr<PageWriter> writer,
                                                            WriteGate gate,
                                                            const rocksdb::FileOptions& options) {
  return std::make_unique<WritableFile<PageWriter>>(std::move(writer), std::move(gate), options);
}
std::unique_ptr<rocksdb::FSWritableFile> make_writable_file(std::unique_ptr<FrameWriter> writer,
                                                            WriteGate gate,
                                                            const rocksdb::FileOptions& options) {
  return std::make_unique<WritableFile<FrameWriter>>(std::move(writer), std::move(gate), options);
}
std::unique_ptr<rocksdb::FSWritableFile> make_writable_file(std::shared_ptr<ManifestWriter> writer,
                                                            WriteGate gate,
                                                            const rocksdb::FileOptions& options) {
  return std::make_unique<WritableFile<ManifestWriter>>(std::move(writer), std::move(gate),
                                                        options);
}
std::unique_ptr<rocksdb::FSWritableFile> make_writable_file(std::shared_ptr<LogWriter> writer,
                                                            const rocksdb::FileOptions& options) {
  return std::make_unique<WritableFile<LogWriter>>(std::move(writer), nullptr, options);
}
std::unique_ptr<rocksdb::FSWritableFile> make_trim_only_file(std::function<Result<void>()> trim) {
  return std::make_unique<TrimOnlyFile>(std::move(trim));
}

}  // namespace nacre::metadata

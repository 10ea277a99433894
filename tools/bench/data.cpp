// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/data.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <system_error>

#include <fmt/format.h>

namespace nacre::tools {

namespace {

namespace files = std::filesystem;

constexpr std::uint64_t stretch_bytes = 1u << 20;

ErrorCode code_of(int error) {
  if (error == ENOENT) return ErrorCode::not_found;
  return error == EACCES ? ErrorCode::permission : ErrorCode::io;
}

struct FoundFile {
  std::string path;
  std::uint64_t size;
};

Result<std::vector<FoundFile>> find_files(const std::string& path) {
  std::error_code error;
  const auto failed = [&](const std::string& where) {
    return fail(code_of(error.value()), fmt::format("{}: {}", where, error.message()));
  };
  std::vector<FoundFile> found;
  const auto status = files::status(path, error);
  if (!files::exists(status)) {
    if (!error) error = std::make_error_code(std::errc::no_such_file_or_directory);
    return failed(path);
  }
  if (files::is_regular_file(status)) {
    const auto size = files::file_size(path, error);
    if (error) return failed(path);
    return std::vector<FoundFile>{{path, size}};
  }
  if (!files::is_directory(status)) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} is neither a file nor a folder: give one of them", path));
  }
  files::recursive_directory_iterator walk(path, error);
  for (const files::recursive_directory_iterator end; !error && walk != end;
       walk.increment(error)) {
    if (!walk->is_regular_file(error) || walk->is_symlink(error)) continue;
    const auto size = walk->file_size(error);
    if (!error) found.push_back({walk->path().string(), size});
  }
  if (error) return failed(path);
  std::sort(found.begin(), found.end(),
            [](const FoundFile& a, const FoundFile& b) { return a.path < b.path; });
  return found;
}

struct CloseCorpusFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

// Appends every step-th stretch, the first one included.
Result<> read_stretches(const FoundFile& found, std::uint64_t step, std::uint64_t& stretch_index,
                        BenchData& data) {
  const std::unique_ptr<std::FILE, CloseCorpusFile> file(std::fopen(found.path.c_str(), "rb"));
  const auto failed = [&] {
    return fail(code_of(errno), fmt::format("{}: {}", found.path, std::strerror(errno)));
  };
  if (!file) return failed();
  for (std::uint64_t at = 0; at < found.size; at += stretch_bytes) {
    if (stretch_index++ % step != 0) continue;
    if (::fseeko(file.get(), static_cast<off_t>(at), SEEK_SET) != 0) return failed();
    const std::size_t size = std::min(stretch_bytes, found.size - at);
    const std::size_t begin = data.bytes.size();
    data.bytes.resize(begin + size);
    const std::size_t count = std::fread(data.bytes.data() + begin, 1, size, file.get());
    if (std::ferror(file.get()) != 0) return failed();
    data.bytes.resize(begin + count);  // the file has become shorter
    // A stretch that does not follow its predecessor counts as another file.
    if (step > 1 && count > 0) data.file_ends.push_back(data.bytes.size());
  }
  return {};
}

}  // namespace

Result<BenchData> load_bench_data(const std::string& path, std::uint64_t size_max) {
  NACRE_ASSIGN(const std::vector<FoundFile> found, find_files(path));
  BenchData data{.bytes = {}, .file_ends = {}, .source = path};
  std::uint64_t stretch_count = 0;
  for (const FoundFile& file : found) {
    data.total_bytes += file.size;
    stretch_count += (file.size + stretch_bytes - 1) / stretch_bytes;
  }
  if (data.total_bytes == 0) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("{}: there is no byte in it to measure on", path));
  }
  const std::uint64_t kept = std::max<std::uint64_t>(size_max / stretch_bytes, 1);
  const std::uint64_t step = data.total_bytes <= size_max ? 1 : (stretch_count + kept - 1) / kept;
  std::uint64_t stretch_index = 0;
  for (const FoundFile& file : found) {
    NACRE_TRY(read_stretches(file, step, stretch_index, data));
    if (data.file_ends.empty() || data.file_ends.back() != data.bytes.size())
      data.file_ends.push_back(data.bytes.size());
  }
  if (data.bytes.empty()) {
    return fail(ErrorCode::io, fmt::format("{}: its bytes went away while they were read", path));
  }
  return data;
}

BenchData generate_bench_data(std::uint64_t size) {
  constexpr std::size_t word_count = 4096;
  constexpr std::string_view letters = "eeeetttaaaooiinnsshhrrddlucmfwygpbvk";
  std::mt19937_64 random(20080914);
  std::vector<std::string> words(word_count);
  for (std::size_t i = 0; i < word_count; ++i) {
    const std::size_t length = 1 + i % 3 + random() % (2 + i / 600);
    for (std::size_t j = 0; j < length; ++j)
      words[i] += letters[random() % letters.size()];
  }
  BenchData data;
  data.bytes.reserve(size + 64);
  std::size_t sentence = 0;
  while (data.bytes.size() < size) {
    // Uniform in the logarithm of the rank: word n comes with a probability of about 1/n.
    const double share = static_cast<double>(random() >> 11) / 9007199254740992.0;
    const auto rank =
        static_cast<std::size_t>(std::exp(share * std::log(static_cast<double>(word_count)))) - 1;
    const std::string& word = words[std::min(rank, word_count - 1)];
    data.bytes.insert(data.bytes.end(), word.begin(), word.end());
    const bool ends = ++sentence > 6 && random() % 8 == 0;
    if (ends) {
      data.bytes.push_back('.');
      sentence = 0;
    }
    data.bytes.push_back(ends && random() % 5 == 0 ? '\n' : ' ');
  }
  data.bytes.resize(size);
  data.total_bytes = size;
  data.file_ends = {size};
  return data;
}

void repeat_bench_data(BenchData& data, unsigned count) {
  const std::size_t size = data.bytes.size();
  const std::size_t file_count = data.file_ends.size();
  data.bytes.resize(size * count);
  for (unsigned i = 1; i < count; ++i) {
    std::copy_n(data.bytes.begin(), size,
                data.bytes.begin() + static_cast<std::ptrdiff_t>(i * size));
    for (std::size_t file = 0; file < file_count; ++file)
      data.file_ends.push_back(data.file_ends[file] + i * size);
  }
}

BenchData make_payload_data(const BenchData& data, std::uint64_t size) {
  BenchData payload = {.bytes = Bytes(size),
                       .file_ends = {size},
                       .source = data.source,
                       .total_bytes = data.total_bytes};
  for (std::size_t at = 0; at < size;) {
    const std::size_t taken = std::min<std::size_t>(data.bytes.size(), size - at);
    std::copy_n(data.bytes.begin(), taken, payload.bytes.begin() + static_cast<std::ptrdiff_t>(at));
    at += taken;
  }
  return payload;
}

std::vector<ByteView> cut_into_chunks(const BenchData& data, std::size_t chunk_size) {
  std::vector<ByteView> chunks;
  const ByteView bytes(data.bytes);
  std::size_t at = 0;
  for (const std::size_t end : data.file_ends) {
    for (; at < end; at += chunks.back().size())
      chunks.push_back(bytes.subspan(at, std::min(chunk_size, end - at)));
  }
  return chunks;
}

}  // namespace nacre::tools

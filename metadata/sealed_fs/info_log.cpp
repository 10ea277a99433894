// SPDX-License-Identifier: Apache-2.0
// RocksDB's own messages, sealed like everything else.
#include "metadata/sealed_fs/info_log.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <string_view>

#include "metadata/sealed_fs/reseal_files.h"

namespace nacre::metadata {
namespace {

constexpr std::uint64_t file_size_bytes_max = 1u << 20;
constexpr std::size_t line_size_bytes_max = 4096;

}  // namespace

InfoLog::InfoLog(std::shared_ptr<BackingDirectory> directory, std::shared_ptr<const KeyTree> keys,
                 std::string folder, engine::Padding padding)
    : Logger(rocksdb::InfoLogLevel::WARN_LEVEL),
      directory_(std::move(directory)),
      keys_(std::move(keys)),
      path_(std::move(folder) + "/LOG"),
      padding_(padding) {}

InfoLog::~InfoLog() = default;

bool InfoLog::begin_file() {
  writer_ = nullptr;
  const auto exists = directory_->exists(path_);
  if (!exists || (*exists && !directory_->rename(path_, path_ + ".old"))) return false;
  auto seal = FileSeal::create(*keys_, path_, padding_);
  if (!seal) return false;
  auto writer = std::make_unique<FrameWriter>(directory_, std::move(*seal));
  if (!writer->open()) return false;
  writer_ = std::move(writer);
  return true;
}

void InfoLog::Logv(const char* format, va_list arguments) {
  try {
    std::array<char, line_size_bytes_max> text;
    const int wanted = std::vsnprintf(text.data(), text.size(), format, arguments);
    if (wanted <= 0) return;
    // This message is expected: sealed_file_system.cpp takes no file of options.
    if (std::string_view(text.data()).find("persist options") != std::string_view::npos) return;
    const auto now = std::chrono::system_clock::now();
    const std::string line =
        fmt::format("{:%Y-%m-%dT%H:%M:%S}Z {}\n",
                    fmt::gmtime(std::chrono::system_clock::to_time_t(now)), text.data());
    LockGuard lock(mutex_);
    const bool is_full = writer_ != nullptr && writer_->stored_bytes() >= file_size_bytes_max;
    if ((writer_ == nullptr || is_full) && !begin_file()) return;
    if (!writer_->append(as_bytes(line)) || !writer_->flush()) writer_ = nullptr;
  } catch (const std::exception&) {
    return;  // dropped, as info_log.h says
  }
}

Result<void> InfoLog::reseal() {
  LockGuard lock(mutex_);
  writer_ = nullptr;  // the next message begins a new file
  const std::string folder = path_.substr(0, path_.rfind('/'));
  NACRE_ASSIGN(const auto names, directory_->list(folder));
  for (const std::string& name : names) {
    if (parse_file_name(name).file_class != FileClass::info_log) continue;
    // No program reads these messages, so what does not open goes.
    const std::string path = fmt::format("{}/{}", folder, name);
    const auto resealed = reseal_frames_file(*directory_, path, *keys_, padding_);
    if (!resealed && resealed.error().code != ErrorCode::not_found) {
      NACRE_TRY(directory_->remove(path));
    }
  }
  return directory_->sync_directory(folder);
}

void InfoLog::LogHeader(const char*, va_list) {}

}  // namespace nacre::metadata

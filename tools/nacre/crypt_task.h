// SPDX-License-Identifier: Apache-2.0
// One file of nacre crypt encrypt or decrypt: its descriptors, its names and its report.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fs/crypt/container_task.h"
#include "tools/nacre/crypt_output.h"

namespace nacre::tools {

inline constexpr const char* standard_stream = "-";
inline constexpr std::string_view container_suffix = ".ncr";

enum class CryptDirection : std::uint8_t { encrypt, decrypt };

// One file's work and its result.
struct CryptFile {
  std::string input;              // "-": standard input
  std::string output;             // "-": standard output
  std::uint64_t input_bytes = 0;  // as it was when the command line was read; 0 for streams

  bool is_done = false;
  std::optional<Error> error;
  std::string warning;
  std::uint64_t plain_bytes = 0, stored_bytes = 0;
};

struct CryptTaskOptions {
  CryptDirection direction = CryptDirection::encrypt;
  bool replace = false;       // an existing file with the output's name
  bool remove_input = false;  // once the output is durable
  bool make_folders = false;  // those of outputs that are missing
  Durability durability = Durability::synced;
  metadata::FileKinds input_kinds = metadata::FileKinds::all;
};

// The task of one file. file, options and queue must outlive it. is_done stays unset for a file
// that was not finished.
std::unique_ptr<fs::ContainerTask> make_crypt_task(CryptFile& file, const CryptTaskOptions& options,
                                                   OutputQueue& queue);

// Opens a file for reading, or standard input. Errors: is_directory for folders, and the system's;
// invalid_argument for files of other kinds.
Result<metadata::FileDescriptor> open_input(const std::string& path,
                                            metadata::FileKinds kinds = metadata::FileKinds::all);
// Fills out; gives fewer bytes only at the end. where: for messages.
Result<std::size_t> read_full(int descriptor, MutableByteView out, const std::string& where);
// "standard input" for "-".
std::string input_name(const std::string& path);

}  // namespace nacre::tools

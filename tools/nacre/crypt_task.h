// SPDX-License-Identifier: Apache-2.0
// One file of nacre crypt encrypt or decrypt: descriptors, names and what is told about it.
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

// What is to be done, and what became of it.
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
  bool replace = false;       // what has the output's name
  bool remove_input = false;  // once the output is durable
  bool make_folders = false;  // for outputs, where they are missing
  Durability durability = Durability::synced;
};

// The task of one file. file, options and queue outlive it; a file that never got as far as its end
// has is_done not set.
std::unique_ptr<fs::ContainerTask> make_crypt_task(CryptFile& file, const CryptTaskOptions& options,
                                                   OutputQueue& queue);

// Opens a file to be read, or standard input. is_directory for folders, and the system's errors.
Result<metadata::FileDescriptor> open_input(const std::string& path);
// Fills out, fewer bytes only at the end. where: for messages.
Result<std::size_t> read_full(int descriptor, MutableByteView out, const std::string& where);
// "standard input" for "-".
std::string input_name(const std::string& path);

}  // namespace nacre::tools

// SPDX-License-Identifier: Apache-2.0
// Which files a command line of nacre crypt means, and what their outputs are called.
#pragma once

#include <string>
#include <vector>

#include "tools/nacre/crypt_task.h"

namespace nacre::tools {

struct CryptPaths {
  std::vector<std::string> inputs;  // none: standard input
  std::string output;               // -o; empty: not given
  std::string folder;               // -C; empty: not given
  bool recursive = false;
};
// Every file with its output. FILE becomes FILE.ncr and back, next to the input or in the folder.
// A file in an input folder FOLDER keeps its place in a FOLDER there. Within folders encryption
// leaves out containers, decryption takes only those, and neither follows links. Errors:
// invalid_argument, not_found, and those of listing a folder.
Result<std::vector<CryptFile>> plan_crypt_files(const CryptPaths& paths, CryptDirection direction);

}  // namespace nacre::tools

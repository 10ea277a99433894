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
// Every file with its output. FILE becomes FILE.ncr and back, beside the input or in the folder;
// what lies in a folder FOLDER of the inputs keeps its place in a FOLDER there. Of folders
// encryption leaves out containers, decryption takes nothing else, and neither follows links.
// invalid_argument; not_found; what listing a folder fails with.
Result<std::vector<CryptFile>> plan_crypt_files(const CryptPaths& paths, CryptDirection direction);

}  // namespace nacre::tools

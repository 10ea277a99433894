// SPDX-License-Identifier: Apache-2.0
// A run of nacre crypt encrypt or decrypt over planned files, and its output.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fs/crypt/container_run.h"
#include "tools/nacre/crypt_paths.h"

namespace CLI {
class App;
}

namespace nacre::tools {

struct CryptRunOptions {
  std::string engine = "auto";
  bool replace = false;
  bool remove_input = false;
  bool no_sync = false;
  bool json = false;
  bool verbose = false;
};
void add_crypt_run_options(CLI::App& command, CryptPaths& paths, CryptRunOptions& options);
// Call it before the user is asked for a passphrase. Error: invalid_argument.
Result<> check_crypt_run(const std::vector<CryptFile>& files, CryptDirection direction,
                         const CryptRunOptions& options);

// fs::encrypt_containers() or its reverse, with keys bound.
using RunContainers =
    std::function<Result<>(engine::Engine& engine, const fs::NextContainerTask& next,
                           const fs::ContainerProgress& progress)>;
// Runs and reports. Returns the exit code. encoder: none when decrypting.
int run_crypt(std::vector<CryptFile>& files, CryptDirection direction, engine::Codec encoder,
              const CryptRunOptions& options, const RunContainers& run);

}  // namespace nacre::tools

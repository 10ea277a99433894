// SPDX-License-Identifier: Apache-2.0
// Encrypts or decrypts files within the server, as nacre crypt does, with progress for each file.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gpu_engine/codec/codec.h"
#include "gpu_engine/engine.h"
#include "tools/nacre/crypt_paths.h"
#include "tools/nacre/crypt_run.h"
#include "tools/web/access.h"
#include "tools/web/fields.h"
#include "tools/web/jobs.h"
#include "tools/web/private_folder.h"

namespace nacre::tools::web {

// The files that a request names, and where their outputs go.
struct CryptChoice {
  CryptPaths paths;
  bool is_download = false;
  std::string download_folder;            // made when the job begins, removed with it
  std::vector<std::string> shown_inputs;  // as a command names them
  bool replace = false, remove_input = false;
  engine::EngineChoice engine = engine::EngineChoice::automatic;
  std::string engine_name = "auto";
};
// The fields "inputs", "output", "recursive", "replace", "remove_input" and "engine" of API.md.
tl::expected<CryptChoice, WebError> read_crypt_choice(PrivateFolder& folder, const Fields& fields,
                                                      const nlohmann::json& body);
// The path of one input: {"path":P} or {"upload":ID}.
Result<std::string> read_input(const PrivateFolder& folder, const nlohmann::json& input,
                               bool* is_upload = nullptr);
// The options of nacre crypt for the choice, and its files.
void add_choice_to_command(const CryptChoice& choice, std::vector<std::string>& words);

// Makes keys, and returns what runs: fs::encrypt_containers() or its reverse with keys bound.
using PrepareContainers = std::function<Result<RunContainers>()>;

// The work of a job. encoder: none when decrypting.
JobTable::Work crypt_work(CryptChoice choice, CryptDirection direction, engine::Codec encoder,
                          std::vector<CryptFile> files, PrepareContainers prepare);

}  // namespace nacre::tools::web

// SPDX-License-Identifier: Apache-2.0
// What the engine of this machine can do. API.md, "The engine".
#include <array>
#include <mutex>

#include "gpu_engine/engine.h"
#include "gpu_engine/publickey/rsa.h"
#include "tools/web/engine_names.h"
#include "tools/web/routes.h"

namespace nacre::tools::web {

namespace {

using nlohmann::json;

constexpr std::array rsa_sizes = {1024, 2048, 3072, 4096, 6144, 8192};

json engine_json() {
  json codecs = json::array(), ciphers = json::array();
  for (const auto codec : choosable_codecs()) {
    codecs.push_back({{"name", std::string(engine::to_string(codec))},
                      {"on_devices", codec != engine::Codec::none && codec != engine::Codec::zstd},
                      {"is_default", codec == engine::Codec::lz77}});
  }
  for (const auto suite : all_suites()) {
    ciphers.push_back({{"name", std::string(engine::to_string(suite))},
                       {"is_legacy", engine::is_legacy(suite)},
                       {"is_default", suite == engine::CipherSuite::aes_256_gcm}});
  }
  const std::string why = why_no_device();
  return {{"codecs", codecs},
          {"ciphers", ciphers},
          {"paddings", {"none", "padme"}},
          {"level_max", engine::codec_level_max},
          {"engines",
           {{{"name", "auto"}, {"is_available", true}, {"why", ""}},
            {{"name", "cpu"}, {"is_available", true}, {"why", ""}},
            {{"name", "cuda"}, {"is_available", why.empty()}, {"why", why}}}},
          {"thread_count", std::thread::hardware_concurrency()},
          {"rsa",
           {{"bits_min", engine::rsa_message_bits_min},
            {"bits_max", engine::rsa_bits_max},
            {"bits_default", engine::rsa_bits_default},
            {"bits_use_min", engine::rsa_bits_min},
            {"sizes", rsa_sizes},
            {"count_max", key_pair_count_max}}}};
}

}  // namespace

void add_engine_routes(RouteTable& routes, ServerContext&) {
  routes.get("/api/engine", [](Call&) -> Answer { return json_response(engine_json()); });
}

}  // namespace nacre::tools::web

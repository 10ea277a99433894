// SPDX-License-Identifier: Apache-2.0
// Pairs of RSA keys. API.md, "Keys".
#include <fmt/format.h>

#include "fs/crypt/container_format.h"
#include "gpu_engine/publickey/rsa.h"
#include "tools/cli/recipient_options.h"
#include "tools/cli/terminal.h"
#include "tools/web/chosen_secret.h"
#include "tools/web/engine_names.h"
#include "tools/web/path_text.h"
#include "tools/web/routes.h"

namespace nacre::tools::web {

namespace {

using nlohmann::json;

constexpr std::size_t shown_key_count_max = 1000;

// The answer of the command, with paths as path text.
json keys_json(const json& made) {
  json keys = json::array();
  const json list = made.value("keys", json::array());
  for (const json& key : list) {
    if (keys.size() == shown_key_count_max) break;
    keys.push_back({{"private", to_path_text(key.value("private", ""))},
                    {"public", to_path_text(key.value("public", ""))},
                    {"fingerprint", key.value("fingerprint", "")}});
  }
  return {{"bits", made.value("bits", 0)},
          {"encrypted", made.value("encrypted", false)},
          {"keys", std::move(keys)},
          {"key_count", list.size()}};
}

Answer generate(ServerContext& context, const Call& call) {
  const Fields fields(call.body);
  NACRE_ASSIGN(const auto folder, fields.path("folder"));
  NACRE_ASSIGN(const auto name_text, fields.text("name"));
  NACRE_ASSIGN(const auto name, from_path_text(name_text));
  NACRE_ASSIGN(const auto bits, fields.number_or("bits", engine::rsa_bits_default,
                                                 engine::rsa_bits_min, engine::rsa_bits_max));
  NACRE_ASSIGN(const auto count, fields.number_or("count", 1, 1, key_pair_count_max));
  NACRE_ASSIGN(const auto engine, fields.text_or("engine", "auto"));
  NACRE_ASSIGN(const bool no_passphrase, fields.flag("no_passphrase"));
  if (!fs::is_file_name(name)) {
    return tl::unexpected(WebError(Error{ErrorCode::invalid_argument, "a name has no slash"}));
  }
  if (no_passphrase == fields.has("secret")) {
    return tl::unexpected(
        WebError(Error{ErrorCode::invalid_argument,
                       "give a passphrase for the private key, or say that it gets none"}));
  }
  auto passphrase = take_secret(context.access, fields, "secret");
  if (!passphrase) return tl::unexpected(passphrase.error());
  ProgramRun run{.words = {"nacre", "crypt", "keygen", (folder == "/" ? "" : folder) + "/" + name,
                           "--bits", std::to_string(bits)},
                 .secrets = {},
                 .fixed_error = {}};
  if (count != 1) run.words.insert(run.words.end(), {"--count", std::to_string(count)});
  if (engine != "auto") run.words.insert(run.words.end(), {"--engine", engine});
  if (no_passphrase) run.words.emplace_back("--no-passphrase");
  const std::string command = shell_line(run.words);
  run.words.emplace_back("--json");
  if (*passphrase) run.secrets.push_back({.option = "--passphrase-fd", .secret = *passphrase});
  const auto work = [run](Job& job) -> tl::expected<void, WebError> {
    job.set_stage("making keys", "keys", std::nullopt);
    const auto result = run_to_success(run, job);
    if (!result) return tl::unexpected(result.error());
    const auto made = json::parse(result->output, nullptr, false);
    if (made.is_object()) job.set_result(keys_json(made));
    return {};
  };
  const std::string title =
      count == 1 ? fmt::format("{}, {} bits", name, bits) : fmt::format("{} keys", count);
  return job_answer(context.jobs.start("keygen", title, command, work));
}

Answer show_public_key(const Call& call) {
  NACRE_ASSIGN(const auto path, request_path(call.head.query_value("path")));
  const auto recipient = read_recipient(path, metadata::FileKinds::regular);
  if (!recipient) {
    WebError error(recipient.error());
    error.where = path;
    return tl::unexpected(error);
  }
  return json_response({{"path", to_path_text(path)},
                        {"pem", recipient->key.to_pem()},
                        {"bits", recipient->key.bits()},
                        {"fingerprint", hex(recipient->key.fingerprint())}});
}

}  // namespace

void add_key_routes(RouteTable& routes, ServerContext& context) {
  routes.post("/api/keys/generate", [&](Call& call) { return generate(context, call); });
  routes.get("/api/keys/public", [](Call& call) { return show_public_key(call); });
}

}  // namespace nacre::tools::web

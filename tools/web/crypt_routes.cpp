// SPDX-License-Identifier: Apache-2.0
// Encrypts, decrypts and inspects files. API.md, "Files".
#include <fmt/format.h>

#include "fs/crypt/container_keys.h"
#include "fs/crypt/container_run.h"
#include "metadata/superblock.h"
#include "tools/cli/recipient_options.h"
#include "tools/cli/suite_option.h"
#include "tools/web/chosen_secret.h"
#include "tools/web/crypt_job.h"
#include "tools/web/path_text.h"
#include "tools/web/routes.h"

namespace nacre::tools::web {

namespace {

struct Packing {
  fs::ContainerPacking packing;
  engine::CipherSuite suite = engine::CipherSuite::aes_256_gcm;
};

std::string title_of(const CryptChoice& choice) {
  const auto& inputs = choice.shown_inputs;
  return inputs.size() == 1 ? last_name(inputs.front()) : fmt::format("{} files", inputs.size());
}

Result<Packing> read_packing(const Fields& fields, std::vector<std::string>& words) {
  Packing read;
  NACRE_ASSIGN(const auto codec, fields.text_or("codec", "lz77"));
  NACRE_ASSIGN(const auto cipher, fields.text_or("cipher", "aes-256-gcm"));
  NACRE_ASSIGN(const auto padding, fields.text_or("padding", "none"));
  NACRE_ASSIGN(const auto level, fields.number_or("level", 0, 0, engine::codec_level_max));
  NACRE_ASSIGN(const bool allows_legacy, fields.flag("allow_legacy_cipher"));
  NACRE_ASSIGN(read.packing.codec, engine::codec_from_name(codec));
  NACRE_ASSIGN(read.packing.padding, metadata::padding_from_name(padding));
  NACRE_ASSIGN(read.suite, engine::suite_from_name(cipher));
  NACRE_TRY(check_legacy_consent(read.suite, allows_legacy));
  read.packing.level = static_cast<int>(level);
  if (codec != "lz77") words.insert(words.end(), {"--codec", codec});
  if (level != 0) words.insert(words.end(), {"--level", std::to_string(level)});
  if (cipher != "aes-256-gcm") words.insert(words.end(), {"--cipher", cipher});
  if (engine::is_legacy(read.suite)) words.emplace_back("--allow-legacy-cipher");
  if (padding != "none") words.insert(words.end(), {"--padding", padding});
  return read;
}

Result<fs::ContainerKeys> make_keys(
    engine::CipherSuite suite, const std::vector<std::string>& recipients,
    const std::vector<std::shared_ptr<const SecretBytes>>& passphrases) {
  std::vector<metadata::NewRecipient> all;
  for (const std::string& path : recipients) {
    NACRE_ASSIGN(auto recipient, read_recipient(path, metadata::FileKinds::regular));
    recipient.label.clear();  // a keyring shows labels to everyone who can read it
    all.emplace_back(std::move(recipient));
  }
  if (!passphrases.empty()) {
    NACRE_ASSIGN(const auto kdf, parse_kdf({}));
    for (const auto& passphrase : passphrases) {
      all.emplace_back(metadata::NewPassphrase{.passphrase = passphrase->clone(), .kdf = kdf});
    }
  }
  return fs::make_container_keys(suite, all);
}

Answer start_crypt(ServerContext& context, CryptChoice choice, CryptDirection direction,
                   engine::Codec encoder, std::vector<std::string> words,
                   PrepareContainers prepare) {
  std::function<void()> clean_up;
  if (choice.is_download) {
    NACRE_ASSIGN(choice.download_folder, context.folder->make_folder());
    choice.paths.folder = choice.download_folder;
    clean_up = [folder = choice.download_folder] { PrivateFolder::remove(folder); };
  }
  auto files = plan_crypt_files(choice.paths, direction);
  if (files && files->empty()) {
    files = fail(ErrorCode::not_found, direction == CryptDirection::encrypt
                                           ? "there is no file to encrypt in this folder"
                                           : "there is no .ncr file in this folder");
  }
  if (!files) {
    if (clean_up) clean_up();
    return tl::unexpected(WebError(files.error()));
  }
  add_choice_to_command(choice, words);
  return job_answer(context.jobs.start(
      direction == CryptDirection::encrypt ? "encrypt" : "decrypt", title_of(choice),
      shell_line(words), crypt_work(choice, direction, encoder, std::move(*files), prepare),
      std::move(clean_up)));
}

Answer encrypt(ServerContext& context, const Call& call) {
  const Fields fields(call.body);
  std::vector<std::string> words = {"nacre", "crypt", "encrypt"};
  NACRE_ASSIGN(const auto recipients, fields.paths("recipients"));
  NACRE_ASSIGN(const auto ids, fields.texts("secrets"));
  for (const std::string& path : recipients)
    words.insert(words.end(), {"--recipient", path});
  NACRE_ASSIGN(const Packing packing, read_packing(fields, words));
  if (recipients.empty() && ids.empty()) {
    return tl::unexpected(
        WebError(Error{ErrorCode::invalid_argument,
                       "nothing would open the result: give a passphrase or a public key"}));
  }
  auto choice = read_crypt_choice(*context.folder, fields, call.body);
  if (!choice) return tl::unexpected(choice.error());
  std::vector<std::shared_ptr<const SecretBytes>> passphrases;
  for (const std::string& id : ids) {
    const nlohmann::json one = {{"secret", id}};
    auto secret = take_secret(context.access, Fields(one), "secret");
    if (!secret) return tl::unexpected(secret.error());
    passphrases.push_back(std::move(*secret));
  }
  const auto prepare = [=]() -> Result<RunContainers> {
    NACRE_ASSIGN(const auto keys, make_keys(packing.suite, recipients, passphrases));
    return RunContainers([keys, packing](engine::Engine& engine, const fs::NextContainerTask& next,
                                         const fs::ContainerProgress& progress) {
      return fs::encrypt_containers(engine, keys, packing.packing, next, progress);
    });
  };
  return start_crypt(context, *choice, CryptDirection::encrypt, packing.packing.codec,
                     std::move(words), prepare);
}

Answer decrypt(ServerContext& context, const Call& call) {
  const Fields fields(call.body);
  auto choice = read_crypt_choice(*context.folder, fields, call.body);
  if (!choice) return tl::unexpected(choice.error());
  auto chosen = take_chosen_secret(context.access, fields, true);
  if (!chosen) return tl::unexpected(chosen.error());
  std::vector<std::string> words = {"nacre", "crypt", "decrypt"};
  chosen->add_to_command(words);
  const auto prepare = [chosen = *chosen]() -> Result<RunContainers> {
    NACRE_ASSIGN(auto opened, open_chosen_secret(chosen));
    auto secret = std::make_shared<metadata::VolumeSecret>(std::move(opened));
    return RunContainers([secret](engine::Engine& engine, const fs::NextContainerTask& next,
                                  const fs::ContainerProgress& progress) {
      fs::ContainerUnlocker unlocker(*secret);
      return fs::decrypt_containers(
          engine, [&](ByteView text) { return unlocker.unlock(text); }, next, progress);
    });
  };
  return start_crypt(context, *choice, CryptDirection::decrypt, engine::Codec::none,
                     std::move(words), prepare);
}

// Gives the error of one container, in the output of `nacre crypt inspect --json`, the words of the
// page.
void use_page_words_in(nlohmann::json& container) {
  const auto error = container.is_object() ? container.find("error") : container.end();
  if (error == container.end() || !error->is_object()) return;
  const auto message = error->find("message");
  if (message == error->end() || !message->is_string()) return;
  *message = WebError(Error{ErrorCode::io, message->get<std::string>()}).what;
}

Answer inspect(ServerContext& context, const Call& call) {
  const Fields fields(call.body);
  nlohmann::json body = call.body;
  body["output"] = {{"kind", "folder"}, {"path", "/"}};  // nothing is written
  auto choice = read_crypt_choice(*context.folder, fields, body);
  if (!choice) return tl::unexpected(choice.error());
  auto chosen = take_chosen_secret(context.access, fields, false);
  if (!chosen) return tl::unexpected(chosen.error());
  std::vector<std::string> words = {"nacre", "crypt", "inspect"};
  chosen->add_to_command(words);
  words.insert(words.end(), choice->shown_inputs.begin(), choice->shown_inputs.end());
  ProgramRun run{
      .words = {"nacre", "crypt", "inspect", "--json"}, .secrets = {}, .fixed_error = {}};
  run.words.insert(run.words.end(), choice->paths.inputs.begin(), choice->paths.inputs.end());
  chosen->give_to(run);
  const auto work = [run](Job& job) -> tl::expected<void, WebError> {
    const auto result = run_program(run, job);
    if (!result) return tl::unexpected(WebError(result.error()));
    auto list = nlohmann::json::parse(result->output, nullptr, false);
    if (!list.is_array()) return tl::unexpected(program_error(run, *result));
    for (auto& container : list)
      use_page_words_in(container);
    job.set_result({{"containers", std::move(list)}});
    if (!result->is_fine()) return tl::unexpected(program_error(run, *result));
    return {};
  };
  return job_answer(context.jobs.start("inspect", title_of(*choice), shell_line(words), work));
}

}  // namespace

void add_crypt_routes(RouteTable& routes, ServerContext& context) {
  routes.post("/api/files/encrypt", [&](Call& call) { return encrypt(context, call); });
  routes.post("/api/files/decrypt", [&](Call& call) { return decrypt(context, call); });
  routes.post("/api/files/inspect", [&](Call& call) { return inspect(context, call); });
}

}  // namespace nacre::tools::web

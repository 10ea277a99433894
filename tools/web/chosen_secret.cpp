// SPDX-License-Identifier: Apache-2.0
#include "tools/web/chosen_secret.h"

#include "tools/cli/secret_source.h"

namespace nacre::tools::web {

namespace {

constexpr std::size_t key_file_size_bytes_max = 256u << 10;

}  // namespace

void ChosenSecret::give_to(ProgramRun& run) const {
  add_to_command(run.words);
  if (!is_given()) return;
  run.secrets.push_back({.option = "--passphrase-fd",
                         .secret = passphrase ? passphrase : std::make_shared<SecretBytes>()});
}

void ChosenSecret::add_to_command(std::vector<std::string>& words) const {
  if (identity.empty()) return;
  words.emplace_back("--identity");
  words.push_back(identity);
}

tl::expected<std::shared_ptr<const SecretBytes>, WebError> take_secret(Access& access,
                                                                       const Fields& fields,
                                                                       const char* id_field) {
  if (!fields.has(id_field)) return nullptr;
  NACRE_ASSIGN(const auto id, fields.text(id_field));
  auto secret = access.take_secret(id);
  if (!secret) {
    WebError error(secret.error());
    error.check = "secret_id";
    return tl::unexpected(error);
  }
  return std::make_shared<const SecretBytes>(std::move(*secret));
}

tl::expected<ChosenSecret, WebError> take_chosen_secret(Access& access, const Fields& fields,
                                                        bool is_needed) {
  ChosenSecret chosen;
  NACRE_ASSIGN(chosen.identity, fields.path_or_empty("identity"));
  if (is_needed && chosen.identity.empty() && !fields.has("secret")) {
    return tl::unexpected(WebError(Error{ErrorCode::invalid_argument,
                                         "a passphrase or the file of a private key is missing"}));
  }
  auto passphrase = take_secret(access, fields, "secret");
  if (!passphrase) return tl::unexpected(passphrase.error());
  chosen.passphrase = std::move(*passphrase);
  return chosen;
}

Result<metadata::VolumeSecret> open_chosen_secret(const ChosenSecret& secret) {
  if (secret.identity.empty()) return metadata::VolumeSecret(secret.passphrase->clone());
  NACRE_ASSIGN(const auto pem, read_secret_file(secret.identity, key_file_size_bytes_max,
                                                metadata::FileKinds::regular));
  const ByteView passphrase = secret.passphrase ? secret.passphrase->view() : ByteView();
  auto key = engine::RsaPrivateKey::from_pem(as_text(pem.view()), passphrase);
  if (!key) return add_context(key.error(), secret.identity);
  return metadata::VolumeSecret(std::move(*key));
}

}  // namespace nacre::tools::web

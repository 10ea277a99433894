// SPDX-License-Identifier: Apache-2.0
#include "tools/web/access.h"

#include <array>

#include "gpu_engine/cipher/aead.h"
#include "gpu_engine/kdf/kdf.h"
#include "tools/cli/terminal.h"

namespace nacre::tools::web {

namespace {

using std::chrono::seconds;

constexpr std::size_t token_bits = 256;
constexpr std::size_t proof_key_size_bytes = 32;
constexpr std::size_t page_count_max = 64;
constexpr std::size_t waiting_count_max = 256;
constexpr seconds one_time_lifetime{24 * 3600};
constexpr seconds bearer_lifetime{366L * 24 * 3600};
constexpr seconds waiting_lifetime{120};
constexpr std::string_view scheme = "Bearer ";
constexpr std::string_view secret_purpose = "nacre web secret";
constexpr engine::CipherSuite secret_suite = engine::CipherSuite::aes_256_gcm;
constexpr std::string_view proof_purpose = "nacre web proof";

}  // namespace

std::string make_token() {
  std::array<Byte, token_bits / 8> bytes{};
  engine::random_bytes(bytes);
  std::string token = hex(bytes);
  wipe(bytes);
  return token;
}

Access::Access()
    : one_time_(page_count_max, one_time_lifetime),
      bearers_(page_count_max, bearer_lifetime),
      proof_keys_(page_count_max, bearer_lifetime),
      downloads_(waiting_count_max, waiting_lifetime),
      secrets_(waiting_count_max, waiting_lifetime),
      made_secrets_(waiting_count_max, waiting_lifetime),
      last_request_(std::chrono::steady_clock::now()) {}

std::string Access::make_one_time_token() {
  const LockGuard lock(mutex_);
  return one_time_.add(true);
}

std::optional<NewSession> Access::exchange(std::string_view one_time_token) {
  const LockGuard lock(mutex_);
  if (!one_time_.take(one_time_token)) return std::nullopt;
  last_request_ = std::chrono::steady_clock::now();
  NewSession session{.bearer = {}, .id = {}, .proof_key = SecretBytes(proof_key_size_bytes)};
  engine::random_bytes(session.proof_key.mutable_view());
  session.id = proof_keys_.add(session.proof_key.clone());
  session.bearer = bearers_.add(session.id);
  return session;
}

std::optional<std::string> Access::prove(std::string_view session_id, ByteView nonce) {
  const LockGuard lock(mutex_);
  const SecretBytes* const key = proof_keys_.find(session_id);
  if (key == nullptr) return std::nullopt;
  const std::array<ByteView, 2> parts = {as_bytes(proof_purpose), nonce};
  return hex(engine::HmacSha256Key(key->view()).compute(parts));
}

Result<SecretBytes> Access::unseal(std::string_view header, ByteView sealed) {
  const std::size_t tag_size = engine::tag_size_bytes(secret_suite);
  if (!header.starts_with(scheme) || sealed.size() < engine::nonce_size_bytes + tag_size) {
    return fail(ErrorCode::invalid_argument, "this is no encrypted passphrase");
  }
  SecretBytes proof_key;
  {
    const LockGuard lock(mutex_);
    const std::string* const session = bearers_.find(header.substr(scheme.size()));
    const SecretBytes* const found = session == nullptr ? nullptr : proof_keys_.find(*session);
    if (found == nullptr) return fail(ErrorCode::invalid_argument, "the session has ended");
    proof_key = found->clone();
  }
  NACRE_ASSIGN(const auto key, engine::hkdf_sha256(proof_key.view(), {}, secret_purpose,
                                                   engine::key_size_bytes(secret_suite)));
  NACRE_ASSIGN(const auto cipher, engine::AeadKey::create(secret_suite, key.view()));
  const ByteView nonce = sealed.first(engine::nonce_size_bytes);
  const ByteView tag = sealed.last(tag_size);
  const ByteView body = sealed.subspan(nonce.size(), sealed.size() - nonce.size() - tag.size());
  SecretBytes secret(body.size());
  NACRE_TRY(cipher->open(nonce, {}, body, tag, secret.mutable_view()));
  return secret;
}

bool Access::is_bearer(std::string_view header) {
  if (!header.starts_with(scheme)) return false;
  const LockGuard lock(mutex_);
  if (bearers_.find(header.substr(scheme.size())) == nullptr) return false;
  last_request_ = std::chrono::steady_clock::now();
  return true;
}

void Access::forget_bearer(std::string_view header) {
  if (!header.starts_with(scheme)) return;
  const LockGuard lock(mutex_);
  const auto session = bearers_.take(header.substr(scheme.size()));
  if (session) proof_keys_.take(*session);
}

seconds Access::idle_time() const {
  const LockGuard lock(mutex_);
  return std::chrono::duration_cast<seconds>(std::chrono::steady_clock::now() - last_request_);
}

std::string Access::add_download(Download download) {
  const LockGuard lock(mutex_);
  return downloads_.add(std::move(download));
}

std::optional<Download> Access::take_download(std::string_view token) {
  const LockGuard lock(mutex_);
  return downloads_.take(token);
}

std::string Access::add_secret(SecretBytes secret) {
  const LockGuard lock(mutex_);
  return secrets_.add(std::move(secret));
}

Result<SecretBytes> Access::take_secret(std::string_view id) {
  const LockGuard lock(mutex_);
  auto secret = secrets_.take(id);
  if (secret) return std::move(*secret);
  return fail(ErrorCode::invalid_argument,
              "this secret was used already or is older than two minutes: type it once more");
}

std::string Access::add_made_secret(SecretBytes secret) {
  const LockGuard lock(mutex_);
  return made_secrets_.add(std::move(secret));
}

Result<SecretBytes> Access::take_made_secret(std::string_view id) {
  const LockGuard lock(mutex_);
  auto secret = made_secrets_.take(id);
  if (secret) return std::move(*secret);
  return fail(ErrorCode::invalid_argument,
              "this secret was shown already, is older than two minutes, or was not made here");
}

void Access::drop_old() {
  const LockGuard lock(mutex_);
  one_time_.drop_old();
  bearers_.drop_old();
  downloads_.drop_old();
  secrets_.drop_old();
  made_secrets_.drop_old();
}

}  // namespace nacre::tools::web

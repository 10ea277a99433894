// SPDX-License-Identifier: Apache-2.0
// The tokens of a server: one-time tokens that open a page, bearer tokens of open pages, addresses
// of downloads, and secrets that wait for the request that uses them. Tokens are 256 random bits in
// hexadecimal digits. They are compared in constant time, live in locked memory, and are never
// printed except in the address of a page. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <string_view>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/mutex.h"
#include "gpu_engine/base/result.h"

namespace nacre::tools::web {

// 64 hexadecimal digits from getrandom(2).
std::string make_token();

// Tokens of one kind, each with a value. The oldest goes when there are too many. Not thread-safe;
// Access holds its mutex.
template <typename Value>
class TokenList {
 public:
  TokenList(std::size_t count_max, std::chrono::seconds lifetime)
      : count_max_(count_max), lifetime_(lifetime) {}

  // Returns the new token, which is valid for the lifetime from now on.
  std::string add(Value value) {
    std::string token = make_token();
    drop_old();
    if (entries_.size() == count_max_) entries_.pop_front();
    entries_.push_back({SecretBytes(as_bytes(token)), Clock::now() + lifetime_, std::move(value)});
    return token;
  }
  // The token's value, which stays in the list; null if the token is unknown or too old. Compares
  // with every token, so the time does not tell which one came close.
  Value* find(std::string_view token) {
    drop_old();
    Value* found = nullptr;
    for (Entry& entry : entries_) {
      if (equal_constant_time(entry.token.view(), as_bytes(token))) found = &entry.value;
    }
    return found;
  }
  // The token's value; the token is used up.
  std::optional<Value> take(std::string_view token) {
    Value* const found = find(token);
    if (found == nullptr) return std::nullopt;
    std::optional<Value> value(std::move(*found));
    entries_.remove_if([&](const Entry& entry) { return &entry.value == found; });
    return value;
  }

  // Wipes what was not fetched in time.
  void drop_old() {
    const auto now = Clock::now();
    entries_.remove_if([&](const Entry& entry) { return entry.end < now; });
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    SecretBytes token;
    Clock::time_point end;
    Value value;
  };

  const std::size_t count_max_;
  const std::chrono::seconds lifetime_;
  std::list<Entry> entries_;
};

// What a page gets in exchange for a one-time token. The server proves itself with proof_key, so
// that the page sends the bearer token to this server alone; id names the session until then.
struct NewSession {
  std::string bearer;
  std::string id;
  SecretBytes proof_key;  // 32 random bytes
};

struct Download {
  std::string path;  // of the file
  std::string name;  // that the browser shows
};

class Access {
 public:
  Access();

  // A token for the fragment of a page's address: valid once, for a day.
  std::string make_one_time_token();
  // Exchanges it for a session, which is valid as long as the server runs. Nothing if it is unknown
  // or was used.
  std::optional<NewSession> exchange(std::string_view one_time_token);
  // The HMAC-SHA256 of a page's nonce under the proof key of its session, in hexadecimal digits.
  // Nothing if the session is unknown.
  std::optional<std::string> prove(std::string_view session_id, ByteView nonce);
  // Decrypts a secret that a page encrypted for this server: a nonce, AES-256-GCM, and the tag,
  // under a key that both derive from the proof key. header: the value of Authorization. Errors:
  // invalid_argument if it is too short or the session is unknown, tampered if the tag is wrong.
  Result<SecretBytes> unseal(std::string_view header, ByteView sealed);
  // header: the value of Authorization. A page that has its token counts as active from then on.
  bool is_bearer(std::string_view header);
  void forget_bearer(std::string_view header);
  // How long ago a request with a token came, or the server began.
  std::chrono::seconds idle_time() const;

  std::string add_download(Download download);
  std::optional<Download> take_download(std::string_view token);

  // A secret that a page typed, for the request that uses it. No request gives it out again.
  std::string add_secret(SecretBytes secret);
  // Error: invalid_argument if the ID is unknown, was used or is too old.
  Result<SecretBytes> take_secret(std::string_view id);
  // A secret that the server made, such as a recovery key, for the one request that shows it.
  std::string add_made_secret(SecretBytes secret);
  // Error: as of take_secret().
  Result<SecretBytes> take_made_secret(std::string_view id);
  // Called now and then: wipes the tokens, downloads and secrets whose time is over.
  void drop_old();

 private:
  mutable Mutex mutex_;
  TokenList<bool> one_time_ NACRE_GUARDED_BY(mutex_);
  TokenList<std::string> bearers_ NACRE_GUARDED_BY(mutex_);     // with the IDs of their sessions
  TokenList<SecretBytes> proof_keys_ NACRE_GUARDED_BY(mutex_);  // by the IDs of sessions
  TokenList<Download> downloads_ NACRE_GUARDED_BY(mutex_);
  TokenList<SecretBytes> secrets_ NACRE_GUARDED_BY(mutex_);
  TokenList<SecretBytes> made_secrets_ NACRE_GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point last_request_ NACRE_GUARDED_BY(mutex_);
};

}  // namespace nacre::tools::web

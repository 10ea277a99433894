// SPDX-License-Identifier: Apache-2.0
// Answers OpenSSL's questions for a PIN or passphrase, so that OpenSSL itself never asks on the
// terminal. Calls ask at most once, and only when OpenSSL needs a PIN. Not thread-safe; ask must
// outlive the prompt.
#pragma once

#include <openssl/ui.h>

#include <algorithm>
#include <optional>

#include "gpu_engine/publickey/rsa.h"

namespace nacre::engine {

class PinPrompt {
 public:
  explicit PinPrompt(const AskPin& ask)
      : ask_(ask), method_(UI_UTIL_wrap_read_pem_callback(give, 0)) {}
  PinPrompt(const PinPrompt&) = delete;
  PinPrompt& operator=(const PinPrompt&) = delete;
  ~PinPrompt() { UI_destroy_method(method_); }

  // For OpenSSL's functions that take a UI_METHOD and its data. Both belong to this object.
  UI_METHOD* method() const { return method_; }
  void* method_data() { return this; }
  // Whether OpenSSL needed a PIN.
  bool was_asked() const { return was_asked_; }
  // The error of ask, if it gave no PIN. OpenSSL's own error then says nothing useful.
  const std::optional<Error>& failure() const { return failure_; }

 private:
  static int give(char* out, int capacity, int /*writing*/, void* user) {
    auto& self = *static_cast<PinPrompt*>(user);
    if (!self.was_asked_) {
      self.was_asked_ = true;
      auto pin = self.ask_();
      if (pin) {
        self.pin_ = std::move(*pin);
      } else {
        self.failure_ = pin.error();
      }
    }
    const ByteView pin = self.pin_.view();
    if (pin.empty() || pin.size() > static_cast<std::size_t>(capacity)) return -1;
    std::copy(pin.begin(), pin.end(), out);
    return static_cast<int>(pin.size());
  }

  const AskPin& ask_;
  UI_METHOD* const method_;
  bool was_asked_ = false;
  SecretBytes pin_;
  std::optional<Error> failure_;
};

}  // namespace nacre::engine

// SPDX-License-Identifier: Apache-2.0
// RSA operations of one message. Secrets pass through SecretBytes on their way to the output.
#include "gpu_engine/cpu/run_rsa.h"

#include <algorithm>

namespace nacre::engine {
namespace {

MessageResult rsa_failed(ErrorCode error, const char* detail) {
  return {.ok = false, .error = error, .detail = detail};
}

const char* describe(ErrorCode error) {
  switch (error) {
    case ErrorCode::wrong_key:
      return "this RSA key does not open the message";
    case ErrorCode::invalid_argument:
      return "message is not one that this RSA key can take";
    default:
      return "the RSA operation failed";
  }
}

MessageResult write_out(ByteView bytes, MutableByteView output) {
  if (output.size() < bytes.size())
    return rsa_failed(ErrorCode::range, "output is smaller than the RSA operation's result");
  std::copy(bytes.begin(), bytes.end(), output.begin());
  return {.ok = true, .output_size = bytes.size()};
}

MessageResult write_out(const Result<Bytes>& made, MutableByteView output) {
  if (!made) return rsa_failed(made.error().code, describe(made.error().code));
  return write_out(ByteView(*made), output);
}

MessageResult write_out(const Result<SecretBytes>& made, MutableByteView output) {
  if (!made) return rsa_failed(made.error().code, describe(made.error().code));
  return write_out(made->view(), output);
}

}  // namespace

MessageResult run_rsa(const ExpandedKey& key, const Message& message, ByteView input,
                      std::string_view label, MutableByteView output) {
  if (message.rsa_padding != RsaPadding::none && message.rsa_padding != RsaPadding::oaep_sha256)
    return rsa_failed(ErrorCode::unsupported, "RSA padding is not in this build");
  const bool oaep = message.rsa_padding == RsaPadding::oaep_sha256;
  const RsaPrivateKey* const private_key = key.rsa_private();
  if (message.operation == Operation::rsa_private) {
    if (private_key == nullptr)
      return rsa_failed(ErrorCode::invalid_argument, "message's key is not a private RSA key");
    return write_out(oaep ? private_key->unwrap(input, label) : private_key->apply(input), output);
  }
  if (private_key == nullptr && key.rsa_public() == nullptr)
    return rsa_failed(ErrorCode::invalid_argument, "message's key is not an RSA key");
  const RsaPublicKey public_key =
      private_key != nullptr ? private_key->public_key() : *key.rsa_public();
  // Checked here, before the work is done.
  if (output.size() < public_key.modulus_size_bytes())
    return rsa_failed(ErrorCode::range, "output is smaller than the RSA modulus");
  return write_out(oaep ? public_key.wrap(input, label) : public_key.apply(input), output);
}

MessageResult run_rsa_generate(const Message& message, MutableByteView output) {
  if (message.rsa_bits < static_cast<std::uint32_t>(rsa_message_bits_min) ||
      message.rsa_bits > static_cast<std::uint32_t>(rsa_bits_max))
    return rsa_failed(ErrorCode::invalid_argument, "an RSA key has 1024 to 8192 bits");
  const int bits = static_cast<int>(message.rsa_bits);
  if (output.size() < rsa_private_key_size_bound(bits))
    return rsa_failed(ErrorCode::range, "output is smaller than an RSA private key's bound");
  const auto key = RsaPrivateKey::generate(bits, rsa_message_bits_min);
  if (!key) return rsa_failed(key.error().code, describe(key.error().code));
  return write_out(key->to_der(), output);
}

}  // namespace nacre::engine

// SPDX-License-Identifier: Apache-2.0
// The operations of the engine, each on one message. Faults of a message are found before anything
// is written.
#include "gpu_engine/cpu/run_message.h"

#include <algorithm>
#include <new>

#include "gpu_engine/base/limits.h"
#include "gpu_engine/checksum/crc32.h"
#include "gpu_engine/cpu/run_rsa.h"
#include "gpu_engine/seal.h"

namespace nacre::engine {
namespace {

MessageResult message_failed(ErrorCode error, const char* detail) {
  return {.ok = false, .error = error, .detail = detail};
}

template <typename Run>
MessageResult run_guarded(Run run) noexcept {
  try {
    return run();
  } catch (const std::bad_alloc&) {
    return message_failed(ErrorCode::out_of_memory, "no memory to run the message");
  } catch (...) {
    return message_failed(ErrorCode::io, "the message could not be run");
  }
}

bool lies_within(std::uint64_t offset, std::uint64_t size, std::uint64_t whole) {
  return offset <= whole && size <= whole - offset;
}

// The most input that a message of this operation may have. Beyond message_size_bytes_max, a
// ciphertext may have a tag, and a codec's stream may be longer than its plain bytes.
std::uint64_t input_size_max(const Message& message) {
  switch (message.operation) {
    case Operation::decrypt:
      return message_size_bytes_max + tag_size_bytes_max;
    case Operation::decompress:
      return std::max<std::uint64_t>(message_size_bytes_max,
                                     stream_size_bound(message.codec, message_size_bytes_max));
    default:
      return message_size_bytes_max;
  }
}

struct Buffers {
  ByteView input;
  ByteView aad;
  MutableByteView output;
};

tl::expected<Buffers, MessageResult> find_buffers(const Payload& payload, const Message& message) {
  const auto refuse = [](const char* detail, ErrorCode error = ErrorCode::invalid_argument) {
    return tl::unexpected<MessageResult>(message_failed(error, detail));
  };
  if (!lies_within(message.input_offset, message.input_size, payload.input_size))
    return refuse("message's input lies outside the payload's input");
  if (!lies_within(message.aad_offset, message.aad_size, payload.input_size))
    return refuse("message's additional data lies outside the payload's input");
  if (!lies_within(message.output_offset, message.output_capacity, payload.output_size))
    return refuse("message's output lies outside the payload's output");
  if (message.input_size > input_size_max(message) || message.aad_size > message_size_bytes_max ||
      message.output_capacity > 2 * message_size_bytes_max)
    return refuse("message is longer than 1 GiB", ErrorCode::too_big);
  return Buffers{.input = {payload.input + message.input_offset, message.input_size},
                 .aad = {payload.input + message.aad_offset, message.aad_size},
                 .output = {payload.output + message.output_offset, message.output_capacity}};
}

// A key of the payload that fits a suite's operation, or the reason why it does not.
struct SuiteKey {
  const AeadKey* key = nullptr;
  CipherSuite suite = {};
  MessageResult fault = {};
};

MessageResult key_fault(const ExpandedKeys& keys, std::uint32_t index) {
  if (index >= keys.size())
    return message_failed(ErrorCode::invalid_argument,
                          "message names a key that its payload lacks");
  if (!keys[index].object)
    return message_failed(keys[index].error, "key cannot be used with its cipher suite");
  return message_failed(ErrorCode::invalid_argument, "message's key is for another operation");
}

SuiteKey find_suite_key(const Payload& payload, const ExpandedKeys& keys, std::uint32_t index) {
  const AeadKey* const key = index < keys.size() ? keys[index].aead() : nullptr;
  if (key == nullptr) return {.fault = key_fault(keys, index)};
  return {.key = key, .suite = payload.key_table[index].use.suite};
}

MessageResult run_record(const Payload& payload, const ExpandedKeys& keys, const Message& message,
                         const Buffers& buffers) {
  const SuiteKey key = find_suite_key(payload, keys, message.key_index);
  if (key.key == nullptr) return key.fault;
  if (message.operation == Operation::seal)
    return seal_record(*key.key, key.suite, payload.volume_id, message, buffers.input,
                       buffers.output);
  if (message.operation == Operation::unseal)
    return unseal_record(*key.key, key.suite, payload.volume_id, message, buffers.input,
                         buffers.output);
  const SuiteKey new_key = find_suite_key(payload, keys, message.new_key_index);
  if (new_key.key == nullptr) return new_key.fault;
  return reseal_record(*key.key, key.suite, *new_key.key, new_key.suite, payload.volume_id, message,
                       buffers.input, buffers.output);
}

MessageResult run_compress(const Message& message, ByteView input, MutableByteView output) {
  if (!codec_is_choosable(message.codec))
    return message_failed(ErrorCode::unsupported, "codec is not in this build");
  if (message.level < 0 || message.level > codec_level_max)
    return message_failed(ErrorCode::invalid_argument, "compression level is not 0 to 9");
  const CodecChoice choice = choose_codec(message.codec, message.level, input);
  const auto size = compress_to_fit(choice.codec, choice.level, input, output);
  if (!size)
    return message_failed(ErrorCode::range, "output has no room for the compressed stream");
  return {.ok = true, .codec = choice.codec, .output_size = *size};
}

MessageResult run_decompress(const Message& message, ByteView input, MutableByteView output) {
  if (!codec_is_available(message.codec))
    return message_failed(ErrorCode::unsupported, "codec is not in this build");
  if (output.size() > message_size_bytes_max)
    return message_failed(ErrorCode::too_big, "message is longer than 1 GiB");
  if (!decompress(message.codec, input, output))
    return message_failed(ErrorCode::corrupt, "compressed stream is malformed");
  return {.ok = true, .codec = message.codec, .output_size = output.size()};
}

MessageResult run_checksum(Checksum checksum, ByteView input) {
  switch (checksum) {
    case Checksum::crc32:
      return {.ok = true, .crc32 = crc32(0, input)};
    case Checksum::crc32c:
      return {.ok = true, .crc32c = crc32c(0, input)};
  }
  return message_failed(ErrorCode::unsupported, "checksum is not in this build");
}

// nullptr when the block cipher can run.
const char* find_cipher_fault(const CipherKey& key, const Buffers& buffers) {
  if (takes_whole_blocks(key.mode()) && buffers.input.size() % block_size_bytes(key.cipher()) != 0)
    return "message is not whole blocks, as its mode requires";
  return nullptr;
}

MessageResult run_cipher(const CipherKey& key, Direction direction, const Message& message,
                         const Buffers& buffers) {
  if (const char* const fault = find_cipher_fault(key, buffers))
    return message_failed(ErrorCode::invalid_argument, fault);
  if (buffers.output.size() < buffers.input.size())
    return message_failed(ErrorCode::range, "output is smaller than the input");
  key.crypt(direction, message.iv, buffers.input, buffers.output.first(buffers.input.size()));
  return {.ok = true, .output_size = buffers.input.size()};
}

MessageResult run_suite_encrypt(const SuiteKey& key, const Message& message,
                                const Buffers& buffers) {
  const std::size_t size = buffers.input.size();
  const std::size_t tag_size = tag_size_bytes(key.suite);
  if (size % plain_unit_bytes(key.suite) != 0)
    return message_failed(ErrorCode::invalid_argument,
                          "message is not whole blocks, as its suite requires");
  if (buffers.output.size() < size + tag_size)
    return message_failed(ErrorCode::range, "output has no room for ciphertext and tag");
  key.key->seal(ByteView(message.iv).first(nonce_size_bytes), buffers.aad, buffers.input,
                buffers.output.first(size), buffers.output.subspan(size, tag_size));
  return {.ok = true, .output_size = size + tag_size};
}

MessageResult run_suite_decrypt(const SuiteKey& key, const Message& message,
                                const Buffers& buffers) {
  const std::size_t tag_size = tag_size_bytes(key.suite);
  if (buffers.input.size() < tag_size)
    return message_failed(ErrorCode::corrupt, "message is shorter than its tag");
  const std::size_t size = buffers.input.size() - tag_size;
  if (buffers.output.size() < size)
    return message_failed(ErrorCode::range, "output has no room for the plain bytes");
  if (!key.key->open(ByteView(message.iv).first(nonce_size_bytes), buffers.aad,
                     buffers.input.first(size), buffers.input.last(tag_size),
                     buffers.output.first(size)))
    return message_failed(ErrorCode::tampered, "authentication tag of the message does not match");
  return {.ok = true, .output_size = size};
}

MessageResult run_crypt(const Payload& payload, const ExpandedKeys& keys, const Message& message,
                        const Buffers& buffers) {
  const Direction direction =
      message.operation == Operation::encrypt ? Direction::encrypt : Direction::decrypt;
  const CipherKey* const cipher =
      message.key_index < keys.size() ? keys[message.key_index].cipher() : nullptr;
  if (cipher != nullptr) return run_cipher(*cipher, direction, message, buffers);
  const SuiteKey key = find_suite_key(payload, keys, message.key_index);
  if (key.key == nullptr) return key.fault;
  if (!is_valid_nonce(key.suite, ByteView(message.iv).first(nonce_size_bytes)))
    return message_failed(ErrorCode::invalid_argument, "nonce is not valid for its cipher suite");
  return direction == Direction::encrypt ? run_suite_encrypt(key, message, buffers)
                                         : run_suite_decrypt(key, message, buffers);
}

MessageResult run(const Payload& payload, const ExpandedKeys& keys, const Message& message) {
  const auto buffers = find_buffers(payload, message);
  if (!buffers) return buffers.error();
  switch (message.operation) {
    case Operation::seal:
    case Operation::unseal:
    case Operation::reseal:
      return run_record(payload, keys, message, *buffers);
    case Operation::compress:
      return run_compress(message, buffers->input, buffers->output);
    case Operation::decompress:
      return run_decompress(message, buffers->input, buffers->output);
    case Operation::checksum:
      return run_checksum(message.checksum, buffers->input);
    case Operation::encrypt:
    case Operation::decrypt:
      return run_crypt(payload, keys, message, *buffers);
    case Operation::rsa_public:
    case Operation::rsa_private:
      if (message.key_index >= keys.size() || !keys[message.key_index].object)
        return key_fault(keys, message.key_index);
      return run_rsa(keys[message.key_index], message, buffers->input, as_text(buffers->aad),
                     buffers->output);
    case Operation::rsa_generate:
      return run_rsa_generate(message, buffers->output);
  }
  return message_failed(ErrorCode::unsupported, "operation is not in this build");
}

}  // namespace

MessageResult run_message(const Payload& payload, const ExpandedKeys& keys,
                          std::size_t message_index) noexcept {
  return run_guarded([&] { return run(payload, keys, payload.messages[message_index]); });
}

std::optional<ByteView> find_checksum_input(const Payload& payload, const Message& message) {
  if (message.operation != Operation::checksum) return std::nullopt;
  const auto buffers = find_buffers(payload, message);
  if (!buffers) return std::nullopt;
  return buffers->input;
}

std::optional<CipherWork> find_cipher_work(const Payload& payload, const ExpandedKeys& keys,
                                           const Message& message) {
  if (message.operation != Operation::encrypt && message.operation != Operation::decrypt)
    return std::nullopt;
  const CipherKey* const key =
      message.key_index < keys.size() ? keys[message.key_index].cipher() : nullptr;
  const auto buffers = find_buffers(payload, message);
  if (key == nullptr || !buffers || find_cipher_fault(*key, *buffers) != nullptr ||
      buffers->output.size() < buffers->input.size())
    return std::nullopt;
  return CipherWork{.key = key,
                    .direction = message.operation == Operation::encrypt ? Direction::encrypt
                                                                         : Direction::decrypt,
                    .input = buffers->input,
                    .output = buffers->output.first(buffers->input.size())};
}

void run_serial_messages(Payload& payload, const ExpandedKeys& keys,
                         std::span<const std::uint32_t> message_indexes) noexcept {
  const MessageResult outcome = run_guarded([&]() -> MessageResult {
    std::vector<SerialStream> streams;
    streams.reserve(message_indexes.size());
    for (const std::uint32_t index : message_indexes) {
      const Message& message = payload.messages[index];
      const auto work = find_cipher_work(payload, keys, message);
      if (!work) return message_failed(ErrorCode::invalid_argument, "message is not a serial one");
      streams.push_back(
          {.key = work->key, .in = work->input, .out = work->output, .iv = message.iv});
    }
    crypt_serial_streams(streams);
    return {.ok = true};
  });
  for (const std::uint32_t index : message_indexes) {
    payload.results[index] = outcome;
    if (outcome.ok) payload.results[index].output_size = payload.messages[index].input_size;
  }
}

MessageResult run_part(const Payload& payload, const ExpandedKeys& keys,
                       const Part& part) noexcept {
  return run_guarded([&]() -> MessageResult {
    const Message& message = payload.messages[part.message_index];
    if (const auto whole = find_checksum_input(payload, message))
      return run_checksum(message.checksum, whole->subspan(part.offset, part.size));
    const auto work = find_cipher_work(payload, keys, message);
    if (!work) return message_failed(ErrorCode::invalid_argument, "message cannot be split");
    work->key->crypt(work->direction, part.iv, work->input.subspan(part.offset, part.size),
                     work->output.subspan(part.offset, part.size));
    return {.ok = true, .output_size = part.size};
  });
}

MessageResult combine_parts(std::span<const Part> parts, std::span<const MessageResult> results) {
  MessageResult whole = results[0];
  for (std::size_t i = 1; i < parts.size() && whole.ok; ++i) {
    if (!results[i].ok) return results[i];
    // Only one of the two values means something; the other stays zero.
    whole.crc32 = crc32_combine(whole.crc32, results[i].crc32, parts[i].size);
    whole.crc32c = crc32c_combine(whole.crc32c, results[i].crc32c, parts[i].size);
    whole.output_size += results[i].output_size;
  }
  return whole;
}

}  // namespace nacre::engine

// SPDX-License-Identifier: Apache-2.0
// Public and private operations of RSA on a device. The host does the padding, and judges every
// message that is not good. The device computes powers. It gives out the result of a private
// operation only if the public operation turns it back into the input. A result of a public
// operation cannot be checked that way, so OpenSSL confirms the first one of each key size on each
// device. The reason: a driver may compile the kernel for its device, and if that breaks the chains
// of carries (montgomery.cuh), every result is wrong.
#include <algorithm>
#include <atomic>
#include <memory>
#include <tuple>

#include "gpu_engine/cuda/rsa_parts.h"
#include "gpu_engine/publickey/rsa_numbers.h"
#include "gpu_engine/publickey/rsa_state.h"

namespace nacre::engine::cuda {
namespace {

constexpr std::uint32_t none = UINT32_MAX;

// The keys that a batch's messages use, read from DER.
class BatchNumbers {
 public:
  explicit BatchNumbers(const BatchRun& run) : run_(run), places_(run.payload.key_table.size()) {}

  // nullptr for a key that cannot be read or is too long for devices.
  const RsaNumbers* find(std::uint32_t key_index) {
    Place& place = places_[key_index];
    if (!place.asked) {
      place.asked = true;
      auto read = read_key(run_.payload.key_table[key_index]);
      if (read && (*read)->modulus_bits() <= rsa_device_bits_max &&
          2 * (*read)->prime_bits() <= rsa_device_bits_max)
        place.numbers = std::move(*read);
    }
    return place.numbers.get();
  }

 private:
  struct Place {
    bool asked = false;
    std::shared_ptr<const RsaNumbers> numbers;
  };

  Result<std::shared_ptr<const RsaNumbers>> read_key(const Payload::Key& key) const {
    const ByteView der = run_.payload.keys.view().subspan(key.offset, key.size);
    if (key.use.kind == KeyKind::rsa_public) return RsaNumbers::of_public_key(der);
    // The numbers of a private key are not cached: they are wiped when the batch ends.
    NACRE_ASSIGN(RsaNumbers read, RsaNumbers::from_der(key.use.kind, der));
    return std::make_shared<const RsaNumbers>(std::move(read));
  }

  const BatchRun& run_;
  std::vector<Place> places_;
};

// A message that the device processes.
struct Item {
  std::uint32_t message;  // index in the batch
  std::uint32_t size;     // of the modulus, in bytes
  std::uint64_t offset;   // of its number among the numbers of the batch
};

// Messages of a batch under keys of one size.
template <int N>
class SizeGroup {
 public:
  void add(const Item& item, std::uint32_t key_index, const RsaNumbers& numbers) {
    if (key_index >= key_places_.size()) key_places_.resize(key_index + 1, none);
    if (key_places_[key_index] == none) {
      key_places_[key_index] = static_cast<std::uint32_t>(keys_.size());
      keys_.push_back(&numbers);
      exponent_bits_ = std::max(exponent_bits_, static_cast<std::uint32_t>(numbers.prime_bits()));
    }
    items_.push_back(item);
    item_keys_.push_back(key_places_[key_index]);
  }

  // in and out: the numbers of the batch on the device.
  Result<> describe(const BatchRun& run, const Byte* in, Byte* out, bool is_private) {
    if (items_.empty()) return {};
    const auto count = static_cast<std::uint32_t>(items_.size());
    NACRE_ASSIGN(public_words_, run.slot.add_upload<RsaPublicWords<N>>(keys_.size()));
    if (is_private) {
      NACRE_ASSIGN(private_words_, run.slot.add_upload<RsaPrivateWords<N>>(keys_.size()));
    }
    NACRE_ASSIGN(tasks_, run.slot.add_upload<RsaTask>(count));
    NACRE_ASSIGN(verdicts_, run.slot.add_download<std::uint32_t>(count));
    NACRE_ASSIGN(workspace_, run.slot.take_bytes(is_private ? rsa_private_workspace_size<N>(count)
                                                            : rsa_public_workspace_size<N>(count)));
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      NACRE_TRY(write(*keys_[i], public_words_.host[i]));
      if (is_private) {
        NACRE_TRY(write(*keys_[i], private_words_.host[i]));
      }
    }
    for (std::size_t i = 0; i < count; ++i)
      tasks_.host[i] = {.in = in + items_[i].offset,
                        .out = out + items_[i].offset,
                        .size = items_[i].size,
                        .key = item_keys_[i]};
    return {};
  }

  Result<> launch(const BatchRun& run, bool is_private) const {
    const auto count = static_cast<std::uint32_t>(items_.size());
    if (count == 0) return {};
    if (is_private)
      return check(
          rsa_private<N>(public_words_.device, private_words_.device, exponent_bits_, tasks_.device,
                         count, verdicts_.device, workspace_, run.slot.stream()),
          "running RSA's private operation");
    return check(rsa_public<N>(public_words_.device, tasks_.device, count, verdicts_.device,
                               workspace_, run.slot.stream()),
                 "running RSA's public operation");
  }

  // Called after the wait of a public batch. False if OpenSSL gets another result than the device;
  // no result of the group may then be given out. in and out: the numbers of the batch on the host.
  Result<bool> is_confirmed(const Byte* in, const Byte* out) const {
    if (items_.empty()) return true;
    int device = 0;
    NACRE_TRY(check(cudaGetDevice(&device), "asking for the device"));
    const std::uint64_t bit = device < 64 ? std::uint64_t{1} << device : 0;
    if ((confirmed_devices.load(std::memory_order_relaxed) & bit) != 0) return true;
    const auto good = std::ranges::find(verdicts_.host.first(items_.size()), 1u);
    const auto place = static_cast<std::size_t>(good - verdicts_.host.begin());
    if (place == items_.size()) return true;  // nothing is given out
    const Item& item = items_[place];
    NACRE_ASSIGN(const bool equal,
                 keys_[item_keys_[place]]->confirms_public({in + item.offset, item.size},
                                                           {out + item.offset, item.size}));
    if (equal) confirmed_devices.fetch_or(bit, std::memory_order_relaxed);
    return equal;
  }

  // Called after the wait: calls function with each item and whether its result is good.
  template <typename Function>
  void each_after(const Function& function) const {
    for (std::size_t i = 0; i < items_.size(); ++i)
      function(items_[i], verdicts_.host[i] == 1);
  }

 private:
  // A bit for each device on which a public operation of this size was confirmed.
  static inline std::atomic<std::uint64_t> confirmed_devices{0};

  static Result<> write(const RsaNumbers& numbers, RsaPublicWords<N>& words) {
    NACRE_TRY(numbers.write(RsaNumber::modulus, words.modulus));
    NACRE_TRY(numbers.write_r_squared(RsaNumber::modulus, words.r_squared));
    words.inverse = negative_inverse(words.modulus[0]);
    words.exponent[0] = static_cast<std::uint32_t>(numbers.public_exponent());
    words.exponent[1] = static_cast<std::uint32_t>(numbers.public_exponent() >> 32);
    return {};
  }

  static Result<> write(const RsaNumbers& numbers, RsaPrivateWords<N>& words) {
    constexpr RsaNumber primes[] = {RsaNumber::p, RsaNumber::q};
    constexpr RsaNumber exponents[] = {RsaNumber::p_exponent, RsaNumber::q_exponent};
    for (int half = 0; half < 2; ++half) {
      RsaHalfWords<N>& to = words.halves[half];
      NACRE_TRY(numbers.write(primes[half], to.modulus));
      NACRE_TRY(numbers.write_r_squared(primes[half], to.r_squared));
      NACRE_TRY(numbers.write(exponents[half], to.exponent));
      to.inverse = negative_inverse(to.modulus[0]);
    }
    return numbers.write(RsaNumber::q_inverse, words.q_inverse);
  }

  std::vector<const RsaNumbers*> keys_;
  std::vector<std::uint32_t> key_places_;  // by the payload's key index
  std::vector<Item> items_;
  std::vector<std::uint32_t> item_keys_;
  std::uint32_t exponent_bits_ = 0;
  Mirrored<RsaPublicWords<N>> public_words_;
  Mirrored<RsaPrivateWords<N>> private_words_;
  Mirrored<RsaTask> tasks_;
  Mirrored<std::uint32_t> verdicts_;
  Byte* workspace_ = nullptr;
};

using SizeGroups = std::tuple<SizeGroup<16>, SizeGroup<32>, SizeGroup<48>, SizeGroup<64>>;

ByteView input_of(const BatchRun& run, const Message& message) {
  return {run.payload.input + message.input_offset, message.input_size};
}

std::string_view label_of(const BatchRun& run, const Message& message) {
  return as_text({run.payload.input + message.aad_offset, message.aad_size});
}

// Makes the number that the device raises to a power: the message's bytes, or their OAEP encoding.
// False if the message is bad; the cpu then finds what is wrong.
bool make_number(const BatchRun& run, const Message& message, MutableByteView number) {
  const ByteView input = input_of(run, message);
  const bool is_private = message.operation == Operation::rsa_private;
  const bool oaep = message.rsa_padding == RsaPadding::oaep_sha256;
  if (!(is_private && oaep) && message.output_capacity < number.size()) return false;
  if (oaep && !is_private) return encode_oaep(input, label_of(run, message), number).has_value();
  if (input.size() != number.size()) return false;
  std::copy(input.begin(), input.end(), number.begin());
  return true;
}

// Writes a message's output and result from the number that the device computed. False if the
// message is bad; the cpu then finds what is wrong.
bool give_out(const BatchRun& run, std::uint32_t place, ByteView number) {
  const Message& message = run.message(place);
  const MutableByteView output(run.payload.output + message.output_offset, message.output_capacity);
  const auto give = [&](ByteView bytes) {
    if (bytes.size() > output.size()) return false;
    std::copy(bytes.begin(), bytes.end(), output.begin());
    run.result(place) = {.ok = true, .output_size = bytes.size()};
    return true;
  };
  if (message.operation == Operation::rsa_public || message.rsa_padding == RsaPadding::none)
    return give(number);
  const auto secret = decode_oaep(number, label_of(run, message));
  return secret && give(secret->view());
}

}  // namespace

Result<> run_rsa_batch(const BatchRun& run) {
  SlotWiper wiper(run.slot);
  const bool is_private = run.batch.kind.operation == Operation::rsa_private;
  BatchNumbers keys(run);
  SizeGroups groups;
  NACRE_ASSIGN(Byte* const in, run.slot.staging_in(run.count() * (rsa_device_bits_max / 8)));
  std::uint64_t used = 0;
  for (std::uint32_t i = 0; i < run.count(); ++i) {
    const Message& message = run.message(i);
    const RsaNumbers* const numbers = keys.find(message.key_index);
    if (numbers == nullptr ||
        !make_number(run, message, {in + used, numbers->modulus_size_bytes()})) {
      run.refuse(i);
      continue;
    }
    const Item item = {.message = i,
                       .size = static_cast<std::uint32_t>(numbers->modulus_size_bytes()),
                       .offset = used};
    const int bits = std::max((numbers->modulus_bits() + 1) / 2, numbers->prime_bits());
    with_prime_limbs(bits, [&](auto limbs) {
      std::get<SizeGroup<limbs()>>(groups).add(item, message.key_index, *numbers);
    });
    used += item.size;
  }
  if (used == 0) return {};

  NACRE_ASSIGN(Byte* const device_in, run.slot.take_bytes(used));
  NACRE_ASSIGN(Byte* const device_out, run.slot.take_bytes(used));
  NACRE_ASSIGN(Byte* const out, run.slot.staging_out(used));
  const cudaStream_t stream = run.slot.stream();
  NACRE_TRY(check(cudaMemcpyAsync(device_in, in, used, cudaMemcpyHostToDevice, stream),
                  "copying numbers to the device"));
  const auto for_all = [&](const auto& function) -> Result<> {
    NACRE_TRY(function(std::get<0>(groups)));
    NACRE_TRY(function(std::get<1>(groups)));
    NACRE_TRY(function(std::get<2>(groups)));
    return function(std::get<3>(groups));
  };
  NACRE_TRY(
      for_all([&](auto& group) { return group.describe(run, device_in, device_out, is_private); }));
  NACRE_TRY(run.slot.upload());
  NACRE_TRY(run.launch(
      [&] { return for_all([&](const auto& group) { return group.launch(run, is_private); }); }));
  NACRE_TRY(check(cudaMemcpyAsync(out, device_out, used, cudaMemcpyDeviceToHost, stream),
                  "copying numbers from the device"));
  NACRE_TRY(run.slot.finish());
  // Wiped before anything is given out: if this fails, the batch runs again, and needs its inputs.
  NACRE_TRY(wiper.wipe_device());

  return for_all([&](const auto& group) -> Result<> {
    bool confirmed = true;
    if (!is_private) {
      NACRE_ASSIGN(confirmed, group.is_confirmed(in, out));
    }
    group.each_after([&](const Item& item, bool good) {
      if (!confirmed || !good || !give_out(run, item.message, {out + item.offset, item.size}))
        run.refuse(item.message);
    });
    return {};
  });
}

}  // namespace nacre::engine::cuda

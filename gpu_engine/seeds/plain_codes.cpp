// SPDX-License-Identifier: Apache-2.0
#include "gpu_engine/seeds/plain_codes.h"

#include <algorithm>

#include "gpu_engine/baseline/baseline_parts.h"
#include "gpu_engine/seeds/aes_plain.h"
#include "gpu_engine/seeds/crc_plain.h"
#include "gpu_engine/seeds/des_plain.h"
#include "gpu_engine/seeds/packers.h"

namespace nacre::engine::seeds {
namespace {

using Size = std::optional<std::size_t>;

// Makes a baseline of a function of one piece. It needs no package.
template <typename Function>
BaselineLibrary plain(const char* name, bool gives_our_bytes, const Function& function) {
  return {name, "", gives_our_bytes, "", [function] { return each_piece(function); }};
}

// For ciphers: the output is as long as the input, which is whole blocks.
template <typename Crypt>
BaselineLibrary plain_cipher(const char* name, std::size_t block_size, const Crypt& crypt) {
  return plain(name, true, [block_size, crypt](ByteView in, MutableByteView out) -> Size {
    if (in.size() % block_size != 0 || out.size() < in.size()) return std::nullopt;
    crypt(in, out);
    return in.size();
  });
}

}  // namespace

BaselineLibrary plain_crc() {
  return plain("Sarwate", true, [](ByteView in, MutableByteView out) -> Size {
    const std::uint32_t crc = crc32_sarwate(in);
    store_le(out.data(), crc);
    return sizeof crc;
  });
}

BaselineLibrary plain_aes_bytewise(const BaselineTask& task) {
  return plain_cipher("byte by byte", 16,
                      [aes = PlainAes(task.key), encrypts = task.operation == Operation::encrypt](
                          ByteView in, MutableByteView out) {
                        encrypts ? aes.encrypt_bytewise(in, out) : aes.decrypt_bytewise(in, out);
                      });
}

BaselineLibrary plain_aes_by_tables(const BaselineTask& task) {
  return plain_cipher("four tables", 16,
                      [aes = PlainAes(task.key), encrypts = task.operation == Operation::encrypt,
                       mode = task.key_use.mode, iv = task.iv](ByteView in, MutableByteView out) {
                        if (mode == CipherMode::ctr)
                          aes.apply_counter(in, out, iv);
                        else if (mode == CipherMode::cbc)
                          aes.encrypt_cbc(in, out, iv);
                        else
                          encrypts ? aes.encrypt_by_tables(in, out)
                                   : aes.decrypt_by_tables(in, out);
                      });
}

BaselineLibrary plain_des(const BaselineTask& task) {
  return plain_cipher("bit by bit", 8,
                      [des = PlainDes(task.key), encrypts = task.operation == Operation::encrypt](
                          ByteView in, MutableByteView out) {
                        encrypts ? des.encrypt(in, out) : des.decrypt(in, out);
                      });
}

BaselineLibrary plain_rsa(const RsaNumbers& key, bool is_public) {
  return plain(
      "square and multiply", true,
      [power = PlainPower(key.modulus, is_public ? key.public_exponent : key.private_exponent),
       size = key.modulus.size()](ByteView in, MutableByteView out) -> Size {
        if (in.size() != size || out.size() < size) return std::nullopt;
        power.apply(in, out.first(size));
        return size;
      });
}

BaselineLibrary plain_rsa_keys(int bits) {
  return plain("trial division, Miller and Rabin", false,
               [bits](ByteView, MutableByteView out) -> Size {
                 const auto key = search_rsa_numbers(bits);
                 if (!key || key->private_der.size() > out.size()) return std::nullopt;
                 std::copy(key->private_der.begin(), key->private_der.end(), out.begin());
                 return key->private_der.size();
               });
}

BaselineLibrary plain_packer(const BaselineTask& task) {
  using Pack = std::size_t (*)(ByteView, MutableByteView);
  using Unpack = bool (*)(ByteView, MutableByteView);
  Pack pack = pack_rle;
  Unpack unpack = unpack_rle;
  if (task.codec == Codec::lz77) pack = pack_lz77, unpack = unpack_lz77;
  if (task.codec == Codec::huffman) pack = pack_huffman, unpack = unpack_huffman;
  if (task.codec == Codec::lzw) pack = pack_lzw, unpack = unpack_lzw;
  return plain("serial, a stream of its own", false,
               [pack, unpack, packs = task.operation == Operation::compress](
                   ByteView in, MutableByteView out) -> Size {
                 if (packs) {
                   return out.size() < packed_size_bound(in.size()) ? std::nullopt
                                                                    : Size(pack(in, out));
                 }
                 return unpack(in, out) ? Size(out.size()) : std::nullopt;
               });
}

}  // namespace nacre::engine::seeds

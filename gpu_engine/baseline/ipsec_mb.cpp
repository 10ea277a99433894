// SPDX-License-Identifier: Apache-2.0
// libipsec-mb: GCM by its direct calls; CBC, CTR and ECB by its queue of jobs, which gets all
// pieces one after the other and so fills its lanes. The library lacks OFB, and all modes of DES
// except CBC.
#include <intel-ipsec-mb.h>

#include <array>

#include <fmt/format.h>

#include "gpu_engine/baseline/baseline_parts.h"
#include "gpu_engine/cipher/ipsec_mb_lanes.h"

namespace nacre::engine {
namespace {

using Size = std::optional<std::size_t>;
using Manager = std::shared_ptr<IMB_MGR>;

constexpr std::size_t gcm_tag_size_bytes = 16;
constexpr std::size_t job_size_max = 48u << 10;  // in ECB and CBC a length has 16 bits

Manager make_manager() {
  Manager manager(alloc_mb_mgr(0), free_mb_mgr);
  if (manager) init_mb_mgr_auto(manager.get(), nullptr);
  return manager;
}

struct alignas(64) GcmKey {
  gcm_key_data data;
};

std::unique_ptr<Baseline> make_gcm(CipherSuite suite, ByteView key, CipherIv iv, bool encrypts) {
  const Manager manager = make_manager();
  const auto expanded = std::make_shared<GcmKey>();
  const bool is_128 = suite == CipherSuite::aes_128_gcm;
  const bool is_192 = suite == CipherSuite::aes_192_gcm;
  (is_128   ? manager->gcm128_pre
   : is_192 ? manager->gcm192_pre
            : manager->gcm256_pre)(key.data(), &expanded->data);
  if (encrypts) {
    const aes_gcm_enc_dec_t run = is_128   ? manager->gcm128_enc
                                  : is_192 ? manager->gcm192_enc
                                           : manager->gcm256_enc;
    return each_piece([manager, expanded, iv, run](ByteView in, MutableByteView out) {
      gcm_context_data context;
      run(&expanded->data, &context, out.data(), in.data(), in.size(), iv.data(), iv.data(), 0,
          out.data() + in.size(), gcm_tag_size_bytes);
      return Size(in.size() + gcm_tag_size_bytes);
    });
  }
  const aes_gcm_enc_dec_t run = is_128   ? manager->gcm128_dec
                                : is_192 ? manager->gcm192_dec
                                         : manager->gcm256_dec;
  return each_piece([manager, expanded, iv, run](ByteView in, MutableByteView out) {
    gcm_context_data context;
    std::array<Byte, gcm_tag_size_bytes> tag;
    const std::size_t size = in.size() - tag.size();
    run(&expanded->data, &context, out.data(), in.data(), size, iv.data(), iv.data(), 0, tag.data(),
        tag.size());
    return equal_constant_time(tag, in.last(tag.size())) ? Size(size) : std::nullopt;
  });
}

// Key schedules of the three keys of 3DES, or only the first one's.
struct alignas(64) Schedules {
  std::array<Byte, 16 * 15> aes_encrypt, aes_decrypt;
  std::array<std::array<std::uint64_t, 16>, 3> des;
  std::array<const void*, 3> triple;
};

class JobBaseline final : public Baseline {
 public:
  explicit JobBaseline(const BaselineTask& task)
      : cipher_(task.key_use.cipher),
        mode_(task.key_use.mode),
        encrypts_(task.operation == Operation::encrypt),
        iv_(task.iv) {
    const ByteView key = task.key;
    IMB_MGR* const manager = manager_.get();
    if (block_size_bytes(cipher_) == 8) {
      for (std::size_t i = 0; i < key.size() / 8; ++i) {
        IMB_DES_KEYSCHED(manager, schedules_->des[i].data(), key.data() + 8 * i);
        schedules_->triple[i] = schedules_->des[i].data();
      }
      return;
    }
    Byte* const encrypt = schedules_->aes_encrypt.data();
    Byte* const decrypt = schedules_->aes_decrypt.data();
    if (key.size() == 16) IMB_AES_KEYEXP_128(manager, key.data(), encrypt, decrypt);
    if (key.size() == 24) IMB_AES_KEYEXP_192(manager, key.data(), encrypt, decrypt);
    if (key.size() == 32) IMB_AES_KEYEXP_256(manager, key.data(), encrypt, decrypt);
  }

  bool run(std::span<BaselinePiece> pieces) override {
    const std::size_t step = mode_ == CipherMode::ctr ? SIZE_MAX : job_size_max;
    std::size_t size_max = 0;
    for (BaselinePiece& piece : pieces) {
      piece.output_size = piece.input.size();
      size_max = std::max(size_max, piece.input.size());
    }
    bool fine = true;
    const auto note = [&fine](const IMB_JOB* job) {
      fine = fine && job->status == IMB_STATUS_COMPLETED;
    };
    // A piece that is longer than a job takes several jobs, one after the other.
    for (std::size_t at = 0; at < size_max; at += std::min(step, size_max - at)) {
      for (const BaselinePiece& piece : pieces) {
        if (at >= piece.input.size()) continue;
        fill(*IMB_GET_NEXT_JOB(manager_.get()), piece, at, std::min(step, piece.input.size() - at));
        for (const IMB_JOB* job = IMB_SUBMIT_JOB(manager_.get()); job != nullptr;
             job = IMB_GET_COMPLETED_JOB(manager_.get()))
          note(job);
      }
      while (const IMB_JOB* job = IMB_FLUSH_JOB(manager_.get()))
        note(job);
    }
    return fine;
  }

 private:
  void fill(IMB_JOB& job, const BaselinePiece& piece, std::size_t at, std::size_t size) const {
    const std::size_t block = block_size_bytes(cipher_);
    job = {};
    job.chain_order = encrypts_ ? IMB_ORDER_CIPHER_HASH : IMB_ORDER_HASH_CIPHER;
    job.hash_alg = IMB_AUTH_NULL;
    job.cipher_direction = encrypts_ ? IMB_DIR_ENCRYPT : IMB_DIR_DECRYPT;
    job.key_len_in_bytes = key_size_bytes(cipher_);
    if (block == 8) {
      const bool triple = cipher_ == BlockCipher::des_ede3;
      job.cipher_mode = triple ? IMB_CIPHER_DES3 : IMB_CIPHER_DES;
      job.enc_keys =
          triple ? static_cast<const void*>(schedules_->triple.data()) : schedules_->des[0].data();
      job.dec_keys = job.enc_keys;
    } else {
      job.cipher_mode = mode_ == CipherMode::ecb   ? IMB_CIPHER_ECB
                        : mode_ == CipherMode::cbc ? IMB_CIPHER_CBC
                                                   : IMB_CIPHER_CNTR;
      job.enc_keys = schedules_->aes_encrypt.data();
      job.dec_keys = schedules_->aes_decrypt.data();
    }
    job.src = piece.input.data() + at;
    job.dst = piece.output.data() + at;
    job.msg_len_to_cipher_in_bytes = size;
    const Byte* const ciphertext = encrypts_ ? piece.output.data() : piece.input.data();
    job.iv = mode_ == CipherMode::cbc && at > 0 ? ciphertext + at - block : iv_.data();
    job.iv_len_in_bytes = mode_ == CipherMode::ecb ? 0 : block;
  }

  const BlockCipher cipher_;
  const CipherMode mode_;
  const bool encrypts_;
  const CipherIv iv_;
  const Manager manager_ = make_manager();
  const std::unique_ptr<Schedules> schedules_ = std::make_unique<Schedules>();
};

}  // namespace

void add_ipsec_mb_baselines(const BaselineTask& task, BaselineLibraries& libraries) {
  if (!ipsec_mb_is_available()) return;
  const std::string name = fmt::format("libipsec-mb {}", imb_get_version_str());
  if (task.key_use.kind == KeyKind::suite) {
    const CipherSuite suite = task.key_use.suite;
    if (construction(suite) != SuiteConstruction::gcm) return;
    libraries.push_back(
        {name, "", true, "libipsec-mb-dev",
         [suite, key = task.key, iv = task.iv, encrypts = task.operation == Operation::encrypt] {
           return make_gcm(suite, key, iv, encrypts);
         }});
    return;
  }
  const CipherMode mode = task.key_use.mode;
  const bool is_des = block_size_bytes(task.key_use.cipher) == 8;
  if (mode == CipherMode::ofb || (is_des && mode != CipherMode::cbc)) return;
  if (is_des && !des_lanes_are_sound()) return;  // the library computes wrong results
  libraries.push_back(
      {name, "", true, "libipsec-mb-dev", [task] { return std::make_unique<JobBaseline>(task); }});
}

}  // namespace nacre::engine

// SPDX-License-Identifier: Apache-2.0
// Managers of libipsec-mb.
#include "gpu_engine/cipher/ipsec_mb.h"

#include <new>

#include "gpu_engine/base/arena.h"
#include "gpu_engine/cipher/implementation.h"

namespace nacre::engine {

// Never freed: threads may outlive static destructors.
const IMB_MGR* ipsec_mb_functions() {
  static IMB_MGR* const instance = [] {
    IMB_MGR* made = alloc_mb_mgr(0);
    if (made != nullptr) init_mb_mgr_auto(made, nullptr);
    return made;
  }();
  return instance;
}

IMB_MGR* ipsec_mb_thread_manager() {
  // An arena starts at a page, which is aligned enough for the manager.
  static thread_local Arena memory;
  if (memory.size() == 0) {
    auto made = allocate_host_arena(imb_get_mb_mgr_size());
    if (!made) throw std::bad_alloc();
    IMB_MGR* const manager = imb_set_pointers_mb_mgr(made->data(), 0, 1);
    if (manager == nullptr) throw std::bad_alloc();
    init_mb_mgr_auto(manager, nullptr);
    memory = std::move(*made);
  }
  return reinterpret_cast<IMB_MGR*>(memory.data());
}

bool ipsec_mb_is_available() {
  constexpr std::uint64_t needed = IMB_FEATURE_AESNI | IMB_FEATURE_PCLMULQDQ;
  const IMB_MGR* const functions = ipsec_mb_functions();
  if (functions == nullptr || (functions->features & needed) != needed) return false;
#ifdef IMB_FEATURE_AESNI_EMU  // version 2 emulates no instructions
  if ((functions->features & IMB_FEATURE_AESNI_EMU) != 0) return false;
#endif
  return true;
}

}  // namespace nacre::engine

// SPDX-License-Identifier: Apache-2.0
// libipsec-mb's managers, for the sources of this folder.
//
// A manager is the library's table of functions for this processor and a queue of jobs. The table
// may be shared; the queue serves one thread.
#pragma once

#include <intel-ipsec-mb.h>

namespace nacre::engine {

// The table of functions alone, for all threads; nullptr when the library gives none.
const IMB_MGR* ipsec_mb_functions();

// The calling thread's own manager, its queue empty. Its memory is left out of core dumps and wiped
// when the thread ends. Throws std::bad_alloc.
IMB_MGR* ipsec_mb_thread_manager();

}  // namespace nacre::engine

// SPDX-License-Identifier: Apache-2.0
// Wipes what the process frees, and what it freed before.
#pragma once

namespace nacre::tools {

// How many heaps malloc shares among all threads.
unsigned heap_count();

// While it lives, malloc overwrites memory when it is freed. That costs time, so it is for the
// moment in which a volume is closed. Its end takes all free pieces of the heaps and the
// stacks that ended threads left, overwrites them, and gives free pages back to the system. Left
// out are the few pieces that each living thread keeps ready for itself. One at a time.
class WipedHeap {
 public:
  WipedHeap();
  WipedHeap(const WipedHeap&) = delete;
  WipedHeap& operator=(const WipedHeap&) = delete;
  ~WipedHeap();
  // Only stops overwriting.
  void leave();

 private:
  bool is_over_ = false;
};

}  // namespace nacre::tools

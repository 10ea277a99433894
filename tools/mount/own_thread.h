// SPDX-License-Identifier: Apache-2.0
// Runs what handles secrets on a thread of its own, whose stack, thread-local memory and pieces of
// the heap go when it is done.
#pragma once

#include <exception>
#include <thread>

namespace nacre::tools {

// Returns when body() has returned. Throws what body() throws, and std::system_error if there is no
// thread.
template <typename Body>
void run_on_own_thread(Body body) {
  std::exception_ptr thrown;
  std::thread thread([&] {
    try {
      body();
    } catch (...) {
      thrown = std::current_exception();
    }
  });
  thread.join();
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace nacre::tools

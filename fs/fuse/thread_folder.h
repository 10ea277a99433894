// SPDX-License-Identifier: Apache-2.0
// What /proc shows of a thread that waits in the kernel for the answer to a request.
#pragma once

#include <sys/types.h>

#include <string>

namespace nacre::fs {

// The folder stays that of the thread. If the thread's number is given to another one, it is empty.
class ThreadFolder {
 public:
  explicit ThreadFolder(pid_t thread);
  ~ThreadFolder();
  ThreadFolder(const ThreadFolder&) = delete;
  ThreadFolder& operator=(const ThreadFolder&) = delete;

  // Returns false if there is no such thread, or if /proc shows the numbers of another PID
  // namespace.
  bool is_open() const { return folder_ >= 0; }
  bool is_in_our_user_namespace() const;
  // The text of one of its files, or empty if it cannot be read.
  std::string text_of(const char* name) const;

 private:
  int folder_ = -1;
};

}  // namespace nacre::fs

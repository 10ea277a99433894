// SPDX-License-Identifier: Apache-2.0
#include "fs/control/recent_messages.h"

namespace nacre::fs {

namespace {

// Ends before a character of UTF-8 that would not fit as a whole.
std::string cut_off(std::string_view text, std::size_t size_max) {
  if (text.size() <= size_max) return std::string(text);
  constexpr std::string_view mark = "…";
  std::size_t size = size_max - mark.size();
  const auto continues = [&](std::size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
  };
  while (size > 0 && continues(size))
    --size;
  return std::string(text.substr(0, size)) + std::string(mark);
}

}  // namespace

void RecentMessages::add(std::int64_t time_ms, std::string_view level, std::string_view text) {
  LogMessage message{.number = 0,
                     .time_ms = time_ms,
                     .level = std::string(level),
                     .text = cut_off(text, text_size_bytes_max)};
  const LockGuard lock(mutex_);
  message.number = ++last_number_;
  if (messages_.size() == message_count_max) messages_.pop_front();
  messages_.push_back(std::move(message));
}

std::vector<LogMessage> RecentMessages::after(std::uint64_t number) const {
  std::vector<LogMessage> found;
  const LockGuard lock(mutex_);
  for (const LogMessage& message : messages_) {
    if (message.number > number) found.push_back(message);
  }
  return found;
}

}  // namespace nacre::fs

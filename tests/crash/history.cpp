// SPDX-License-Identifier: Apache-2.0
#include "tests/crash/history.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <sstream>
#include <utility>

#include <fmt/format.h>

namespace nacre::tests {

using fs::InodeNumber;

namespace {

constexpr std::size_t cell_size_bytes = 16;

// The step that wrote the byte, as its cell says.
std::string describe_byte(std::string_view content, std::size_t at) {
  if (at >= content.size()) return "the end";
  const std::size_t cell = at / cell_size_bytes * cell_size_bytes;
  if (cell + cell_size_bytes > content.size()) return "part of a cell";
  std::uint32_t step = 0, number = 0;
  std::memcpy(&step, content.data() + cell, sizeof(step));
  std::memcpy(&number, content.data() + cell + sizeof(step), sizeof(number));
  if (step == 0 && number == 0) return "zeros";
  return fmt::format("what step {} wrote at {}", step, std::uint64_t{number} * cell_size_bytes);
}

std::size_t first_difference(std::string_view a, std::string_view b) {
  const std::size_t size = std::min(a.size(), b.size());
  const auto differs =
      std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(size), b.begin());
  return static_cast<std::size_t>(differs.first - a.begin());
}

std::set<std::string> lines_of(const std::string& text) {
  std::set<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    lines.insert(line);
  return lines;
}

// The lines of one text that the other text does not have.
std::string only_in(const std::string& a, const std::string& b, std::string_view prefix) {
  const auto of_b = lines_of(b);
  std::string text;
  for (const std::string& line : lines_of(a)) {
    if (!of_b.contains(line)) text += fmt::format("    {} {}\n", prefix, line);
  }
  return text;
}

}  // namespace

std::string History::bytes_of(StepNumber step, std::uint64_t offset, std::size_t size) {
  const std::uint64_t first = offset / cell_size_bytes;
  const std::uint64_t last = (offset + size + cell_size_bytes - 1) / cell_size_bytes;
  std::string cells((last - first) * cell_size_bytes, '\0');
  for (std::uint64_t number = first; number < last; ++number) {
    char* cell = cells.data() + (number - first) * cell_size_bytes;
    const auto step_32 = static_cast<std::uint32_t>(step);
    const auto number_32 = static_cast<std::uint32_t>(number);
    // Half of the steps write what cannot be compressed.
    const std::uint64_t noise =
        step % 2 == 0 ? 0 : (number + 1) * 0x9E3779B97F4A7C15ull ^ step * 0xD1B54A32D192ED03ull;
    std::memcpy(cell, &step_32, sizeof(step_32));
    std::memcpy(cell + 4, &number_32, sizeof(number_32));
    std::memcpy(cell + 8, &noise, sizeof(noise));
  }
  return cells.substr(offset - first * cell_size_bytes, size);
}

void History::end_step(std::string what, std::string names) {
  const bool same = !steps_.empty() && *steps_.back().names == names;
  steps_.push_back(Step{std::move(what), same ? steps_.back().names
                                              : std::make_shared<std::string>(std::move(names))});
}

void History::add_file(StepNumber step, InodeNumber inode) {
  files_[inode].versions.push_back({step, step, std::make_shared<std::string>()});
}

void History::write(StepNumber step, InodeNumber inode,
                    const std::map<std::uint64_t, std::string>& pieces) {
  auto& versions = files_.at(inode).versions;
  std::string content = *versions.back().bytes;
  for (const auto& [offset, bytes] : pieces) {
    if (content.size() < offset + bytes.size()) content.resize(offset + bytes.size());
    content.replace(offset, bytes.size(), bytes);
  }
  versions.push_back({step, step, std::make_shared<std::string>(std::move(content))});
}

void History::truncate(StepNumber step, InodeNumber inode, std::uint64_t size) {
  auto& versions = files_.at(inode).versions;
  std::string content = *versions.back().bytes;
  content.resize(size);
  // Every later state of the file lacks the cut end, also a state without the writes before the
  // cut.
  std::vector<Version> cut;
  for (const Version& version : versions) {
    if (version.bytes->size() <= size) continue;
    cut.push_back(
        {step, version.wrote, std::make_shared<std::string>(version.bytes->substr(0, size))});
  }
  versions.insert(versions.end(), cut.begin(), cut.end());
  versions.push_back({step, step, std::make_shared<std::string>(std::move(content))});
}

void History::punch(StepNumber step, InodeNumber inode, std::uint64_t offset,
                    std::uint64_t length) {
  auto& versions = files_.at(inode).versions;
  const auto zeroed = [](const std::string& bytes, std::uint64_t from, std::uint64_t to) {
    std::string content = bytes;
    to = std::min<std::uint64_t>(to, content.size());
    if (from < to) std::memset(content.data() + from, 0, to - from);
    return std::make_shared<std::string>(std::move(content));
  };
  const std::uint64_t size = versions.back().bytes->size();
  const std::uint64_t end = std::min(offset + length, size);
  const Version latest{step, step, zeroed(*versions.back().bytes, offset, end)};
  // Whole chunks become holes at once, also where writes before have not reached the medium; what
  // is left at the edges is written as zeros.
  const std::uint64_t from =
      (offset + chunk_size_bytes_ - 1) / chunk_size_bytes_ * chunk_size_bytes_;
  const std::uint64_t to = end == size ? end : end / chunk_size_bytes_ * chunk_size_bytes_;
  std::vector<Version> holed;
  for (const Version& version : versions) {
    if (from < to) holed.push_back({step, version.wrote, zeroed(*version.bytes, from, to)});
  }
  versions.insert(versions.end(), holed.begin(), holed.end());
  versions.push_back(latest);
}

void History::move(StepNumber step, InodeNumber inode) {
  const auto found = files_.find(inode);
  if (found != files_.end()) found->second.moves.push_back(step);
}

const std::string& History::latest(InodeNumber inode) const {
  return *files_.at(inode).versions.back().bytes;
}

StepNumber History::latest_write(InodeNumber inode) const {
  return files_.at(inode).versions.back().wrote;
}

std::vector<InodeNumber> History::files() const {
  std::vector<InodeNumber> all;
  for (const auto& [inode, file] : files_)
    all.push_back(inode);
  return all;
}

// If a rename or link survived, the data that the file had at that time must have survived with it.
StepNumber History::floor_of(const File& file, InodeNumber inode, const Promises& promises,
                             StepNumber step) {
  const auto synced = promises.synced.find(inode);
  StepNumber floor = synced == promises.synced.end() ? 0 : synced->second;
  for (const StepNumber move : file.moves) {
    if (move > step) continue;
    for (const Version& version : file.versions) {
      if (version.step <= move) floor = std::max(floor, version.wrote);
    }
  }
  return floor;
}

bool History::is_made_of_chunks(const std::vector<const Version*>& allowed,
                                std::string_view found) const {
  const auto by_size = [](const Version* a, const Version* b) {
    return a->bytes->size() < b->bytes->size();
  };
  const auto [smallest, largest] = std::minmax_element(allowed.begin(), allowed.end(), by_size);
  if (found.size() < (*smallest)->bytes->size() || found.size() > (*largest)->bytes->size()) {
    return false;
  }
  for (std::size_t at = 0; at < found.size(); at += chunk_size_bytes_) {
    const std::string_view chunk = found.substr(at, chunk_size_bytes_);
    const bool known = std::any_of(allowed.begin(), allowed.end(), [&](const Version* version) {
      std::string bytes =
          version->bytes->size() > at ? version->bytes->substr(at, chunk.size()) : std::string();
      bytes.resize(chunk.size());
      return bytes == chunk;
    });
    if (!known) return false;
  }
  return true;
}

std::string History::content_objection(const File& file, std::string_view found, StepNumber floor,
                                       StepNumber step) const {
  std::vector<const Version*> allowed;
  std::string text;
  for (const Version& version : file.versions) {
    if (version.step > step || version.wrote < floor) continue;
    if (*version.bytes == found) return {};
    allowed.push_back(&version);
    const std::size_t at = first_difference(found, *version.bytes);
    text += fmt::format("    not as after step {} ({} bytes): at {} is {} instead of {}\n",
                        version.step, version.bytes->size(), at, describe_byte(found, at),
                        describe_byte(*version.bytes, at));
  }
  if (file.by_chunk && !allowed.empty() && is_made_of_chunks(allowed, found)) return {};
  return text.empty() ? "    no state of it is allowed\n" : text;
}

std::string History::names_objection(const RecoveredTree& tree, const Promises& promises) const {
  std::string text = "  the names are of no state that may be found\n";
  const auto add = [&](StepNumber step) {
    text += fmt::format("  against step {} ({}):\n{}{}", step, steps_[step].what,
                        only_in(tree.names, *steps_[step].names, "found   "),
                        only_in(*steps_[step].names, tree.names, "expected"));
  };
  add(promises.confirmed);
  if (promises.begun != promises.confirmed) add(promises.begun);
  for (StepNumber step = 0; step < steps_.size(); ++step) {
    if (*steps_[step].names == tree.names) {
      text += fmt::format("  they are those of step {} ({})\n", step, steps_[step].what);
      break;
    }
  }
  return text;
}

std::string History::objection(const RecoveredTree& tree, const Promises& promises) const {
  std::string text;
  const StepNumber last = std::min<StepNumber>(promises.begun, steps_.size() - 1);
  for (StepNumber step = promises.confirmed; step <= last; ++step) {
    if (*steps_[step].names != tree.names) continue;
    std::string about_step;
    for (const auto& [inode, content] : tree.contents) {
      const auto file = files_.find(inode);
      if (file == files_.end()) return fmt::format("  inode {} was never made\n", inode.value);
      const StepNumber floor = floor_of(file->second, inode, promises, step);
      const std::string about_file = content_objection(file->second, content, floor, step);
      if (about_file.empty()) continue;
      about_step += fmt::format("  inode {} ({} bytes; to hold what step {} wrote):\n{}",
                                inode.value, content.size(), floor, about_file);
    }
    if (about_step.empty()) return {};
    text = fmt::format("  the names are as after step {} ({}), but\n{}", step, steps_[step].what,
                       about_step);
  }
  return fmt::format("confirmed {}, begun {}\n{}", promises.confirmed, promises.begun,
                     text.empty() ? names_objection(tree, promises) : text);
}

}  // namespace nacre::tests

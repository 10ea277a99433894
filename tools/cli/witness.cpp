// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/witness.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/cli/sight_json.h"

namespace nacre::tools {

namespace {

using nlohmann::json;

Result<std::vector<SeenCopy>> copies_of(const std::string& content, const std::string& file) {
  std::vector<SeenCopy> copies;
  if (content.empty()) return copies;
  try {
    const json all = json::parse(content);
    for (const json& one : all.at("copies")) {
      SeenCopy copy{.path = unescape_path(one.at("path").get<std::string>()),
                    .last = sight_from(one.at("last"))};
      for (const json& closing : one.at("closings"))
        copy.closings.push_back(sight_from(closing));
      copies.push_back(std::move(copy));
    }
  } catch (const std::exception& error) {
    return fail(ErrorCode::corrupt,
                fmt::format("{} cannot be read ({}): it says what this machine has seen of the "
                            "volume; remove it to begin anew",
                            file, error.what()));
  }
  return copies;
}

std::string text_of(const std::vector<SeenCopy>& copies) {
  json all = {{"copies", json::array()}};
  for (const SeenCopy& copy : copies) {
    json closings = json::array();
    for (const Sight& closing : copy.closings)
      closings.push_back(to_json(closing));
    all["copies"].push_back({{"path", escape_path(copy.path, true)},
                             {"last", to_json(copy.last)},
                             {"closings", std::move(closings)}});
  }
  return all.dump(1) + "\n";
}

// The entry of this path, or else the first entry.
std::vector<SeenCopy>::iterator copy_at(std::vector<SeenCopy>& copies, const std::string& path) {
  const auto own = std::find_if(copies.begin(), copies.end(),
                                [&](const SeenCopy& copy) { return copy.path == path; });
  return own != copies.end() ? own : copies.begin();
}

// The entry in which the state at this path is remembered. The volume's own entry, the first one,
// keeps its path as long as something lies there: a copy that is used at another path must not
// count as the newest state of the volume at its own.
SeenCopy& entry_of(std::vector<SeenCopy>& copies, const std::string& path) {
  constexpr std::size_t copies_max = 64;
  if (copies.empty()) return copies.emplace_back();
  const auto known = copy_at(copies, path);
  std::error_code ignored;
  const std::string& own_path = copies.front().path;
  if (known->path == path || !std::filesystem::exists(own_path, ignored) ||
      std::filesystem::equivalent(own_path, path, ignored))
    return *known;
  if (copies.size() == copies_max) copies.erase(copies.begin() + 1);
  return copies.emplace_back();
}

}  // namespace

std::string what_is_older(const Sight& seen, const Sight& found, bool knows_session) {
  std::string words;
  const auto add = [&](const std::string& more) { words += (words.empty() ? "" : "; ") + more; };
  if (found.age.session_count < seen.age.session_count) {
    add(fmt::format(
        "the volume was opened for writing {} times, but {} times when it was last seen",
        found.age.session_count, seen.age.session_count));
  } else if (!knows_session) {
    add(
        fmt::format("the volume does not know the opening for writing that was the newest when it "
                    "was last seen, number {}: so the volume went on from an older state",
                    seen.age.session_count));
  }
  if (found.age.change_count < seen.age.change_count) {
    add(fmt::format("{} changes are missing of {} that were safe",
                    seen.age.change_count - found.age.change_count, seen.age.change_count));
  }
  const auto compare = [&](std::string_view what, std::uint64_t then, std::uint64_t now) {
    if (now < then)
      add(fmt::format("the {} is of generation {}, but was of generation {} when it was last seen",
                      what, now, then));
  };
  compare("keyring", seen.keyring_generation, found.keyring_generation);
  compare("superblock", seen.superblock_generation, found.superblock_generation);
  return words;
}

std::optional<Sight> closing_found(const SeenCopy& seen, const Sight& found) {
  const auto closing = std::find_if(seen.closings.begin(), seen.closings.end(),
                                    [&](const Sight& one) { return one.age == found.age; });
  return closing == seen.closings.end() ? std::nullopt : std::optional(*closing);
}

Result<Witness> Witness::of_volume(const std::string& volume_id) {
  NACRE_ASSIGN(const auto folders, user_folders());
  return Witness(fmt::format("{}/seen/{}", folders.front(), volume_id));
}

Result<std::vector<SeenCopy>> Witness::read() const {
  NACRE_ASSIGN(const auto content, file_.read());
  return copies_of(content, file());
}

Result<std::optional<SeenCopy>> Witness::find(const std::string& path) const {
  NACRE_ASSIGN(auto copies, read());
  if (copies.empty()) return std::optional<SeenCopy>();
  return std::optional(*copy_at(copies, path));
}

Result<> Witness::note(const std::string& path, const Sight& sight, Moment moment) const {
  return file_.replace(
      [&](const std::string& content) -> Result<std::string> {
        NACRE_ASSIGN(auto copies, copies_of(content, file()));
        SeenCopy& copy = entry_of(copies, path);
        copy.path = path;
        copy.last = sight;
        if (moment == Moment::closed) {
          copy.closings.insert(copy.closings.begin(), sight);
          copy.closings.resize(std::min(copy.closings.size(), closings_max));
        }
        return text_of(copies);
      },
      moment == Moment::closed ? Durability::synced : Durability::left_to_system);
}

Result<> Witness::accept(const std::string& path, const Sight& sight) const {
  return file_.replace(
      [&](const std::string& content) -> Result<std::string> {
        // A file that cannot be read holds nothing that must be kept.
        auto copies = copies_of(content, file()).value_or(std::vector<SeenCopy>());
        entry_of(copies, path) = SeenCopy{.path = path, .last = sight};
        return text_of(copies);
      },
      Durability::synced);
}

}  // namespace nacre::tools

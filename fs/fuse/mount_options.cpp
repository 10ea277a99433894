// SPDX-License-Identifier: Apache-2.0
// The table of mount options.
#include "fs/fuse/mount_options.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

namespace nacre::fs {

namespace {

struct Target {
  FuseOptions& fuse;
  VolumeOptions& volume;
};

constexpr unsigned thread_count_max = 256;
constexpr std::uint64_t commit_seconds_max = 3600;
constexpr std::uint64_t idle_seconds_max = 7 * 24 * 3600;
// One less than the number that means "unchanged" to chown(2).
constexpr std::uint64_t owner_max = UINT32_MAX - 1;
constexpr std::uint64_t checkpoint_minutes_max = 7 * 24 * 60;
// With a lower ratio, each byte written would move more than ten others.
constexpr double space_ratio_min = 1.05;
constexpr double space_ratio_max = 100;
constexpr std::uint64_t budget_bytes_min = 1u << 20;
constexpr std::uint64_t kernel_read_ahead_bytes_max = 1u << 20;  // one request

tl::unexpected<Error> bad_value(std::string_view name, std::string_view value,
                                std::string_view expected) {
  return fail(ErrorCode::invalid_argument,
              fmt::format("mount option {}={}: expected {}", name, value, expected));
}

Result<std::uint64_t> parse_number(std::string_view name, std::string_view value,
                                   std::uint64_t minimum, std::uint64_t maximum) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc{} || end != value.data() + value.size() || number < minimum ||
      number > maximum) {
    return bad_value(name, value, fmt::format("a number from {} to {}", minimum, maximum));
  }
  return number;
}

Result<std::uint32_t> parse_mask(std::string_view name, std::string_view value) {
  constexpr std::uint32_t mask_max = 0777;
  std::uint32_t mask = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), mask, 8);
  if (error != std::errc{} || end != value.data() + value.size() || mask > mask_max) {
    return bad_value(name, value, "octal digits from 0 to 777, such as 077");
  }
  return mask;
}

Result<double> parse_ratio(std::string_view name, std::string_view value, double minimum,
                           double maximum) {
  double number = 0;
  const auto [end, error] =
      std::from_chars(value.data(), value.data() + value.size(), number, std::chars_format::fixed);
  if (error != std::errc{} || end != value.data() + value.size() ||
      !(number >= minimum && number <= maximum)) {
    return bad_value(name, value,
                     fmt::format("a number such as 1.25, from {} to {}", minimum, maximum));
  }
  return number;
}

// A number of bytes, also with a suffix K, M, G or T (powers of 1024).
Result<std::uint64_t> parse_size(std::string_view name, std::string_view value,
                                 std::uint64_t minimum) {
  constexpr std::string_view suffixes = "KMGT";
  constexpr std::string_view expected = "a size such as 64M or 1G";
  std::string_view digits = value;
  unsigned shift = 0;
  if (!digits.empty()) {
    const char last =
        digits.back() >= 'a' ? static_cast<char>(digits.back() - 'a' + 'A') : digits.back();
    if (const std::size_t place = suffixes.find(last); place != std::string_view::npos) {
      shift = 10 * (static_cast<unsigned>(place) + 1);
      digits.remove_suffix(1);
    }
  }
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc{} || end != digits.data() + digits.size() ||
      number > (UINT64_MAX >> 1 >> shift)) {
    return bad_value(name, value, expected);
  }
  if (number << shift < minimum) {
    return bad_value(name, value, fmt::format("{}, at least {} bytes", expected, minimum));
  }
  return number << shift;
}

// Options without a value.
struct Switch {
  std::string_view name;
  void (*apply)(Target&);
};
constexpr Switch switches[] = {
    {"ro",
     [](Target& target) {
       target.fuse.read_only = true;
       target.volume.read_only = true;
     }},
    {"rw",
     [](Target& target) {
       target.fuse.read_only = false;
       target.volume.read_only = false;
     }},
    {"allow_other", [](Target& target) { target.fuse.allow_other = true; }},
    {"nonempty", [](Target& target) { target.fuse.nonempty = true; }},
    {"noxattr", [](Target& target) { target.fuse.no_xattr = true; }},
    {"nohandles", [](Target& target) { target.fuse.no_handles = true; }},
    {"atime", [](Target& target) { target.volume.access_times = AccessTimes::relative; }},
    {"relatime", [](Target& target) { target.volume.access_times = AccessTimes::relative; }},
    {"strictatime", [](Target& target) { target.volume.access_times = AccessTimes::always; }},
    {"noatime", [](Target& target) { target.volume.access_times = AccessTimes::never; }},
    {"default_permissions", [](Target&) {}},  // always on
};

struct Setting {
  std::string_view name;
  std::string_view value;  // as the list of options shows it
  Result<> (*apply)(Target&, std::string_view name, std::string_view value);
};
constexpr Setting settings[] = {
    {"fsname", "NAME",
     [](Target& target, std::string_view name, std::string_view value) -> Result<> {
       if (value.empty()) return bad_value(name, value, "a name");
       target.fuse.fsname = value;
       return {};
     }},
    {"commit", "SECONDS",
     [](Target& target, std::string_view name, std::string_view value) -> Result<> {
       NACRE_ASSIGN(const std::uint64_t seconds, parse_number(name, value, 1, commit_seconds_max));
       target.volume.commit_interval_ms = static_cast<std::uint32_t>(seconds * 1000);
       return {};
     }},
    {"idle", "SECONDS",
     [](Target& target, std::string_view name, std::string_view value) -> Result<> {
       NACRE_ASSIGN(const std::uint64_t seconds, parse_number(name, value, 0, idle_seconds_max));
       target.fuse.idle_ms = static_cast<std::uint32_t>(seconds * 1000);
       return {};
     }},
    {"uid", "NUMBER",
     [](Target& target, std::string_view name, std::string_view value) -> Result<> {
       NACRE_ASSIGN(const std::uint64_t uid, parse_number(name, value, 0, owner_max));
       target.fuse.owners.uid = static_cast<std::uint32_t>(uid);
       return {};
     }},
    {"gid", "NUMBER",
     [](Target& target, std::string_view name, std::string_view value) -> Result<> {
       NACRE_ASSIGN(const std::uint64_t gid, parse_number(name, value, 0, owner_max));
       target.fuse.owners.gid = static_cast<std::uint32_t>(gid);
       return {};
     }},
    {"umask", "OCTAL",
     [](Target& target, std::string_view name, std::string_view value) -> Result<> {
       NACRE_ASSIGN(target.fuse.owners.hidden_bits, parse_mask(name, value));
       return {};
     }},
    // The time between two checkpoints of the tables. 0: none is written.
    {"checkpoint", "MINUTES",
     [](Target& target, std::string_view name, std::string_view value) -> Result<> {
       NACRE_ASSIGN(const std::uint64_t minutes,
                    parse_number(name, value, 0, checkpoint_minutes_max));
       target.volume.checkpoints.interval_ms = static_cast<std::uint32_t>(minutes * 60'000);
       return {};
     }},
    {"cache", "SIZE",
     [](Target& target, std::string_view name, std::string_view value) -> Result<> {
       NACRE_ASSIGN(target.volume.cache_budget_bytes, parse_size(name, value, budget_bytes_min));
       return {};
     }},
    {"dirty", "SIZE",
     [](Target& target, std::string_view name, std::string_view value) -> Result<> {
       NACRE_ASSIGN(target.volume.dirty_budget_bytes, parse_size(name, value, budget_bytes_min));
       return {};
     }},
    // The number of stored bytes for each live one, up to which compaction does nothing.
    {"space_ratio", "NUMBER",
     [](Target& target, std::string_view name, std::string_view value) -> Result<> {
       NACRE_ASSIGN(target.volume.compaction.bound.space_ratio,
                    parse_ratio(name, value, space_ratio_min, space_ratio_max));
       return {};
     }},
    // The part of the disk's free bytes that dead records may take beyond that before writers are
    // held back.
    {"space_room", "PERCENT",
     [](Target& target, std::string_view name, std::string_view value) -> Result<> {
       NACRE_ASSIGN(const std::uint64_t percent, parse_number(name, value, 0, 100));
       target.volume.compaction.bound.room_share = static_cast<double>(percent) / 100;
       return {};
     }},
    {"threads", "COUNT",
     [](Target& target, std::string_view name, std::string_view value) -> Result<> {
       NACRE_ASSIGN(const std::uint64_t count, parse_number(name, value, 1, thread_count_max));
       target.fuse.thread_count = static_cast<unsigned>(count);
       return {};
     }},
    {"io_uring", "on|off|auto",
     [](Target& target, std::string_view name, std::string_view value) -> Result<> {
       if (value == "on") {
         target.fuse.uring = UringMode::on;
       } else if (value == "off") {
         target.fuse.uring = UringMode::off;
       } else if (value == "auto") {
         target.fuse.uring = UringMode::automatic;
       } else {
         return bad_value(name, value, "on, off or auto");
       }
       return {};
     }},
    // Both windows: the volume's and the kernel's, which gains nothing from more than one request.
    {"readahead", "SIZE",
     [](Target& target, std::string_view name, std::string_view value) -> Result<> {
       NACRE_ASSIGN(const std::uint64_t size, parse_size(name, value, 0));
       target.volume.read_ahead_bytes_max = size;
       target.fuse.read_ahead_kib =
           static_cast<unsigned>(std::min(size, kernel_read_ahead_bytes_max) >> 10);
       return {};
     }},
};

// Options that the kernel gets unchanged. The options of a pair undo each other there, and the last
// one counts.
constexpr std::string_view kernel_options[] = {
    "suid", "nosuid", "dev", "nodev", "exec", "noexec", "sync", "async", "dirsync", "auto_unmount"};

// Options for mount(8), systemd and people, or for what this file system does anyway.
constexpr std::string_view ignored_options[] = {
    "defaults", "auto",       "noauto", "user",   "nouser",   "users",
    "owner",    "group",      "nofail", "fail",   "loud",     "silent",
    "_netdev",  "noiversion", "mand",   "nomand", "lazytime", "nolazytime"};
constexpr std::string_view ignored_settings[] = {"user", "comment", "subtype", "helper", "uhelper"};

template <typename Range>
bool contains(const Range& range, std::string_view name) {
  return std::find(std::begin(range), std::end(range), name) != std::end(range);
}

// Whether the option belongs to another program, by mount(8)'s rule: x-systemd.automount,
// X-mount.mkdir=0755.
bool is_foreign(std::string_view name) {
  return name.starts_with("x-") || name.starts_with("X-");
}

std::string known_options() {
  std::string list;
  for (const Switch& entry : switches)
    list += fmt::format(" {}", entry.name);
  for (const Setting& entry : settings)
    list += fmt::format(" {}={}", entry.name, entry.value);
  for (const std::string_view name : kernel_options)
    list += fmt::format(" {}", name);
  return list;
}

// The later option of a pair replaces the earlier one.
void add_kernel_option(FuseOptions& fuse, std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> pairs[] = {
      {"suid", "nosuid"}, {"dev", "nodev"}, {"exec", "noexec"}, {"async", "sync"}};
  std::vector<std::string>& chosen = fuse.mount_options;
  std::erase(chosen, name);
  for (const auto& [one, other] : pairs) {
    if (name == one) std::erase(chosen, other);
    if (name == other) std::erase(chosen, one);
  }
  chosen.emplace_back(name);
  fuse.sync_names = contains(chosen, "sync") || contains(chosen, "dirsync");
}

Result<> apply(std::string_view option, Target& target) {
  const std::size_t equals = option.find('=');
  if (equals != std::string_view::npos) {
    const std::string_view name = option.substr(0, equals);
    const std::string_view value = option.substr(equals + 1);
    for (const Setting& entry : settings) {
      if (entry.name == name) return entry.apply(target, name, value);
    }
    if (contains(ignored_settings, name) || is_foreign(name)) return {};
  } else {
    for (const Switch& entry : switches) {
      if (entry.name == option) {
        entry.apply(target);
        return {};
      }
    }
    if (contains(kernel_options, option)) {
      add_kernel_option(target.fuse, option);
      return {};
    }
    if (contains(ignored_options, option) || is_foreign(option)) return {};
  }
  if (option == "allow_root") {
    return fail(
        ErrorCode::invalid_argument,
        "mount option allow_root is not supported: the kernel answers from its cache without "
        "checking which user asks. Use allow_other; permission bits always count");
  }
  if (option == "remount") {
    return fail(
        ErrorCode::invalid_argument,
        "mount option remount is not supported: a mount keeps its options. Unmount the volume "
        "(nacre umount), and mount it again with the new options");
  }
  return fail(ErrorCode::invalid_argument,
              fmt::format("unknown mount option {}; there are:{}", option, known_options()));
}

}  // namespace

Result<> parse_mount_options(std::string_view text, FuseOptions& fuse, VolumeOptions& volume) {
  Target target{fuse, volume};
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view option = text.substr(0, comma);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    if (!option.empty()) NACRE_TRY(apply(option, target));
  }
  return {};
}

}  // namespace nacre::fs

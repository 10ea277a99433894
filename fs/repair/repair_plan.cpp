// SPDX-License-Identifier: Apache-2.0
// The text of a plan, and the sealed file that holds it.
#include "fs/repair/repair_plan.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gpu_engine/kdf/kdf.h"
#include "metadata/keys/sealed_secret.h"

namespace nacre::fs {

using metadata::Table;
using nlohmann::json;

namespace {

constexpr std::string_view plan_format = "nacre repair plan";
constexpr std::string_view plan_purpose = "repair plan";  // of the subkey
constexpr std::uint64_t plan_version = 1;
constexpr std::string_view plan_suffix = ".plan";
constexpr std::string_view plan_magic = "NRPL";
constexpr std::size_t piece_size_bytes = 256u << 10;
constexpr std::size_t sealed_piece_size_bytes_max =
    piece_size_bytes + metadata::sealed_secret_overhead_bytes;
constexpr std::size_t plan_size_bytes_max = 1u << 30;

std::string to_hex(ByteView bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const Byte byte : bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

std::optional<Bytes> from_hex(std::string_view text) {
  const auto digit = [](char c) { return c >= 'a' ? c - 'a' + 10 : c - '0'; };
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (text.size() % 2 != 0 || !std::all_of(text.begin(), text.end(), is_digit)) return {};
  Bytes bytes(text.size() / 2);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<Byte>(digit(text[2 * i]) << 4 | digit(text[2 * i + 1]));
  return bytes;
}

template <typename T>
json to_json(const std::optional<T>& bytes) {
  if (!bytes) return nullptr;
  return to_hex({reinterpret_cast<const Byte*>(bytes->data()), bytes->size()});
}

json to_json(const RowEdit& change) {
  return {{"step", "row"},
          {"table", metadata::to_string(change.table)},
          {"key", to_hex(as_bytes(change.key))},
          {"before", to_json(change.before)},
          {"after", to_json(change.after)}};
}
json to_json(const BytesEdit& change) {
  return {{"step", "bytes"},
          {"path", change.path},
          {"offset", change.offset},
          {"before", to_hex(change.before)},
          {"after", to_hex(change.after)}};
}
json to_json(const FileEdit& change) {
  return {{"step", "file"},
          {"path", change.path},
          {"before", to_json(change.before)},
          {"after", to_json(change.after)}};
}
json to_json(const DatabaseEdit& change) {
  return {{"step", "database"},
          {"folder", change.folder},
          {"before", to_hex(change.before)},
          {"after", to_hex(change.after)},
          {"content", to_hex(change.content)}};
}
json to_json(const RepairStep& step) {
  json line = std::visit([](const auto& change) { return to_json(change); }, step.change);
  line["why"] = step.why;
  line["paths"] = step.paths;
  if (step.inode) line["inode"] = step.inode->value;
  return line;
}
json to_json(const LostBytes& lost) {
  return {{"lost",
           {{"inode", lost.inode.value},
            {"offset", lost.offset},
            {"size", lost.size},
            {"verdict", to_string(lost.verdict)},
            {"why", lost.why},
            {"dropped", lost.is_dropped},
            {"paths", lost.paths}}}};
}

json first_line(const RepairPlan& plan) {
  return {{"format", plan_format},
          {"version", plan_version},
          {"volume_id", to_hex(plan.volume_id)},
          {"created", plan.created},
          {"next_session", plan.next_session},
          {"step_count", plan.steps.size()},
          {"lost_count", plan.lost.size()}};
}

// Names may be any bytes, but JSON is UTF-8. Reasons and paths are for people, so they may show
// replacement characters.
std::string line_of(const json& object) {
  return object.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

// Access to a parsed line. A missing field, or one of another type, makes the line bad.
class Line {
 public:
  explicit Line(const json& object) : object_(object) {}

  std::string text(const char* name) {
    const auto* field = find(name);
    if (field == nullptr || !field->is_string()) return bad<std::string>();
    return field->get<std::string>();
  }
  std::uint64_t number(const char* name) {
    const auto* field = find(name);
    if (field == nullptr || !field->is_number_unsigned()) return bad<std::uint64_t>();
    return field->get<std::uint64_t>();
  }
  Bytes bytes(const char* name) {
    auto bytes = from_hex(text(name));
    if (!bytes) return bad<Bytes>();
    return std::move(*bytes);
  }
  std::optional<Bytes> bytes_or_none(const char* name) {
    const auto* field = find(name);
    if (field != nullptr && field->is_null()) return {};
    return bytes(name);
  }
  std::optional<std::string> row_or_none(const char* name) {
    const auto value = bytes_or_none(name);
    if (!value) return {};
    return std::string(as_text(*value));
  }
  bool truth(const char* name) {
    const auto* field = find(name);
    if (field == nullptr || !field->is_boolean()) return bad<bool>();
    return field->get<bool>();
  }
  std::vector<std::string> texts(const char* name) {
    const auto* field = find(name);
    if (field == nullptr || !field->is_array()) return bad<std::vector<std::string>>();
    std::vector<std::string> all;
    for (const auto& entry : *field) {
      if (!entry.is_string()) return bad<std::vector<std::string>>();
      all.push_back(entry.get<std::string>());
    }
    return all;
  }
  bool has(const char* name) const { return object_.is_object() && object_.contains(name); }
  const json* find(const char* name) const { return has(name) ? &object_.at(name) : nullptr; }
  void fail() { bad_ = true; }
  bool is_good() const { return !bad_; }

 private:
  template <typename T>
  T bad() {
    bad_ = true;
    return T{};
  }
  const json& object_;
  bool bad_ = false;
};

void read_step(Line& line, RepairPlan& plan) {
  RepairStep step{.change = {}, .why = line.text("why"), .inode = {}, .paths = line.texts("paths")};
  if (line.has("inode")) step.inode = metadata::InodeNumber{line.number("inode")};
  const std::string kind = line.text("step");
  if (kind == "row") {
    RowEdit change{.key = std::string(as_text(line.bytes("key"))),
                   .before = line.row_or_none("before"),
                   .after = line.row_or_none("after")};
    const std::string name = line.text("table");
    std::size_t table = 0;
    while (table < metadata::table_count && metadata::to_string(static_cast<Table>(table)) != name)
      ++table;
    if (table == metadata::table_count) line.fail();
    change.table = static_cast<Table>(table);
    step.change = std::move(change);
  } else if (kind == "bytes") {
    BytesEdit change{.path = line.text("path"),
                     .offset = line.number("offset"),
                     .before = line.bytes("before"),
                     .after = line.bytes("after")};
    if (change.before.size() != change.after.size()) line.fail();
    step.change = std::move(change);
  } else if (kind == "file") {
    step.change = FileEdit{.path = line.text("path"),
                           .before = line.bytes_or_none("before"),
                           .after = line.bytes_or_none("after")};
  } else if (kind == "database") {
    step.change = DatabaseEdit{.folder = line.text("folder"),
                               .before = line.bytes("before"),
                               .after = line.bytes("after"),
                               .content = line.has("content") ? line.bytes("content") : Bytes{}};
  } else {
    line.fail();
  }
  plan.steps.push_back(std::move(step));
}

void read_lost(Line& line, RepairPlan& plan) {
  LostBytes lost{.inode = {line.number("inode")},
                 .offset = line.number("offset"),
                 .size = line.number("size"),
                 .why = line.text("why"),
                 .is_dropped = line.truth("dropped"),
                 .paths = line.texts("paths")};
  const std::string verdict = line.text("verdict");
  auto value = Verdict::structure;
  while (to_string(value) != verdict && value != Verdict::unreadable)
    value = static_cast<Verdict>(static_cast<int>(value) + 1);
  if (to_string(value) != verdict) line.fail();
  lost.verdict = value;
  plan.lost.push_back(std::move(lost));
}

// The additional data of a sealed piece, which binds it to its place in this plan of this volume.
std::string piece_data(const metadata::KeyTree& keys, std::string_view name, std::uint64_t index,
                       bool is_last) {
  std::array<Byte, sizeof index + 1> place{};
  store_le(place.data(), index);
  place.back() = is_last ? 1 : 0;
  std::string aad(plan_format);
  aad += as_text(keys.volume_id());
  aad += name;
  aad += as_text(place);
  return aad;
}

std::string path_of(std::string_view name) {
  return fmt::format("{}/{}{}", repair_folder, name, plan_suffix);
}

tl::unexpected<Error> no_such_plan(metadata::BackingDirectory& directory, std::string_view name) {
  std::string known;
  if (const auto files = directory.list(repair_folder)) {
    for (const std::string& file : *files) {
      if (!file.ends_with(plan_suffix)) continue;
      known += (known.empty() ? "" : ", ") + file.substr(0, file.size() - plan_suffix.size());
    }
  }
  return fail(ErrorCode::not_found,
              fmt::format("the volume has no repair plan '{}'; {}", name,
                          known.empty() ? "there are no plans" : "its plans are: " + known));
}

}  // namespace

// Returns a name such as "20260131T235959Z-0123abcd".
std::string new_plan_name(const std::string& created) {
  std::string time = created;
  std::erase_if(time, [](char c) { return c == '-' || c == ':'; });
  std::array<Byte, 4> random;
  engine::random_bytes(random);
  return fmt::format("{}-{}", time, to_hex(random));
}

std::string to_text(const RepairPlan& plan) {
  std::string text = line_of(first_line(plan));
  for (const RepairStep& step : plan.steps)
    text += line_of(to_json(step));
  for (const LostBytes& lost : plan.lost)
    text += line_of(to_json(lost));
  return text;
}

void for_each_lasting_line(const RepairPlan& plan,
                           const std::function<void(std::string_view line)>& visit) {
  json first = first_line(plan);
  first.erase("created");
  visit(line_of(first));
  for (const RepairStep& step : plan.steps) {
    json line = to_json(step);
    if (std::holds_alternative<DatabaseEdit>(step.change)) {
      line.erase("folder");
      line.erase("why");  // has the folder
    }
    visit(line_of(line));
  }
  for (const LostBytes& lost : plan.lost)
    visit(line_of(to_json(lost)));
}

Result<RepairPlan> parse_plan(std::string_view text) {
  RepairPlan plan;
  std::uint64_t step_count = 0;
  std::uint64_t lost_count = 0;
  std::uint64_t number = 0;
  while (!text.empty()) {
    ++number;
    const auto end = std::min(text.find('\n'), text.size() - 1);
    const json object = json::parse(text.substr(0, end + 1), nullptr, false);
    text.remove_prefix(end + 1);
    Line line(object);
    if (number == 1) {
      if (line.text("format") != plan_format || line.number("version") != plan_version) line.fail();
      const Bytes id = line.bytes("volume_id");
      if (id.size() != plan.volume_id.size()) line.fail();
      if (line.is_good()) std::copy(id.begin(), id.end(), plan.volume_id.begin());
      plan.created = line.text("created");
      plan.next_session = line.number("next_session");
      step_count = line.number("step_count");
      lost_count = line.number("lost_count");
    } else if (const auto* lost = line.find("lost")) {
      Line inner(*lost);
      read_lost(inner, plan);
      if (!inner.is_good()) line.fail();
    } else {
      read_step(line, plan);
    }
    if (!line.is_good()) {
      return fail(ErrorCode::corrupt, fmt::format("line {} is none of a repair plan", number));
    }
  }
  if (number == 0 || plan.steps.size() != step_count || plan.lost.size() != lost_count) {
    return fail(ErrorCode::corrupt, "the repair plan is cut off");
  }
  return plan;
}

Result<std::string> save_plan(metadata::BackingDirectory& directory, const metadata::KeyTree& keys,
                              const RepairPlan& plan) {
  const std::string text = to_text(plan);
  if (text.size() > plan_size_bytes_max) {
    return fail(ErrorCode::too_big,
                fmt::format("the repair plan would take {} bytes; nothing was changed: salvage the "
                            "volume or go back to a backup",
                            text.size()));
  }
  const std::string name = plan.name.empty() ? new_plan_name(plan.created) : plan.name;
  const SecretBytes key = keys.volume_subkey(plan_purpose);
  Bytes file;
  const auto append = [&](ByteView bytes) { file.insert(file.end(), bytes.begin(), bytes.end()); };
  append(as_bytes(plan_magic));
  for (std::size_t at = 0, index = 0; at < text.size(); at += piece_size_bytes, ++index) {
    const auto piece = as_bytes(text).subspan(at, std::min(piece_size_bytes, text.size() - at));
    const bool is_last = at + piece.size() == text.size();
    NACRE_ASSIGN(
        const Bytes sealed,
        metadata::seal_secret(key.view(), as_bytes(piece_data(keys, name, index, is_last)), piece));
    std::array<Byte, sizeof(std::uint32_t)> size;
    store_le(size.data(), static_cast<std::uint32_t>(sealed.size()));
    append(size);
    append(sealed);
  }
  NACRE_TRY(directory.make_directory(repair_folder));
  NACRE_TRY(directory.sync_directory(""));
  NACRE_TRY(metadata::replace_file(directory, path_of(name), file));
  return name;
}

Result<RepairPlan> load_plan(metadata::BackingDirectory& directory, const metadata::KeyTree& keys,
                             std::string_view name) {
  // The plan's whole path is accepted, too.
  if (const auto slash = name.rfind('/'); slash != name.npos) name.remove_prefix(slash + 1);
  if (name.ends_with(plan_suffix)) name.remove_suffix(plan_suffix.size());
  const std::string path = path_of(name);
  NACRE_ASSIGN(const bool exists, directory.exists(path));
  if (!exists || name.empty()) return no_such_plan(directory, name);
  NACRE_ASSIGN(const auto file, directory.open(path, metadata::OpenMode::read));
  NACRE_ASSIGN(const std::uint64_t file_size, file->size());
  const SecretBytes key = keys.volume_subkey(plan_purpose);
  // Nothing but what is authenticated is kept in memory, so a large file of an attacker's costs no
  // more than one piece.
  Bytes piece(sealed_piece_size_bytes_max);
  std::uint64_t at = 0;
  const auto read = [&](std::size_t size) -> Result<ByteView> {
    const auto got = file->read(at, MutableByteView(piece).first(size));
    if (!got) return add_context(got.error(), path);
    at += *got;
    return ByteView(piece).first(*got);
  };
  NACRE_ASSIGN(const ByteView magic, read(plan_magic.size()));
  if (as_text(magic) != plan_magic) {
    return fail(ErrorCode::corrupt, path + ": this is no repair plan");
  }
  std::string text;
  for (std::uint64_t index = 0; at < file_size; ++index) {
    NACRE_ASSIGN(const ByteView head, read(sizeof(std::uint32_t)));
    const std::uint32_t size =
        head.size() == sizeof(std::uint32_t) ? load_le<std::uint32_t>(head.data()) : 0;
    if (size == 0 || size > file_size - at) {
      return fail(ErrorCode::corrupt, path + ": the repair plan is cut off");
    }
    if (size > piece.size()) {
      return fail(ErrorCode::corrupt, path + ": a piece of the repair plan is too large");
    }
    NACRE_ASSIGN(const ByteView sealed, read(size));
    const auto opened = metadata::open_secret(
        key.view(), as_bytes(piece_data(keys, name, index, at == file_size)), sealed);
    if (!opened) return add_context(opened.error(), path);
    text += as_text(opened->view());
    if (text.size() > plan_size_bytes_max) {
      return fail(ErrorCode::corrupt, path + ": the repair plan is too large");
    }
  }
  auto plan = parse_plan(text);
  if (!plan) return add_context(plan.error(), path);
  if (plan->volume_id != keys.volume_id()) {
    return fail(ErrorCode::tampered, path + ": the plan is another volume's");
  }
  return plan;
}

}  // namespace nacre::fs

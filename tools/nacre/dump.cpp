// SPDX-License-Identifier: Apache-2.0
// nacre dump: the format's structures in readable form (docs/FORMAT.md).
#include "tools/nacre/dump.h"

#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "metadata/keys/keyring.h"
#include "metadata/sealed_fs/database_scrub.h"
#include "metadata/sealed_fs/file_header.h"
#include "metadata/superblock.h"
#include "metadata/tables/database.h"
#include "tools/cli/command_line.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/hardening.h"
#include "tools/cli/terminal.h"
#include "tools/cli/volume_access.h"
#include "tools/nacre/commands.h"

namespace nacre::tools {

namespace {

// Says "whole", or what is wrong with the text.
std::string judge(std::string_view name, ByteView text) {
  if (name == metadata::superblock_file) {
    const auto parsed = metadata::parse_superblock(text);
    return parsed ? fmt::format("generation {}, whole", parsed->claims.generation)
                  : parsed.error().message;
  }
  const auto parsed = metadata::parse_keyring(text);
  return parsed ? fmt::format("generation {}, whole", parsed->claims.generation)
                : parsed.error().message;
}

void add_part(CLI::App& dump, Action& action, const std::string& name,
              const std::string& description, const std::shared_ptr<DumpArguments>& arguments,
              const std::function<void(CLI::App&)>& add_options,
              const std::function<Result<>(const DumpArguments&)>& run,
              const std::string& example = {}) {
  CLI::App* command = dump.add_subcommand(name, description);
  command->add_option("VOLUME", arguments->volume, "The volume's directory")->required();
  add_options(*command);
  command->footer(fmt::format("Examples:\n  nacre dump {} /srv/vault{}", name, example));
  command->callback([&action, arguments, run] {
    action = [arguments, run] {
      harden_process();
      const auto dumped = run(*arguments);
      return dumped ? exit_fine : report(dumped.error());
    };
  });
}

}  // namespace

Result<> dump_document(const std::string& volume, std::string_view name) {
  NACRE_ASSIGN(const auto place, open_place(volume));
  std::string shown;
  bool any = false;
  for (const std::string& file : {std::string(name), fmt::format("{}.copy", name)}) {
    const auto text = metadata::read_file(*place.directory, file);
    if (!text) {
      print_safely("# {}: {}\n", file, printable(text.error().message));
      continue;
    }
    any = true;
    print_safely("# {}: {} bytes, {}\n", file, text->size(), printable(judge(name, *text)));
    if (shown == as_text(*text)) {
      print_safely("# the same text\n");
    } else {
      shown = as_text(*text);
      print_raw(printable_lines(shown) + "\n");
    }
  }
  if (!any) return fail(ErrorCode::not_found, fmt::format("{} has no {}", volume, name));
  return {};
}

Result<> dump_database_files(const std::string& volume) {
  NACRE_ASSIGN(const auto place, open_place(volume));
  NACRE_ASSIGN(const auto names, place.directory->list(metadata::database_folder));
  for (const auto& name : names) {
    const std::string path = fmt::format("{}/{}", metadata::database_folder, name);
    NACRE_ASSIGN(const auto file, place.directory->open(path, metadata::OpenMode::read));
    NACRE_ASSIGN(const auto size, file->size());
    Bytes head(metadata::file_header_size_bytes);
    NACRE_ASSIGN(const auto got, file->read(0, head));
    head.resize(got);
    const auto header = metadata::decode_file_header(head);
    print_safely("{:<28} {:>12} bytes  ", printable(name), size);
    if (header) {
      print_safely("{:<8} epoch {} salt {}", to_string(header->file_class), header->epoch,
                   hex(header->salt));
    } else {
      print_safely("no header: {}", printable(header.error().message));
    }
    const auto checked = metadata::scrub_database_file(*place.directory, path);
    print_safely("  {}\n", checked ? "whole" : printable(checked.error().message));
  }
  return {};
}

void add_dump_command(CLI::App& app, Action& action) {
  CLI::App* dump = app.add_subcommand("dump", "Print structures of the format, for a close look");
  dump->require_subcommand(1);
  dump->footer(
      "FORMAT.md, or nacre-format(5), says what the structures are.\n"
      "Examples:\n"
      "  nacre dump superblock /srv/vault\n"
      "  nacre dump segment /srv/vault 12");
  const auto arguments = std::make_shared<DumpArguments>();
  const auto nothing = [](CLI::App&) {};
  const auto add_segment = [arguments](CLI::App& command) {
    command.add_option("SEGMENT", arguments->segment, "The segment's number")->required();
  };
  add_part(
      *dump, action, "superblock", "Both copies of the superblock", arguments, nothing,
      [](const DumpArguments& a) { return dump_document(a.volume, metadata::superblock_file); });
  add_part(*dump, action, "keyring", "Both copies of the keyring", arguments, nothing,
           [](const DumpArguments& a) { return dump_document(a.volume, metadata::keyring_file); });
  add_part(*dump, action, "db", "The files under db/ and whether they are whole", arguments,
           nothing, [](const DumpArguments& a) { return dump_database_files(a.volume); });
  add_part(*dump, action, "segment", "A segment's header and records", arguments, add_segment,
           dump_segment, " 12");
  add_part(
      *dump, action, "record", "One record; with a key also what is sealed in it", arguments,
      [&](CLI::App& command) {
        add_segment(command);
        command.add_option("OFFSET", arguments->offset, "Where it begins")->required();
        command.add_flag("--content", arguments->content,
                         "Write the plain bytes to standard output");
        add_secret_options(command, arguments->secret);
      },
      dump_record, " 12 65536");
  add_part(
      *dump, action, "tables", "The rows of the database (needs a key)", arguments,
      [&](CLI::App& command) {
        command.add_option("--table", arguments->table,
                           "Only this one: inodes, dentries, chunks, inlined, xattrs, segments, "
                           "orphans or system");
        add_secret_options(command, arguments->secret);
      },
      dump_tables, " --table dentries");
}

}  // namespace nacre::tools

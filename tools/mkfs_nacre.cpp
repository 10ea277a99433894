// SPDX-License-Identifier: Apache-2.0
// mkfs.nacre: makes a volume in an empty directory. After a failure nothing half made is left.
// After a crash the next mkfs.nacre recognises the remains and removes them.
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "fs/mount/mounted.h"
#include "metadata/backing/volume_lock.h"
#include "metadata/volume_files.h"
#include "tools/cli/command_line.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/hardening.h"
#include "tools/cli/help_text.h"
#include "tools/cli/new_volume_place.h"
#include "tools/cli/recipient_options.h"
#include "tools/cli/size_argument.h"
#include "tools/cli/suite_option.h"
#include "tools/cli/terminal.h"
#include "tools/cli/volume_access.h"

namespace nacre::tools {
namespace {

struct Arguments {
  std::string volume;
  SecretOptions secret;
  std::vector<std::string> recipients;
  std::string codec = "lz77";
  std::string cipher = "aes-256-gcm";
  std::string chunk_size = "64K";
  std::string padding = "none";
  std::string label;
  KdfOptions kdf;
  int level = 0;
  int format = 1;
  bool allow_legacy_cipher = false;
};

// What this run made. It is removed again unless it is kept.
class MadeFiles {
 public:
  explicit MadeFiles(std::string path) : path_(std::move(path)) {}
  MadeFiles(const MadeFiles&) = delete;
  MadeFiles& operator=(const MadeFiles&) = delete;
  ~MadeFiles() {
    if (kept_ || path_.empty()) return;
    std::error_code ignored;
    if (has_files_) {
      // The marker goes last: until then the place counts as unfinished.
      for (const char* name :
           {"superblock", "superblock.copy", "superblock.new", "superblock.copy.new", "keyring",
            "keyring.copy", "keyring.new", "keyring.copy.new", "db", "segments", "lock",
            "mkfs-unfinished", "mkfs-unfinished.new"}) {
        std::filesystem::remove_all(std::filesystem::path(path_) / name, ignored);
      }
    }
    if (has_directory_) std::filesystem::remove(path_, ignored);
  }
  void note_directory() { has_directory_ = true; }
  void note_files() { has_files_ = true; }
  void keep() { kept_ = true; }

 private:
  std::string path_;
  bool has_directory_ = false;
  bool has_files_ = false;
  bool kept_ = false;
};

// From the first file on, signals that end the process wait until the volume is whole.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT})
      sigaddset(&signals, signal);
    pthread_sigmask(SIG_BLOCK, &signals, &before_);
  }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;
  ~SignalsHeld() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

Result<metadata::VolumeParameters> parse_parameters(const Arguments& arguments) {
  metadata::VolumeParameters parameters{.label = arguments.label, .level = arguments.level};
  NACRE_ASSIGN(parameters.codec, engine::codec_from_name(arguments.codec));
  NACRE_ASSIGN(parameters.cipher, engine::suite_from_name(arguments.cipher));
  NACRE_TRY(check_legacy_consent(parameters.cipher, arguments.allow_legacy_cipher));
  if (arguments.format == 2) parameters.format = metadata::EpochFormat::two;
  NACRE_ASSIGN(parameters.padding, metadata::padding_from_name(arguments.padding));
  NACRE_ASSIGN(const auto chunk_size, parse_size(arguments.chunk_size));
  if (chunk_size < chunk_size_bytes_min || chunk_size > chunk_size_bytes_max ||
      (chunk_size & (chunk_size - 1)) != 0) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("--chunk-size {}: a chunk is a power of two from 4K to 1M",
                            arguments.chunk_size));
  }
  parameters.chunk_size_bytes = static_cast<std::uint32_t>(chunk_size);
  return parameters;
}

Result<std::vector<metadata::NewRecipient>> read_recipients(const Arguments& arguments) {
  std::vector<metadata::NewRecipient> recipients;
  for (const auto& path : arguments.recipients) {
    NACRE_ASSIGN(auto recipient, read_recipient(path));
    recipients.emplace_back(std::move(recipient));
  }
  // A passphrase is needed if one is named, and if there is no other secret.
  if (!recipients.empty() && !arguments.secret.names_passphrase()) return recipients;
  NACRE_ASSIGN(
      auto passphrase,
      read_passphrase(arguments.secret,
                      {.prompt = fmt::format("Passphrase for the new volume {}", arguments.volume),
                       .confirm = true}));
  NACRE_ASSIGN(const auto kdf, parse_kdf(arguments.kdf));
  recipients.insert(recipients.begin(), metadata::NewPassphrase{.label = "passphrase",
                                                                .passphrase = std::move(passphrase),
                                                                .kdf = kdf,
                                                                .has_key_pair = false});
  return recipients;
}

Result<> make_directory(const std::string& path, MadeFiles& made) {
  // Other users shall not even see how large a volume is.
  if (::mkdir(path.c_str(), 0700) == 0) {
    made.note_directory();
    return {};
  }
  if (errno == EEXIST) return {};
  const auto code = errno == EACCES || errno == EPERM ? ErrorCode::permission
                    : errno == EROFS                  ? ErrorCode::read_only
                    : errno == ENOENT                 ? ErrorCode::not_found
                                                      : ErrorCode::io;
  return fail(code, fmt::format("cannot make the directory {}: {}", path, strerror(errno)));
}

void print_summary(const VolumePlace& place, const metadata::NewVolume& volume) {
  const auto& superblock = volume.superblock;
  print_safely("Made a volume in {}\n", printable(place.path));
  print_safely("  id           {}\n", hex(superblock.volume_id));
  if (!superblock.label.empty()) print_safely("  label        {}\n", superblock.label);
  print_safely("  fingerprint  {}\n", fingerprint_of(*volume.keys));
  print_safely("  cipher       {}\n", engine::to_string(superblock.cipher));
  print_safely("  codec        {}{}\n", engine::to_string(superblock.codec),
               superblock.level == 0 ? "" : fmt::format(", level {}", superblock.level));
  print_safely("  chunks       {}, padding {}\n", format_bytes(superblock.chunk_size_bytes),
               metadata::padding_name(superblock.padding));
  for (const auto& recipient : volume.keyring.recipients) {
    print_safely("  opened by    {} {}", recipient.passphrase ? "passphrase" : "RSA key",
                 hex(ByteView(recipient.fingerprint).first(8)));
    if (recipient.passphrase) {
      print_safely(" (Argon2id, {}, passes: {})",
                   format_bytes(std::uint64_t{recipient.passphrase->kdf.memory_kib} * 1024),
                   recipient.passphrase->kdf.passes);
    } else {
      print_safely(" ({})", printable(recipient.label));
    }
    print_safely("\n");
  }
  print_safely(
      "Without one of these nobody can open it, not even you. Mount it with\n  mount.nacre "
      "{} MOUNTPOINT\n",
      printable(place.path));
}

// The owner of the root directory is the user who makes the volume. If root makes the volume in
// another user's folder, the owner is that user, for whom it is made.
fs::Caller owner_of(const VolumePlace& place) {
  struct stat status {};
  if (::geteuid() == 0 && ::stat(place.path.c_str(), &status) == 0) {
    return {.uid = status.st_uid, .gid = status.st_gid};
  }
  return {.uid = ::getuid(), .gid = ::getgid()};
}

Result<> make_volume(const Arguments& arguments) {
  NACRE_ASSIGN(const auto parameters, parse_parameters(arguments));
  NACRE_TRY(check_new_volume_place(arguments.volume));
  NACRE_ASSIGN(const auto recipients, read_recipients(arguments));

  const SignalsHeld signals;
  MadeFiles made(arguments.volume);
  NACRE_TRY(make_directory(arguments.volume, made));
  NACRE_ASSIGN(const auto place, open_place(arguments.volume));
  // If two run at once, the second one finds a volume, and has made nothing that it must remove.
  NACRE_ASSIGN(const auto lock, metadata::VolumeLock::acquire(place.path, {}));
  NACRE_TRY(check_new_volume_place(arguments.volume));
  made.note_files();
  NACRE_ASSIGN(const auto volume,
               metadata::create_volume_files(*place.directory, parameters, recipients));
  NACRE_TRY(fs::Mounted::format(place.directory, volume.keys, volume.keyring.generation,
                                owner_of(place), metadata::generation_to_note(volume.superblock),
                                volume.superblock.padding));
  NACRE_TRY(metadata::complete_volume_files(*place.directory, volume));
  made.keep();
  remember_new_volume(place, *volume.keys);
  warn_of_legacy_cipher(place, volume.superblock, volume.keyring);
  print_summary(place, volume);
  return {};
}

std::function<int()> add_arguments(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  app.add_option("VOLUME", arguments->volume, "An empty directory, or one that does not exist yet")
      ->required();
  add_passphrase_options(app, arguments->secret);
  app.add_option("--recipient", arguments->recipients,
                 "An RSA public key (PEM) whose private key opens the volume; may be repeated. "
                 "Without a passphrase option, only these keys open it")
      ->allow_extra_args(false);
  app.add_option("--codec", arguments->codec,
                 fmt::format("Compression: {}; auto chooses for each chunk", codec_names()))
      ->capture_default_str();
  app.add_option("--level", arguments->level, "0: the codec's default, 1: fastest, 9: smallest")
      ->check(CLI::Range(0, metadata::codec_level_max))
      ->capture_default_str();
  app.add_option("--cipher", arguments->cipher,
                 fmt::format("Cipher suite: {}; with --allow-legacy-cipher also {}",
                             suite_names(false), suite_names(true)))
      ->capture_default_str();
  app.add_flag("--allow-legacy-cipher", arguments->allow_legacy_cipher,
               "Allow the ciphers DES and 3DES, which protect too little");
  app.add_option("--chunk-size", arguments->chunk_size, "A power of two from 4K to 1M")
      ->capture_default_str();
  app.add_option("--padding", arguments->padding,
                 "none or padme; padme makes records up to 12 % longer, and their sizes tell less")
      ->capture_default_str();
  add_kdf_options(app, arguments->kdf);
  app.add_option("--label", arguments->label,
                 "A name for the volume; it can be read without a key");
  // No help names it as long as format 2 is a draft.
  app.add_option("--format", arguments->format, "1 or 2")->check(CLI::Range(1, 2))->group("");
  mark_seldom(app, {"--level", "--allow-legacy-cipher", "--kdf-memory", "--kdf-time"});
  app.footer(
      "Without a passphrase option or --recipient it asks for a passphrase, twice.\n"
      "Examples:\n"
      "  mkfs.nacre ~/vault\n"
      "  mkfs.nacre --codec zstd --recipient me.pub.pem /srv/vault\n"
      "Exit status: 0 made, 2 usage, 8 failed, 32 in use");
  return [arguments] {
    harden_process();
    const auto made = make_volume(*arguments);
    return made ? exit_fine : report(made.error());
  };
}

}  // namespace
}  // namespace nacre::tools

int main(int argc, char** argv) {
  return nacre::tools::run_command_line("mkfs.nacre", "Make a Nacre volume", argc, argv,
                                        nacre::tools::add_arguments);
}

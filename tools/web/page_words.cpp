// SPDX-License-Identifier: Apache-2.0
#include "tools/web/page_words.h"

#include <algorithm>

namespace nacre::tools::web {

namespace {

constexpr std::string_view warning_mark = "warning: ";

}  // namespace

// tests/web/page_words.py requires that each first text stands in the sources, that no message with
// an option is left out, and that each hint has its words.
const std::vector<PageWords>& all_page_words() {
  static const std::vector<PageWords> words = {
      // Files.
      {": give -f to replace it", "", "", "replace"},
      {": to write into it, give -C", "", "", "output_folder"},
      {": give one with -o", "", "", "container_name"},
      {": give -r for the files in it", "", "", "recursive"},
      {" is a folder", " is a folder", " is a folder", "recursive"},
      {"--cipher ", ", or add --allow-legacy-cipher if it must be this one",
       "DES and 3DES are legacy ciphers that protect too little", "legacy_cipher"},
      {" (--identity)", "", "", "use_key"},
      {": give --passphrase-file FILE, --passphrase-fd N or --passphrase-command COMMAND", "", "",
       "passphrase"},
      // Keys.
      {"; give its public half, made with: openssl pkey -pubout", "", "", "public_key"},
      {": give the public one (openssl pkey -in ", "", "", "public_key"},
      {"; give its public key, made with: openssl x509 -pubkey -noout", "", "", "public_key"},
      {"; make one with: openssl genpkey -algorithm RSA", "", "", "make_key"},
      {"; convert it with: openssl pkcs8 -topk8 -v2 aes256", "", "", "terminal", "openssl"},
      {": give a smaller --kdf-memory or --kdf-time, or a larger --kdf-limit here and whenever the "
       "volume is opened",
       "", "", "kdf_limit"},
      {". If this volume is meant to cost that much, give --kdf-limit ", "", "", "kdf_limit"},
      {": name a file that holds it with --with-passphrase-file, or", "--with-passphrase-file, or",
       ":", "remove_recipient"},
      {"--revoke takes a secret that stays", "stays", "a revocation takes a secret that stays",
       "use_another"},
      {"--revoke, nothing was changed", "changed", "nothing was changed", ""},
      {"--revoke: a rotation", " is under way", "a rotation is under way", "wait_for_rotation"},
      {" ('nacre key status' tells; a paused one wants 'nacre key rotate --resume'). Without "
       "--revoke it is taken away at once, and a later 'nacre key rotate' does the rest",
       "", ". Without a revocation it is taken away at once", "wait_for_rotation"},
      // A place for a volume.
      {": nothing was changed. Give an empty directory, or one that does not exist yet", "", "",
       "new_place"},
      {": nothing was changed. To make a new one there, remove what it holds first", "", "",
       "new_place"},
      {": nothing was changed. Give another directory", "", "", "new_place"},
      // Opening a volume.
      {", and name it: --fingerprint HEX (mount option fingerprint=HEX)", "fingerprint=HEX)", "",
       "fingerprint"},
      {"is not the volume that --fingerprint names", "names",
       "is not the volume of the fingerprint that you gave", "fingerprint"},
      {" (--fingerprint HEX)", "HEX)", "", "fingerprint"},
      {". Only if you know about it: --accept-older-state", "", "", "older_state"},
      {", or pass -o nonempty to cover what is there", "", "", "empty_folder"},
      {": take it away with fusermount3 -u ", "", "", "detach"},
      {". A volume that cannot be written to can be mounted with -o ro", "", "", "read_only"},
      {": mount it once without -o ro", "", "", "mount_to_write"},
      {". To unmount it all the same: ", "", "", "detach"},
      {" ('fuser -vm ", "' shows what there is)", "", "close_files"},
      {" ('fuser -vm ", "', as root, names them)", "", "close_files"},
      {"; in a container, pass the device in (--device ", ")", "", ""},
      {": chown -R ", "", "", "terminal", "chown"},
      // Upkeep.
      {" is not mounted: --pause, --resume, --stop, --status", "", " is not mounted", ""},
      {": 'nacre key rotate --resume' lets it go on, and another one may follow it", "", "",
       "resume_rotation"},
      {": 'nacre key status' tells how far it is, and another one may follow it", "", "",
       "wait_for_rotation"},
      {", mounting with -o ro serves all others", "", "", "check_or_read_only"},
      {"fsck.nacre --deep names the files that are hit", "",
       "a check of everything names the files that are hit", "check"},
      {"; fsck.nacre --deep says which files are hit", "", "", "check"},
      {". To see what a repair would do: fsck.nacre --repair --dry-run ", "", "", "repair"},
      {". Salvage the volume into another directory: fsck.nacre --salvage TARGET", "", "",
       "salvage", "fsck.nacre"},
      {"; fsck.nacre --salvage TARGET makes the volume anew elsewhere", "TARGET", "", "salvage",
       "fsck.nacre"},
      {"; or have rows that cannot be read count as lost: fsck.nacre --repair --accept-unreadable",
       "", "", "copy_first", "fsck.nacre"},
      {"repair without --drop-damaged first", "", "nothing was changed", "keep_damaged"},
      {"more lost ranges than --drop-damaged can fill with zeros; nothing was changed: repair "
       "without it, then write zeros there",
       "", "more lost ranges than can be filled with zeros; nothing was changed", "keep_damaged"},
      {"; or, if nobody else had the older key, make the volume anew elsewhere: fsck.nacre "
       "--salvage "
       "TARGET",
       "", "", "salvage", "fsck.nacre"},
      {"; or make the volume anew elsewhere, from the history that you name: fsck.nacre --salvage "
       "TARGET",
       "", "", "salvage", "fsck.nacre"},
      {"; or let the rotation count these records as damaged for good: --accept-unreadable", "", "",
       ""},
      {". Find the process (fuser -v ", "), and unmount the volume there first", "", "close_files"},
      {"a repair would make other changes than those of the plan ",
       "look at today's plan with --repair --dry-run, and repair by that",
       "the volume has changed since this plan was made, so nothing was repaired", "plan_again"},
  };
  return words;
}

void use_page_words(WebError& error) {
  for (const PageWords& words : all_page_words()) {
    const std::size_t begin = error.what.find(words.from);
    if (begin == std::string::npos) continue;
    std::size_t end = error.what.find(words.to, begin);
    if (end == std::string::npos) continue;
    end = words.to.empty() ? error.what.find('\n', begin) : end + words.to.size();
    end = std::min(end, error.what.size());
    if (!words.command.empty()) {
      const std::string taken = error.what.substr(begin, end - begin);
      if (const auto at = taken.find(words.command); at != std::string::npos) {
        error.command = taken.substr(at);
      }
    }
    error.what.replace(begin, end - begin, words.instead);
    if (error.hint.empty()) error.hint = words.hint;
  }
}

std::string without_warnings(std::string_view message) {
  std::string kept;
  for (std::string_view rest = message; !rest.empty();) {
    const auto end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.empty() || line.starts_with(warning_mark)) continue;
    if (!kept.empty()) kept += '\n';
    kept += line;
  }
  return kept.empty() ? std::string(message) : kept;
}

}  // namespace nacre::tools::web

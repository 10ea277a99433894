// SPDX-License-Identifier: Apache-2.0
// The small parts that all commands share: sizes, passphrases, exit codes, swap.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tools/cli/engine_option.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/hardening.h"
#include "tools/cli/secret_source.h"
#include "tools/cli/size_argument.h"
#include "tools/cli/terminal.h"

namespace nacre::tools {
namespace {

TEST(SizeArgument, takes_numbers_with_and_without_units) {
  EXPECT_EQ(parse_size("0").value(), 0u);
  EXPECT_EQ(parse_size("65536").value(), 65536u);
  EXPECT_EQ(parse_size("64K").value(), 65536u);
  EXPECT_EQ(parse_size("64KiB").value(), 65536u);
  EXPECT_EQ(parse_size("1M").value(), 1u << 20);
  EXPECT_EQ(parse_size("2G").value(), 2ull << 30);
  EXPECT_EQ(parse_size("8192", 1024).value(), 8ull << 20);
  EXPECT_EQ(parse_size("8M", 1024).value(), 8ull << 20);
}

TEST(SizeArgument, refuses_everything_else) {
  for (const char* text : {"", "K", "-1", "1.5M", "1 M", "64KB", "64T", "0x10", " 1",
                           "18446744073709551616", "18446744073709551615K"}) {
    const auto size = parse_size(text);
    ASSERT_FALSE(size) << text;
    EXPECT_EQ(size.error().code, ErrorCode::invalid_argument);
  }
}

// Starting a device took half a second for a one-letter file, on every machine with a GPU.
TEST(EngineOption, starts_no_device_for_files_that_gain_nothing) {
  using engine::Codec;
  using enum engine::EngineChoice;
  constexpr std::uint64_t much = files_for_devices_bytes;
  EXPECT_EQ(engine_for_files(automatic, Codec::lz77, much), automatic);
  EXPECT_EQ(engine_for_files(automatic, Codec::gdeflate, much), automatic);
  EXPECT_EQ(engine_for_files(automatic, Codec::lz77, much - 1), cpu);
  EXPECT_EQ(engine_for_files(automatic, Codec::lz77, 0), cpu) << "a stream";
  EXPECT_EQ(engine_for_files(automatic, Codec::none, much), cpu);
  EXPECT_EQ(engine_for_files(automatic, Codec::zstd, much), cpu);
  EXPECT_EQ(engine_for_files(cuda, Codec::none, 1), cuda) << "asked for";
  EXPECT_EQ(engine_for_files(cpu, Codec::lz77, much), cpu);
}

TEST(EngineOption, starts_no_device_for_few_keys) {
  using enum engine::EngineChoice;
  EXPECT_EQ(engine_for_keys(automatic, 1), cpu);
  EXPECT_EQ(engine_for_keys(automatic, 1000), automatic);
  EXPECT_EQ(engine_for_keys(cuda, 1), cuda) << "asked for";
  EXPECT_EQ(engine_for_keys(cpu, 1000), cpu);
}

TEST(ExitCode, keeps_the_verdicts_apart) {
  EXPECT_EQ(exit_code_of(ErrorCode::corrupt), 4);
  EXPECT_EQ(exit_code_of(ErrorCode::tampered), 4);
  EXPECT_EQ(exit_code_of(ErrorCode::missing), 4);
  EXPECT_EQ(exit_code_of(ErrorCode::rolled_back), 4);
  EXPECT_EQ(exit_code_of(ErrorCode::wrong_key), 16);
  EXPECT_EQ(exit_code_of(ErrorCode::busy), 32);
  EXPECT_EQ(exit_code_of(ErrorCode::invalid_argument), 2);
  EXPECT_EQ(exit_code_of(ErrorCode::io), 8);
  EXPECT_EQ(exit_code_of(ErrorCode::not_found), 8);
  EXPECT_EQ(exit_code_of(ErrorCode::unsupported), 8);
}

TEST(Terminal, prints_no_control_characters) {
  EXPECT_EQ(printable("a\033[2Jb\rc\x7f"), "a\\x1b[2Jb\\x0dc\\x7f");
  EXPECT_EQ(printable("täglich\n\tx\\"), "täglich\\x0a\\x09x\\");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(printable("\xc2\x80\xc2\x9b\xc2\x9f\xc2\xa0"), "\\u0080\\u009b\\u009f\xc2\xa0");
  for (const char* control :
       {"\u061c", "\u200e", "\u200f", "\u2028", "\u2029", "\u202a", "\u202e", "\u2066", "\u2069"}) {
    const std::string shown = printable(control);
    EXPECT_EQ(shown.size(), 6u) << shown;
    EXPECT_EQ(shown.substr(0, 2), "\\u");
    EXPECT_EQ(printable(shown), shown);
  }
  EXPECT_EQ(printable("\u200d\u202f\u2065\u206a€😀"), "\u200d\u202f\u2065\u206a€😀");
  EXPECT_EQ(printable_lines("a\nb\r"), "a\nb\\x0d");
}

TEST(Terminal, prints_bytes_that_are_not_utf8_as_numbers) {
  EXPECT_EQ(printable("a\xff\xc3"), "a\\xff\\xc3");
  EXPECT_EQ(printable("\xc0\x9b"), "\\xc0\\x9b") << "too long a form of ESC";
  EXPECT_EQ(printable("\xe0\x82\x9b"), "\\xe0\\x82\\x9b");
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "half of a pair";
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "past the last character";
  EXPECT_EQ(printable("\xe2\x82x"), "\\xe2\\x82x");
  EXPECT_EQ(printable("\x9b"), "\\x9b") << "C1 of Latin-1";
}

TEST(Terminal, prints_json_whose_strings_hold_no_control_characters) {
  const nlohmann::json value = {{"name\u202e", "a\n\x1b\x7f\u009b\u2066ä"}};
  const std::string text = printable_json(value.dump(2));
  EXPECT_EQ(nlohmann::json::parse(text), value);
  EXPECT_EQ(printable_lines(text), text);
  EXPECT_NE(text.find("\\u009b"), std::string::npos);
}

class SecretSource : public testing::Test {
 protected:
  SecretSource() {
    std::string pattern = testing::TempDir() + "secret.XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    file_ = folder_ / "passphrase";
  }
  ~SecretSource() override { std::filesystem::remove_all(folder_); }

  Result<std::string> read_file(std::string_view content) {
    std::ofstream(file_) << content;
    return read({.passphrase_file = file_.string()});
  }
  static Result<std::string> read(const SecretOptions& options) {
    NACRE_ASSIGN(const auto secret, read_passphrase(options, {.prompt = "Passphrase"}));
    return std::string(as_text(secret.view()));
  }

  std::filesystem::path folder_;
  std::filesystem::path file_;
};

TEST_F(SecretSource, a_file_loses_one_newline_and_nothing_else) {
  EXPECT_EQ(read_file("secret\n").value(), "secret");
  EXPECT_EQ(read_file("secret").value(), "secret");
  EXPECT_EQ(read_file("secret\n\n").value(), "secret\n");
  EXPECT_EQ(read_file(" a b\t\r\n").value(), " a b\t\r");
  EXPECT_EQ(read_file(std::string("a\0b", 3)).value(), std::string("a\0b", 3));
}

TEST_F(SecretSource, an_empty_passphrase_is_refused) {
  EXPECT_EQ(read_file("").error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(read_file("\n").error().code, ErrorCode::invalid_argument);
}

TEST_F(SecretSource, a_passphrase_has_a_largest_size) {
  const std::string largest(passphrase_size_bytes_max, 'x');
  EXPECT_EQ(read_file(largest).value(), largest);
  EXPECT_EQ(read_file(largest + "\n").value(), largest);
  EXPECT_EQ(read_file(largest + "x").error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(read_file(largest + "xy and much more").error().code, ErrorCode::invalid_argument);
}

TEST_F(SecretSource, a_file_that_is_not_there_is_named) {
  const auto secret = read({.passphrase_file = (folder_ / "nowhere").string()});
  ASSERT_FALSE(secret);
  EXPECT_EQ(secret.error().code, ErrorCode::not_found);
  EXPECT_NE(secret.error().message.find("nowhere"), std::string::npos);
}

TEST_F(SecretSource, a_directory_is_no_passphrase) {
  EXPECT_EQ(read({.passphrase_file = folder_.string()}).error().code, ErrorCode::is_directory);
}

TEST_F(SecretSource, a_descriptor_is_read_to_its_end) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "from a pipe\n", 12), 12);
  ::close(ends[1]);
  EXPECT_EQ(read({.passphrase_fd = ends[0]}).value(), "from a pipe");
  ::close(ends[0]);
  EXPECT_EQ(read({.passphrase_fd = ends[0]}).error().code, ErrorCode::io);
}

TEST_F(SecretSource, a_command_gives_its_output) {
  EXPECT_EQ(read({.passphrase_command = "printf 'a b\\n'"}).value(), "a b");
}

TEST_F(SecretSource, a_command_that_fails_gives_nothing) {
  const auto secret = read({.passphrase_command = "echo secret; exit 3"});
  ASSERT_FALSE(secret);
  EXPECT_NE(secret.error().message.find("status 3"), std::string::npos);
  EXPECT_EQ(secret.error().message.find("secret"), std::string::npos);
}

TEST_F(SecretSource, without_source_and_terminal_there_is_a_usage_error) {
  // The test's own standard input may be a terminal.
  const int saved = ::dup(STDIN_FILENO);
  const int null = ::open("/dev/null", O_RDONLY);
  ::dup2(null, STDIN_FILENO);
  const auto secret = read({});
  if (saved >= 0) ::dup2(saved, STDIN_FILENO);
  ::close(null);
  ::close(saved);
  ASSERT_FALSE(secret);
  EXPECT_EQ(secret.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(secret.error().message.find("--passphrase-file"), std::string::npos);
}

TEST(Hardening, tells_encrypted_swap_from_plain) {
  std::string pattern = testing::TempDir() + "sys.XXXXXX";
  const std::filesystem::path sys = ::mkdtemp(pattern.data());
  // A file stands in for the device; its own device number is looked up in sysfs.
  const auto swap = sys / "swap";
  std::ofstream(swap) << "x";
  struct stat status {};
  ASSERT_EQ(::stat(swap.c_str(), &status), 0);
  const auto device =
      sys / "dev/block" /
      (std::to_string(major(status.st_dev)) + ":" + std::to_string(minor(status.st_dev)));
  const std::string heading = "Filename Type Size Used Priority\n";
  const std::string swaps = heading + swap.string() + " file 1 0 -2\n/dev/zram0 partition 1 0 5\n";
  EXPECT_EQ(unencrypted_swap(heading, sys), "");
  EXPECT_EQ(unencrypted_swap(swaps, sys), swap.string());

  // A volume on top of an encrypted disk.
  std::filesystem::create_directories(device / "slaves/crypt0/dm");
  std::ofstream(device / "slaves/crypt0/dm/uuid") << "CRYPT-LUKS2-0123\n";
  EXPECT_EQ(unencrypted_swap(swaps, sys), "");
  // One plain disk among them is enough to say so.
  std::filesystem::create_directories(device / "slaves/plain/dm");
  std::ofstream(device / "slaves/plain/dm/uuid") << "LVM-0123\n";
  EXPECT_EQ(unencrypted_swap(swaps, sys), swap.string());
  std::filesystem::remove_all(sys);
}

// Plaintext lies all over the heap (caches, RocksDB): no page of it is in a core dump.
TEST(Hardening, leaves_all_memory_out_of_core_dumps_also_of_forked_processes) {
  const pid_t child = ::fork();
  if (child == 0) {
    harden_process();
    const pid_t grandchild = ::fork();
    int status = 0;
    if (grandchild != 0) {
      ::_exit(::waitpid(grandchild, &status, 0) == grandchild && WIFEXITED(status)
                  ? WEXITSTATUS(status)
                  : 100);
    }
    std::string filter;
    std::ifstream("/proc/self/coredump_filter") >> filter;
    rlimit core{};
    int failures = filter == "00000000" ? 0 : 1;
    if (::getrlimit(RLIMIT_CORE, &core) != 0 || core.rlim_max != 0) failures |= 2;
#ifndef NACRE_SANITIZER
    if (::prctl(PR_GET_DUMPABLE) != 0) failures |= 4;
#endif
    ::_exit(failures);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0) << "1 the filter, 2 the limit, 4 dumpable";
}

}  // namespace
}  // namespace nacre::tools

// SPDX-License-Identifier: Apache-2.0
// RSA keys that are made once and used by many tests: to make one of 3072 bits takes most of a
// second of processor time, and each new volume or container with a passphrase needs one. What is
// built with this, or started with it by LD_PRELOAD, gets its keys from the folder that
// NACRE_READY_KEYS names; a key that the folder has not yet is made as ever and put there.
//
// No test gets a key twice: the keys are numbered, and the file that NACRE_READY_KEYS_TAKEN names
// counts how many a test has had. A program of tests counts by itself. After ready_keys_max a key
// is made as ever, as it is without NACRE_READY_KEYS. Where it does not matter that keys are of
// one's own, NACRE_READY_KEYS_REPEATED says after how many they come again.
#include <dlfcn.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr unsigned ready_keys_max = 16;

// Looks the function up by name, since most programs that load this library have no OpenSSL.
template <typename Function>
Function openssl(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_DEFAULT, name));
}

// How many keys were taken before this one.
unsigned take_number() {
#ifdef NACRE_READY_KEYS_OF_THIS_PROGRAM
  static std::atomic<unsigned> taken{0};
  return taken++;
#else
  const char* path = std::getenv("NACRE_READY_KEYS_TAKEN");
  const int file =
      path == nullptr ? -1 : ::open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return ready_keys_max;
  unsigned number = ready_keys_max;
  if (::flock(file, LOCK_EX) == 0) {
    const off_t size = ::lseek(file, 0, SEEK_END);
    if (size >= 0 && ::write(file, "k", 1) == 1) number = static_cast<unsigned>(size);
  }
  ::close(file);
  return number;
#endif
}

EVP_PKEY* read_key(const std::string& path) {
  static const auto parse = openssl<decltype(&d2i_AutoPrivateKey)>("d2i_AutoPrivateKey");
  std::FILE* file = std::fopen(path.c_str(), "rbe");
  if (file == nullptr) return nullptr;
  std::vector<unsigned char> der(1 << 16);
  der.resize(std::fread(der.data(), 1, der.size(), file));
  std::fclose(file);
  const unsigned char* begin = der.data();
  return parse == nullptr ? nullptr : parse(nullptr, &begin, static_cast<long>(der.size()));
}

// Stores the key. The file gets its name when it is whole. If the folder is not writable, nothing
// is stored, and the next process makes its own key.
void keep_key(const std::string& path, const EVP_PKEY* key) {
  static const auto encode = openssl<decltype(&i2d_PrivateKey)>("i2d_PrivateKey");
  if (encode == nullptr) return;
  std::vector<unsigned char> der(1 << 16);
  unsigned char* end = der.data();
  if (encode(key, nullptr) > static_cast<int>(der.size())) return;
  const int size = encode(key, &end);
  const std::string unfinished = path + "." + std::to_string(::getpid());
  std::FILE* file = size <= 0 ? nullptr : std::fopen(unfinished.c_str(), "wbxe");
  if (file == nullptr) return;
  const bool is_written = std::fwrite(der.data(), 1, static_cast<std::size_t>(size), file) ==
                          static_cast<std::size_t>(size);
  if (std::fclose(file) == 0 && is_written)
    static_cast<void>(std::rename(unfinished.c_str(), path.c_str()));
  else
    ::unlink(unfinished.c_str());
}

}  // namespace

extern "C" EVP_PKEY* EVP_PKEY_Q_keygen(OSSL_LIB_CTX* context, const char* properties,
                                       const char* type, ...) {
  static const auto make =
      reinterpret_cast<decltype(&EVP_PKEY_Q_keygen)>(::dlsym(RTLD_NEXT, "EVP_PKEY_Q_keygen"));
  if (std::strcmp(type, "RSA") != 0) return nullptr;  // nothing of ours asks for another
  va_list rest;
  va_start(rest, type);
  const std::size_t bits = va_arg(rest, std::size_t);
  va_end(rest);
  const char* folder = std::getenv("NACRE_READY_KEYS");
  const char* repeated = std::getenv("NACRE_READY_KEYS_REPEATED");
  unsigned number = folder == nullptr ? ready_keys_max : take_number();
  if (folder != nullptr && repeated != nullptr && std::atoi(repeated) > 0)
    number %= static_cast<unsigned>(std::atoi(repeated));
  if (number >= ready_keys_max) return make(context, properties, type, bits);
  const std::string path =
      std::string(folder) + "/" + std::to_string(bits) + "." + std::to_string(number) + ".der";
  EVP_PKEY* key = read_key(path);
  if (key != nullptr) return key;
  // Other processes that need the key wait for the one that makes it.
  const int lock = ::open((path + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock >= 0 && ::flock(lock, LOCK_EX) == 0) key = read_key(path);
  if (key == nullptr) {
    key = make(context, properties, type, bits);
    if (key != nullptr) keep_key(path, key);
  }
  if (lock >= 0) ::close(lock);
  return key;
}

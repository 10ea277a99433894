// SPDX-License-Identifier: Apache-2.0
#include "tests/gpu_engine/gdeflate_reference.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

namespace nacre::engine {
namespace {

// Declared as in the header of the reference codec.
struct Page {
  const void* data;
  std::size_t size;
};
using Allocate = void* (*)();
using Free = void (*)(void*);
using Decompress = int (*)(void* decoder, Page* pages, std::size_t page_count, void* out,
                           std::size_t out_size, std::size_t* written);

template <typename Function>
Function function_of(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

}  // namespace

GdeflateReference::GdeflateReference() {
  const char* const file = std::getenv("NACRE_GDEFLATE_REFERENCE");
  if (file == nullptr) return;
  library_ = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) {
    ADD_FAILURE() << dlerror();
    return;
  }
  const auto allocate = function_of<Allocate>(library_, "libdeflate_alloc_gdeflate_decompressor");
  if (allocate != nullptr) decoder_ = allocate();
  EXPECT_NE(decoder_, nullptr) << file << " is not a libdeflate with GDeflate";
}

GdeflateReference::~GdeflateReference() {
  if (decoder_ != nullptr)
    function_of<Free>(library_, "libdeflate_free_gdeflate_decompressor")(decoder_);
  if (library_ != nullptr) dlclose(library_);
}

bool GdeflateReference::agrees(ByteView page, ByteView plain) const {
  const auto decompress = function_of<Decompress>(library_, "libdeflate_gdeflate_decompress");
  Page pages = {page.data(), page.size()};
  Bytes out(plain.size());
  std::size_t written = 0;
  return decompress(decoder_, &pages, 1, out.data(), out.size(), &written) == 0 &&
         written == plain.size() && std::equal(out.begin(), out.end(), plain.begin());
}

}  // namespace nacre::engine

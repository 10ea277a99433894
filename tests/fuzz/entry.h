// SPDX-License-Identifier: Apache-2.0
// The entry function of a fuzzer, as libFuzzer calls it. Each harness defines it once; what it
// finds ends the process.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

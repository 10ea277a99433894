#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# fuzz.sh as a test: the harnesses of the engine for NACRE_FUZZ_SECONDS each, with NACRE_LONG those of
# containers and of a volume's formats too, and once more what was found before.
#
#   libfuzzer.sh BUILD
set -euo pipefail
skip() { echo "skipped: libFuzzer: $1"; exit 77; }

[ -n "${NACRE_FUZZ_SECONDS-}" ] ||
  skip "NACRE_FUZZ_SECONDS does not say for how long (.ci/run: 2 for each decoder)"
compiler=$(command -v clang++ || command -v clang++-14) || skip "no clang++ (Debian: clang)"
probe=$(mktemp -d)
trap 'rm -rf "$probe"' EXIT
echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }' \
  >"$probe/probe.cpp"
"$compiler" -fsanitize=fuzzer,address,undefined "$probe/probe.cpp" -o "$probe/probe" 2>/dev/null ||
  skip "$compiler has no libFuzzer (Debian: libclang-rt-dev)"
names=()
if [ -z "${NACRE_LONG-}" ]; then
  names=(lz77 zstd rle huffman gdeflate lzw gdeflate_page codec_round_trip)
  echo "skipped: libFuzzer, containers and formats of a volume: what they need takes minutes to build: use --long"
fi
BUILD=$1 "$(dirname "$0")/fuzz.sh" "$NACRE_FUZZ_SECONDS" ${names[@]+"${names[@]}"}

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the harnesses for libFuzzer, with address and undefined-behaviour sanitizers, and runs each
# for some seconds; what is found stays in BUILD/finds and belongs into tests/fuzz/finds/NAME.
#
#   fuzz.sh [SECONDS [NAME…]]      default: 600 seconds each, all of them; BUILD=build/fuzz
#
# Without NAMEs the formats of a volume, which are small, get a third of SECONDS each.
#
# The first inputs are made by the programs in NACRE_BIN, or by some that are built next to the harnesses.
# Needs clang 14 or later with its sanitizers (Debian: clang libclang-rt-dev).
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${BUILD:-$root/build/fuzz}
seconds=${1:-600}
shift || true
compiler=$(command -v clang++ || command -v clang++-14) || {
  echo "fuzz.sh: no clang++ (Debian: clang libclang-rt-dev)" >&2
  exit 8
}
# What was compiled in one clone serves the next.
export CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=$root
cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
  "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O2 -g1 -DNDEBUG" \
  -DCMAKE_CXX_COMPILER="$compiler" -DNACRE_SANITIZE=address+undefined -DNACRE_FUZZERS=ON \
  -DNACRE_WERROR=OFF -DNACRE_CUDA=OFF -DNACRE_UNITY_BUILD=ON -DNACRE_LLD=ON >/dev/null
formats=(superblock keyring record database_file rows checkpoint segment repair_plan acl control)
format_seconds=$seconds
names=("$@")
if [ ${#names[@]} = 0 ]; then
  names=(lz77 zstd rle huffman gdeflate lzw gdeflate_page codec_round_trip container "${formats[@]}")
  format_seconds=$(((seconds + 2) / 3))
fi
targets=("${names[@]/#/libfuzzer_}")
makers=${NACRE_BIN-}
if [ -z "$makers" ]; then
  makers=$build/bin
  targets+=("${names[@]/#/fuzz_}")
fi
cmake --build "$build" --target "${targets[@]}" >"$build/build.log" || {
  tail -n 40 "$build/build.log" >&2
  exit 8
}

status=0
for name in "${names[@]}"; do
  mkdir -p "$build/inputs/$name" "$build/finds/$name"
  found=("$root/tests/fuzz/finds/$name")
  [ -d "${found[0]}" ] || found=()
  limit_s=$seconds
  if [[ " ${formats[*]} " == *" $name "* ]]; then limit_s=$format_seconds; fi
  # Sound inputs to begin with: libFuzzer sees nothing of liblz4 and libzstd that would lead it to
  # any, and does not come upon a whole GDeflate page. Those of containers need keys.
  if [ "$name" != container ]; then
    NACRE_FUZZ_INPUTS=$build/inputs/$name "$makers/fuzz_$name" >/dev/null
  fi
  # libFuzzer's own clock cannot end a program whose threads wait for each other.
  if timeout -k 10 $((limit_s + 300)) "$build/bin/libfuzzer_$name" -max_total_time="$limit_s" \
    -max_len=70000 -timeout=120 -artifact_prefix="$build/finds/$name/" -print_final_stats=1 \
    "$build/inputs/$name" "${found[@]}" >"$build/$name.log" 2>&1; then
    echo "$name: nothing found, $(sed -n 's/^stat::number_of_executed_units: *//p' "$build/$name.log") inputs"
  else
    echo "$name: FOUND something, or hung: $build/finds/$name, $build/$name.log"
    tail -n 25 "$build/$name.log"
    status=1
  fi
done
exit $status

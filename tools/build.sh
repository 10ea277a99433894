#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Configures and builds one CMake preset into build/PRESET, with as many jobs as there are cores and
# memory for. If it succeeds, it prints only the compiler's progress.
#
#   build.sh PRESET [CMAKE_OPTION…]
set -euo pipefail
[ $# -ge 1 ] || { echo "usage: $0 PRESET [CMAKE_OPTION…]" >&2; exit 2; }
preset=$1
shift
cd "$(dirname "$0")/.."

# One compiler can take 1.5 GiB.
memory_kib=$(awk '$1 == "MemTotal:" {print $2}' /proc/meminfo)
jobs=$((memory_kib / (1536 * 1024)))
[ "$jobs" -le "$(nproc)" ] || jobs=$(nproc)
[ "$jobs" -ge 1 ] || jobs=1

mkdir -p "build/$preset"
log=build/$preset/configure.log
if ! cmake --preset "$preset" "$@" >"$log" 2>&1; then
  tail -n 30 "$log" >&2
  echo "$0: cmake could not configure the preset $preset, see above" >&2
  exit 8
fi
cmake --build "build/$preset" -j "$jobs" || {
  echo "$0: the build of the preset $preset failed, see above" >&2
  exit 8
}

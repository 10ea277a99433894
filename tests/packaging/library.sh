#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The engine as other programs get it: installed into a folder, the example of docs/LIBRARY.md compiles
# with find_package and with pkg-config and does what it says; each header compiles by itself; after
# the folder is moved, all of that still holds.
#
#   library.sh BUILD_FOLDER COMPILER
. "$(dirname "$0")/../tools/command_harness.sh"
build=$1 compiler=$2
root=$(cd "$(dirname "$0")/../.." && pwd)
if grep -qE '^NACRE_SANITIZE:.*=.+' "$build/CMakeCache.txt"; then
  echo "skipped: packaging_library: a library with sanitizers is for nobody else's program"
  exit 77
fi
[ -e "$build/gpu_engine/libnacre_engine.a" ] || {
  echo "skipped: packaging_library: libnacre_engine.a is not built"
  exit 77
}

expect 0 '' cmake --install "$build" --component library --prefix "$work/first"
mv "$work/first" "$work/prefix"
check 'only the library is installed' [ ! -e "$work/prefix/bin" ]
check 'no path of this machine is installed' \
  bash -c "! grep -rIlF -e '$root' -e '$build' '$work/prefix'"

mkdir "$work/example"
"$root/tests/packaging/fenced.py" "$root/docs/LIBRARY.md" cpp >"$work/example/seal_a_text.cpp" &&
  "$root/tests/packaging/fenced.py" "$root/docs/LIBRARY.md" cmake >"$work/example/CMakeLists.txt" ||
  failed 'the example is not there'
expect 0 '' cmake -S "$work/example" -B "$work/example/build" -DCMAKE_CXX_COMPILER="$compiler" \
  -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_BUILD_TYPE=Release
expect 0 '' cmake --build "$work/example/build"
expect 0 '^54 bytes, sealed in [0-9]+, opened: well' "$work/example/build/seal_a_text"

# Another major.minor is refused, not taken in silence.
sed -i 's/nacre 0.1/nacre 0.2/' "$work/example/CMakeLists.txt"
expect 1 'compatible.*with requested version' cmake -S "$work/example" -B "$work/example/other" \
  -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$work/prefix"

export PKG_CONFIG_PATH=$(dirname "$(find "$work/prefix" -name nacre.pc)")
read -ra flags <<<"$(pkg-config --cflags --libs nacre)" || failed 'pkg-config does not know nacre'
expect 0 '' "$compiler" "$work/example/seal_a_text.cpp" -o "$work/by_hand" "${flags[@]}"
expect 0 'opened: well' "$work/by_hand"

include=$work/prefix/include/nacre
headers=$(cd "$include" && find . -name '*.h')
check 'headers are installed' [ -n "$headers" ]
for header in $headers; do
  printf '#include "%s"\n' "${header#./}" >"$work/alone.cpp"
  expect 0 '^$' "$compiler" -std=c++20 -fsyntax-only -I "$include" "$work/alone.cpp"
done
verdict

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The builds without FUSE and libmicrohttpd, and of the engine alone, take nothing that they do not need: neither
# libfuse nor, of the engine alone, RocksDB is looked for, compiled against or linked. They are configured, not built
# but for what stands in for the metrics; with NACRE_LONG they are built as well.
#
#   variants.sh SOURCES COMPILER
. "$(dirname "$0")/../tools/command_harness.sh"
sources=$1 compiler=$2
configure() { # FOLDER OPTION…: with pkg-config that knows neither, as if they were not installed
  local folder=$1 hidden=$2
  shift 2
  mkdir -p "$work/pc/$folder"
  cat >"$work/pc/$folder/pkg-config" <<END
#!/bin/sh
for word; do case \$word in $hidden) echo "\$word is not installed" >&2; exit 1 ;; esac; done
exec $(command -v pkg-config) "\$@"
END
  chmod +x "$work/pc/$folder/pkg-config"
  expect 0 '' cmake -S "$sources" -B "$work/$folder" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" \
    -DPKG_CONFIG_EXECUTABLE="$work/pc/$folder/pkg-config" -DNACRE_TESTS=OFF -DNACRE_CUDA=OFF "$@"
}
configure no_fuse 'fuse3*|liburing*|libmicrohttpd*' -DNACRE_FUSE=OFF
configure engine_only 'fuse3*|liburing*|rocksdb*' -DNACRE_ENGINE_ONLY=ON
for folder in no_fuse engine_only; do
  check "$folder has rules" [ -s "$work/$folder/build.ninja" ]
  check "$folder names neither libfuse nor liburing" bash -c "! grep -q -e libfuse3 -e '-lfuse' -e liburing '$work/$folder/build.ninja'"
  check "$folder has no mount.nacre" bash -c "! grep -q bin/mount.nacre: '$work/$folder/build.ninja'"
done
# What stands in for the metrics is compiled nowhere else.
stand_in=fs/control/CMakeFiles/nacre_fs_control.dir/no_metrics_server.cpp.o
check 'without libmicrohttpd nothing names it' bash -c "! grep -q microhttpd '$work/no_fuse/build.ninja'"
expect 0 '' cmake --build "$work/no_fuse" --target "$stand_in"
check 'what stands in for it says so' grep -q 'built without libmicrohttpd' "$work/no_fuse/$stand_in"
# Nor is what stands in for CUDA: it must define all that the backend declares.
no_cuda=gpu_engine/CMakeFiles/nacre_engine.dir/cuda/no_cuda.cpp.o
expect 0 '' cmake --build "$work/no_fuse" --target "$no_cuda"
missing=$(nm -uC "$work/no_fuse/$no_cuda" | grep 'CudaBackend::')
check "without CUDA nothing of its backend is missing: $missing" [ -z "$missing" ]
check 'the other commands are there' grep -q 'build bin/nacre:' "$work/no_fuse/build.ninja"
check 'the engine does not name RocksDB' bash -c "! grep -q rocksdb '$work/engine_only/build.ninja'"
check 'the engine alone has no commands' bash -c "! grep -q 'build bin/' '$work/engine_only/build.ninja'"
# The judge can see both.
configure whole 'nothing'
check 'the whole names libfuse, RocksDB and libmicrohttpd' bash -c \
  "cd '$work/whole' && grep -q libfuse3 build.ninja && grep -q rocksdb build.ninja && grep -q microhttpd build.ninja"

if [ -n "${NACRE_LONG-}" ]; then
  for folder in engine_only no_fuse; do
    timeout 3600 cmake --build "$work/$folder" -j 2 >"$work/build.log" 2>&1 ||
      failed "$folder: $(tail -n 20 "$work/build.log")"
  done
  expect 0 '^nacre' "$work/no_fuse/bin/nacre" version
else
  skip_part 'building both' 'it takes minutes: use --long'
fi
verdict

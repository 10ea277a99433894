#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Everything that needs a CUDA device, in one run: tests, sanitizers, bench, and a mount whose files go
# in and out through the device. The last lines are a short table of the results.
#
#   tests/measure/gpu_check.sh --bin DIR --corpus DIR [--lib DIR] [--vectors DIR] [--gib N] [--repeat N]
#                      [--engines LIST] [--seconds N] [--auto-seconds N] [--reference FILE] [PART…]
#
# --bin:       the built programs: cuda_tests, engine_tests, seeds_tests, nacre, nacre-papers, mkfs.nacre, mount.nacre,
#              fsck.nacre; for some parts also bus_ceilings and memory_mount
# --lib:       the shared libraries that this machine lacks
# --vectors:   a copy of tests/vectors, if the sources are not where the tests were built
# --gib:       how much is copied into each mount
# --repeat:    how often bench goes over the corpus
# --engines:   those of the mounts
# --reference: the library of the reference GDeflate codec, for the tests to ask
#              (tests/gpu_engine/gdeflate_reference.h says where it comes from)
#
# PART is one of these; tests, sanitize, bench and mount are the default and take some four minutes:
#   tests, sanitize, bench, mount
#   auto     what the planner makes of payloads of 64 KiB to 256 MiB, and each backend alone; the table
#            lists what is below 0.9 of the better one; eight minutes, less with a smaller
#            --auto-seconds (the time for each figure)
#   large    payloads of 2 GiB, messages of 1 GiB
#   codecs, ciphers, rsa   bench of these
#   table    one thread, all threads, cuda and auto in one run; five minutes
#   devices  what the buses carry, and payloads of 4 GiB by one, two, four and eight devices
#   seeds    bench of the papers' tables, a minute or two
#   rotate   tests/measure/rotation_speed.sh, a minute or two
#   formats  a small mount for each codec, with cuda and auto, a minute
#   crypt    a file through nacre crypt and back, with each engine, and a plain copy; a minute or two
#   scale    tests/measure/scaling.py: a mount with 1 to 16 writers and readers, at most --seconds
#
# Volumes lie in a RAM disk (/dev/shm). Exit status: 0 if everything that ran was good, else 1.
set -u
bin='' corpus='' gib=8 repeat=8 engines='cpu auto' seconds=150 auto_seconds=1.5
parts=()
while [ $# -gt 0 ]; do
  case $1 in
    --bin) bin=$(realpath "$2"); shift 2 ;;
    --corpus) corpus=$(realpath "$2"); shift 2 ;;
    --lib) LD_LIBRARY_PATH=$(realpath "$2")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}; export LD_LIBRARY_PATH; shift 2 ;;
    --vectors) NACRE_VECTORS=$(realpath "$2"); export NACRE_VECTORS; shift 2 ;;
    --gib) gib=$2; shift 2 ;;
    --repeat) repeat=$2; shift 2 ;;
    --engines) engines=$2; shift 2 ;;
    --seconds) seconds=$2; shift 2 ;;
    --auto-seconds) auto_seconds=$2; shift 2 ;;
    --reference) NACRE_GDEFLATE_REFERENCE=$(realpath "$2"); export NACRE_GDEFLATE_REFERENCE; shift 2 ;;
    -*) echo "gpu_check.sh: unknown option $1" >&2; exit 2 ;;
    *) parts+=("$1"); shift ;;
  esac
done
[ -n "$bin" ] && [ -n "$corpus" ] || { echo "gpu_check.sh: --bin and --corpus are needed" >&2; exit 2; }
[ ${#parts[@]} -gt 0 ] || parts=(tests sanitize bench mount)
command -v nvidia-smi >/dev/null || { echo "gpu_check.sh: no CUDA device here" >&2; exit 1; }
export NACRE_REQUIRE_GPU=1 NACRE_CORPUS=$corpus PATH=$bin:$PATH
# Tests that sanitizers leave out: long ones, those that search all memory, and those that make an engine for
# every call that can fail.
unsanitized='-*many_batches*:*nearly_as_small*:*past_4_gib*:*many_callers*:*measures*'
unsanitized+=':*whatever_fails*:*whatever_call_fails*:*without_its_device*'
unsanitized+=':*queue_is_full*:*within_done*:*wipes_memory*:*forgets_keys_in*'
# Every codec that a device has, at a level that it codes; zstd is decoded alone.
device_codecs=none,lz77,gdeflate-1,huffman,lzw,rle,zstd
work=$(mktemp -d /dev/shm/nacre-gpu.XXXXXX)
export XDG_CACHE_HOME=$work/cache XDG_CONFIG_HOME=$work/config
table=()
status=0
note() { table+=("$(printf '%-40s %s' "$1" "$2")"); }
verdict() {  # NAME STATUS
  if [ "$2" = 0 ]; then note "$1" good; else note "$1" "FAILED ($2)"; status=1; fi
}
clean_up() {
  mountpoint -q "$work/mnt" && { nacre umount "$work/mnt" || umount -l "$work/mnt"; }
  rm -rf "$work"
}
trap clean_up EXIT
wants() { [[ " ${parts[*]} " == *" $1 "* ]]; }

nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
if wants tests; then
  cuda_tests --gtest_brief=1 >"$work/tests.log" 2>&1
  code=$?
  grep -v NACRE_TEST_SEED "$work/tests.log" | tail -40
  verdict 'gpu tests' $code
  note 'the reference GDeflate codec' "${NACRE_GDEFLATE_REFERENCE:-not asked}"
  if command -v engine_tests >/dev/null; then
    "$(dirname "$0")/../gpu_engine/engine_on_devices.sh" engine_tests >"$work/tests.log" 2>&1
    code=$?
    grep -v NACRE_TEST_SEED "$work/tests.log" | tail -20
    verdict "the cpu's tests on devices" $code
  fi
  if command -v seeds_tests >/dev/null; then
    seeds_tests --gtest_brief=1 --gtest_filter='SeedDevice*' >"$work/tests.log" 2>&1
    code=$?
    tail -20 "$work/tests.log"
    verdict "the papers' kernels" $code
  fi
fi
if wants sanitize; then
  # All side by side, with a small part of the random tests: each access costs a hundredfold, and
  # racecheck's share is dearest where lookups in shared memory are most of the work.
  sanitized=()
  pids=()
  for tool in memcheck racecheck; do
    for suite in CudaLz4 CudaGdeflateEncode CudaGdeflateDecode CudaLzw CudaRle CudaCipherModes CudaDes \
      CudaCipherSuites CudaHmac CudaCrc CudaRsa RsaSlot CudaPrimes CudaEngine CudaShortMessages CudaAuto; do
      # Their kernels are the engine's: racecheck has seen them.
      case "$tool $suite" in
        'racecheck CudaAuto' | 'racecheck CudaShortMessages') continue ;;
      esac
      sanitized+=("$tool $suite")
      part=20 without=$unsanitized
      case "$tool $suite" in
        'memcheck CudaRsa' | 'memcheck CudaEngine') part=400 ;;
        'racecheck CudaCipherModes') part=60 ;;
        'racecheck CudaDes' | 'racecheck CudaCipherSuites') part=400 ;;
        'racecheck CudaEngine') part=400 without=$unsanitized:*key_for_each*:*steady_state* ;;
        'racecheck CudaRsa') part=400 without=$unsanitized:*wraps*:*judges*:*generate* ;;
      esac
      NACRE_TEST_PART=$part timeout 280 compute-sanitizer --tool $tool --error-exitcode 9 \
        --print-limit 5 cuda_tests --gtest_filter="$suite.*:$without" \
        >"$work/$tool-$suite.log" 2>&1 &
      pids+=($!)
    done
  done
  if command -v seeds_tests >/dev/null; then
    for tool in memcheck racecheck; do
      sanitized+=("$tool SeedDevice")
      timeout 280 compute-sanitizer --tool $tool --error-exitcode 9 --print-limit 5 seeds_tests \
        --gtest_filter='SeedDevice*' >"$work/$tool-SeedDevice.log" 2>&1 &
      pids+=($!)
    done
  fi
  for i in "${!sanitized[@]}"; do
    wait "${pids[i]}"
    code=$?
    grep -E 'OK|FAILED|RUN|=====' "$work/${sanitized[i]/ /-}.log" | grep -v '\[ RUN' | tail -12 | cut -c1-160
    [ $code = 0 ] || tail -8 "$work/${sanitized[i]/ /-}.log" | cut -c1-160
    verdict "compute-sanitizer ${sanitized[i]}" $code
  done
fi
bench() {  # WHAT REPEAT
  nacre bench "$1" "$corpus" --sample 80M --repeat "$2" --threads "$(nproc)" --seconds 0.3 \
    --json "$work/$1.json"
  verdict "bench $1" $?
}
if wants bench; then
  # One thread is slow, so the processor's column for one thread comes from a sample.
  nacre bench seal "$corpus" --engine cpu --threads 1 --seconds 0.2
  verdict 'bench seal, one thread' $?
  for what in seal checksum; do
    bench $what "$repeat"
  done
fi
if wants auto; then
  # Figures below 0.9 are listed.
  nacre bench all "$corpus" --sample 256M --threads "$(nproc)" --seconds "$auto_seconds" --json "$work/auto.json" \
    --only "$device_codecs,aes-256-gcm,aes-256-ctr,aes-256-cbc,aes-256-ofb,aes-256-ctr+hmac,des-ede3-ctr,des-ede3-ofb,des-cbc,crc32" \
    --payload 64K,1M,4M,8M,16M,64M,256M >"$work/auto.log"
  code=$?
  # A row of an operation begins in the first column.
  awk '/^[a-z]/ { operation = $0; sub(/  .*/, "", operation) }
    / auto  / { for (i = 1; i <= NF; ++i) if ($i == "auto") rate = $(i + 1) }
    / cpu  / { for (i = 1; i <= NF; ++i) if ($i == "cpu") cpu = $(i + 1) }
    / cuda  / { for (i = 1; i <= NF; ++i) if ($i == "cuda") cuda = $(i + 1) }
    /of the better one/ { share = substr($1, 2) + 0; total++; if (share < 0.9) { slower++; flag = "  <<<" } else flag = ""
      printf "%-40s cpu %8s cuda %8s auto %8s  %.2f%s\n", operation, cpu, cuda, rate, share, flag }
    END { printf "auto: %d of %d figures more than 10 %% below the better backend\n", slower, total }' "$work/auto.log" |
    tee "$work/auto.table"
  while read -r line; do note 'auto, below 0.9' "${line%<<<}"; done < <(grep '<<<$' "$work/auto.table")
  note 'auto' "$(tail -1 "$work/auto.table")"
  verdict 'bench --payload' $code
  cat "$XDG_CACHE_HOME"/nacre/engine-costs
fi
if wants large; then
  # The cpu with one thread; with all of them and the device; then messages of 1 GiB, on the device.
  nacre bench seal "$corpus" --engine cpu --sample 256M --threads 1 --seconds 0.1 --only lz77 --payload 256M &&
    nacre bench seal "$corpus" --sample 256M --threads "$(nproc)" --seconds 0.2 --only lz77 --payload 2G
  verdict 'payloads of 2 GiB' $?
  single=(--engine cuda --sample 256M --threads "$(nproc)" --seconds 0.1 --chunk-size 1G --payload 1G)
  nacre bench ciphers "$corpus" "${single[@]}" --only aes-256-gcm &&
    nacre bench checksum "$corpus" "${single[@]}" --only crc32
  verdict 'messages of 1 GiB' $?
fi
if wants table; then
  nacre bench all "$corpus" --sample 80M --repeat "$repeat" --threads "1,$(nproc)" --seconds 0.3 --json "${OUT:-$work}/table.json" \
    --only "$device_codecs,aes-128-ctr,aes-256-ctr,aes-256-gcm,aes-256-cbc,aes-256-ctr+hmac,crc32"
  verdict 'bench, one thread and all' $?
fi
if wants devices; then
  device_count=$(nvidia-smi -L | wc -l)
  # The host's limit, then what the engine makes of it.
  bus_ceilings
  verdict 'what the buses carry' $?
  for count in 1 2 4 8; do
    [ "$count" -le "$device_count" ] || break
    echo "devices: $count"
    CUDA_VISIBLE_DEVICES=$(seq -s, 0 $((count - 1))) nacre bench seal "$corpus" --engine cuda --sample 256M \
      --threads "$(nproc)" --seconds 0.2 --only lz77,gdeflate-1 --payload 4G
    verdict "payloads of 4 GiB, devices: $count" $?
  done
fi
if wants rsa; then
  nacre bench rsa --threads "1,$(nproc)" --seconds 0.3 --json "${OUT:-$work}/rsa.json"
  verdict 'bench rsa' $?
  # On sixteen cores this is 16,384 numbers, enough for a device.
  nacre bench rsa --engine cuda --threads "$(nproc)" --repeat 64 --seconds 0.1
  verdict 'bench rsa, many numbers' $?
fi
# Thorough levels and DES take seconds for each 100 MiB.
if wants codecs; then bench codecs 2; fi
if wants ciphers; then bench ciphers 1; fi

# Runs COMMAND and notes the bytes a second of its wall time, and the processor time of the daemon.
ticks_of() { awk '{print $14, $15}' "/proc/$1/stat"; }
timed() {  # NAME BYTES COMMAND…
  local name=$1 bytes=$2 user system user_end system_end begin code
  shift 2
  read -r user system < <(ticks_of "$daemon")
  begin=$(date +%s.%N)
  "$@"
  code=$?
  read -r user_end system_end < <(ticks_of "$daemon")
  note "$name" "$(awk -v t="$bytes" -v b="$begin" -v e="$(date +%s.%N)" -v u=$((user_end - user)) \
    -v s=$((system_end - system)) \
    'BEGIN{printf "%.2f GB/s, daemon %.1f s user, %.1f s system", t/(e-b)/1e9, u/100, s/100}')"
  [ $code = 0 ] || verdict "$name" $code
}
mount_volume() {  # ENGINE
  mount.nacre --passphrase-file "$work/pw" --engine "$1" "$volume" "$work/mnt"
  local code=$?
  verdict "mount, $1" $code
  daemon=$(pgrep -f "mount.nacre.*$volume" | head -1)
  return $code
}
make_volume() {  # [OPTION…] of mkfs
  mkfs.nacre --passphrase-file "$work/pw" --kdf-memory 8192 --kdf-time 1 "$@" "$volume" >/dev/null
}
copy_in() {  # JOBS
  mkdir "$work/mnt/$1"
  find "$work/in" -mindepth 1 -maxdepth 1 -printf '%f\n' |
    xargs -P "$1" -I{} cp -r "$work/in/{}" "$work/mnt/$1/{}" && nacre sync "$work/mnt"
}
read_out() {  # JOBS
  find "$work/mnt/$1" -mindepth 1 -maxdepth 1 | xargs -P "$1" -I{} sh -c 'cat {}/* >/dev/null'
}
check_volume() {  # ENGINE NAME BYTES
  local begin code
  begin=$(date +%s.%N)
  fsck.nacre --deep --engine "$1" --passphrase-file "$work/pw" "$volume" >"$work/fsck.log" 2>&1
  code=$?
  [ $code = 0 ] || tail -5 "$work/fsck.log"
  note "$2" "$(awk -v t="$3" -v b="$begin" -v e="$(date +%s.%N)" \
    'BEGIN{printf "%.2f s, %.2f GB/s", e-b, t/(e-b)/1e9}')"
  verdict "$2" $code
}
if wants seeds; then
  nacre-papers "$corpus" --seconds 0.02 --threads "$(nproc)" --json "$work/seeds.json" \
    --markdown "${OUT:-$work}/SEEDS.md" --figures "${OUT:-$work}/seeds" >"$work/seeds.log" 2>&1
  code=$?
  tail -5 "$work/seeds.log"
  verdict 'nacre-papers' $code
fi
echo 'a passphrase of the check' >"$work/pw"
mkdir "$work/in" "$work/mnt"
if wants formats; then
  cp -r "$corpus" "$work/in/1"
  size=$(du -sb "$corpus" | cut -f1)
  volume=$work/volume
  for format in 'gdeflate --level 1' gdeflate huffman lzw rle zstd 'zstd --level 6' auto 'auto --level 1'; do
    for engine in cuda auto; do
      # shellcheck disable=SC2086
      make_volume --codec $format
      mount_volume "$engine" || continue
      timed "$format, $engine: write" "$size" copy_in 1
      nacre stats "$work/mnt" | grep -A1 engine
      note "$format, $engine: stored" "$(nacre stats "$work/mnt" | sed -n 's/^ *stored  *//p')"
      nacre umount "$work/mnt" && mount_volume "$engine" || continue
      timed "$format, $engine: cold read" "$size" read_out 1
      diff -r "$work/in" "$work/mnt/1"
      verdict "$format, $engine: same bytes" $?
      nacre umount "$work/mnt"
      check_volume cpu "$format, $engine: fsck --deep, cpu" "$size"
      check_volume cuda "$format, $engine: fsck --deep, cuda" "$size"
      rm -rf "$volume"
    done
  done
  rm -rf "$work/in/1"
fi
if wants mount; then
  size=$(du -sb "$corpus" | cut -f1)
  copies=$((gib * 1073741824 / size))
  [ "$copies" -gt 0 ] || copies=1
  total=$((copies * size))
  # A virtual machine's memory is slow when it is used for the first time: the first engine would
  # pay for the others.
  head -c $((3 * total)) /dev/zero >"$work/fill"
  rm "$work/fill"
  for i in $(seq "$copies"); do cp -r "$corpus" "$work/in/$i"; done
  volume=$work/volume
  make_volume
  for engine in cpu cuda; do check_volume $engine "fsck --deep, $engine, an empty volume" 0; done
  rm -rf "$volume"
  for engine in $engines; do
    make_volume
    verdict "mkfs" $?
    mount_volume "$engine" || continue
    for jobs in 1 8; do timed "write $jobs jobs, $engine" $total copy_in $jobs; done
    nacre stats "$work/mnt" | grep -E -A1 'engine|stored|live'
    nacre umount "$work/mnt" && mount_volume "$engine" || continue
    for jobs in 1 8; do
      timed "cold read $jobs jobs, $engine" $total read_out $jobs
      diff -r "$work/in" "$work/mnt/$jobs"
      verdict "same bytes $jobs jobs, $engine" $?
    done
    nacre umount "$work/mnt"
    for checker in cpu cuda; do
      check_volume $checker "fsck --deep, $checker, written by $engine" $((2 * total))
    done
    rm -rf "$volume"
  done
fi
# NAME BYTES COMMAND…: notes the bytes a second of the faster of two, and processor time of that one.
timed_file() {
  local name=$1 bytes=$2
  shift 2
  for _ in 1 2; do
    rm -f "$work/file.out"
    bash -c 'TIMEFORMAT="%R %U %S"; time "$@"' _ "$@" 2>>"$work/file.times" || verdict "$name" 1
  done
  note "$name" "$(sort -n "$work/file.times" | grep -E '^[0-9.]+ [0-9.]+ [0-9.]+$' |
    awk -v t="$bytes" 'NR == 1 { printf "%.2f GB/s, %.1f s user, %.1f s system", t / $1 / 1e9, $2, $3 }')"
  printf '%s\n' "${table[-1]}"
  rm "$work/file.times"
}
if wants crypt; then
  crypt_copies=$((4294967296 / $(du -sb "$corpus" | cut -f1) + 1))
  for _ in $(seq "$crypt_copies"); do tar c --sort=name -C "$corpus" .; done >"$work/file"
  size=$(stat -c %s "$work/file")
  nacre crypt keygen --no-passphrase "$work/key" >/dev/null
  timed_file 'crypt: cp in the RAM disk' "$size" cp "$work/file" "$work/file.out"
  for codec in none lz77 'gdeflate --level 1'; do
    for engine in cpu cuda auto; do
      # shellcheck disable=SC2086
      timed_file "crypt encrypt, $codec, $engine" "$size" nacre crypt encrypt --engine $engine --codec $codec \
        --recipient "$work/key.pub.pem" "$work/file" -o "$work/file.out"
      mv "$work/file.out" "$work/file.ncr"
      timed_file "crypt decrypt, $codec, $engine" "$size" nacre crypt decrypt --engine $engine \
        --identity "$work/key.pem" "$work/file.ncr" -o "$work/file.out"
      cmp "$work/file" "$work/file.out"
      verdict "crypt, $codec, $engine: same bytes" $?
    done
  done
  rm -f "$work"/file{,.out,.ncr}
fi
if wants rotate; then
  "$(dirname "$0")/../measure/rotation_speed.sh" --bin "$bin" --corpus "$corpus" --folder "$work" --gib "$gib" \
    --engines "$engines" | tee "$work/rotation.log"
  code=${PIPESTATUS[0]}
  while read -r line; do note 'rotation of keys' "$line"; done < <(grep ^median "$work/rotation.log")
  verdict 'rotation of keys' "$code"
fi
if wants scale; then
  python3 "$(dirname "$0")/../measure/scaling.py" --bin "$bin" --corpus "$corpus" --folder "$work" --engines "$engines" \
    --seconds "$seconds" | tee "${OUT:-$work}/scaling.log"
  verdict 'scaling' "${PIPESTATUS[0]}"
fi
printf '\n'
printf '%s\n' "${table[@]}"
exit $status

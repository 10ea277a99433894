#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tools/quickstart.sh with programs that are built already: a first and a second run, a mount point
# that somebody else uses, a daemon that was killed, and what it refuses before it builds anything.
. "$(dirname "$0")/command_harness.sh"
needs_mounts
cheap_programs "$work/programs"
NACRE_BIN=$work/programs
script=$(cd "$(dirname "$0")/../.." && pwd)/tools/quickstart.sh
quickstart() { expect "$1" "$2" "$script" --bin "$NACRE_BIN" "${secret[@]}" "${@:3}"; }
mounts_at() { grep -ac " $1 " /proc/self/mountinfo; }

# --- Neither folder is there yet; one has a space in its name.
v=$work/folder/volume m="$work/my files"
quickstart 0 "Made a volume.*Mounted: $v at $m.Unmount: $NACRE_BIN/nacre umount .*my\\\\ files" "$v" "$m"
echo first >"$m/file" || failed "not usable"
# Run again it just mounts: when it is mounted, it says so, by whatever name it is called.
quickstart 0 "^Already mounted: $v at $m.Unmount: .*my\\\\ files" "$v" "$m"
cd "$work" || exit 1
quickstart 0 "^Already mounted: $v" folder/../folder/volume "my files/"
[ "$(grep -ac "$work" /proc/self/mountinfo)" = 1 ] || failed "a second mount"
bash -c "$("$script" --bin "$NACRE_BIN" "${secret[@]}" "$v" "$m" | sed -n 's/^Unmount: //p')" ||
  failed "the command that it gives does not unmount"
[ -z "$(daemons)" ] || failed "it is not unmounted"
m=$work/mnt
quickstart 0 "^Mounted: $v at $m" "$v" "$m"
[ "$(cat "$m/file")" = first ] || failed "the file is gone"

# --- Another volume's mount point is not this one's.
quickstart 32 "in use: another volume .$v. is mounted there" "$work/second" "$m"
[ ! -e "$work/second" ] || failed "a volume was made though it could not be mounted"
# A volume that is mounted elsewhere: mount.nacre says where.
quickstart 32 "$v: already mounted at $m" "$v" "$work/elsewhere"
# A mount with a name of its own choice is another one as far as the mount table tells.
expect 0 '^$' nacre umount "$m"
# A relative path at mount.nacre is the same volume.
expect 0 '' mount.nacre "${secret[@]}" folder/volume "$m"
quickstart 0 "^Already mounted: $v" "$v" "$m"

# --- The daemon was killed: explained, taken away, mounted again.
kill -9 $(daemons)
check "the killed daemon stays" wait_for_daemons
quickstart 0 "daemon .*$v at $m has ended.*Mounted: $v at $m" "$v" "$m"
[ "$(cat "$m/file")" = first ] || failed "the file is gone after a kill"
[ "$(mounts_at "$m")" = 1 ] || failed "the dead mount is still there"
# The same when another volume is wanted there.
kill -9 $(daemons)
check "the killed daemon stays" wait_for_daemons
quickstart 0 "daemon .*$v at $m has ended.*Mounted: $work/second at $m" "$work/second" "$m"
expect 0 '^$' nacre umount "$m"

# --- A tree in which nothing is built yet: packages, the build, and the mount, each said. In place of
# the compiler, programs that are there.
tree=$work/tree
mkdir -p "$tree"/{cmake,fs,gpu_engine,metadata,tools}
touch "$tree"/CMakeLists.txt "$tree"/CMakePresets.json
cp "$script" "$tree/tools"
printf '#!/bin/sh\n' >"$tree/tools/install_dependencies.sh"
cat >"$tree/tools/build.sh" <<EOF
#!/bin/sh
echo "\$@" >>"$work/builds"
mkdir -p "$tree/build/release"
ln -s "$NACRE_BIN" "$tree/build/release/bin"
EOF
chmod +x "$tree"/tools/*.sh
expect 0 '\[1/2\] Installing.*\[2/2\] Building: some [0-9]+ minutes.*Built: ' \
  "$tree/tools/quickstart.sh" --build-only --no-cuda
expect 0 '^Built: ' "$tree/tools/quickstart.sh" --build-only --no-cuda
[ "$(cat "$work/builds")" = "release -DNACRE_TESTS=OFF -DNACRE_WERROR=OFF -DNACRE_CUDA=OFF" ] ||
  failed "it was not built once: $(cat "$work/builds")"
rm -r "$tree/build"
expect 0 "\[3/3\] Mounting.*Mounted: $work/third at $m" \
  "$tree/tools/quickstart.sh" --no-cuda "${secret[@]}" "$work/third" "$m"
expect 0 '^$' nacre umount "$m"

# --- What it refuses, before anything is built.
expect 2 usage "$script"
expect 2 usage "$script" "$v"
expect 2 usage "$script" "$v" "$m" --nonsense
expect 2 usage "$script" --passphrase-file
expect 2 usage "$script" --build-only "$v" "$m"
expect 2 'cannot read the passphrase file .*nowhere' "$script" "$v" "$m" --passphrase-file "$work/nowhere"
expect 2 'not a plain file' "$script" "$v" "$m" --passphrase-file /dev/null
expect 2 'no mount.nacre' "$script" "$v" "$m" --bin "$work"
expect 2 'no terminal' "$script" --bin "$NACRE_BIN" "$v" "$m"
expect 16 'wrong key' "$script" --bin "$NACRE_BIN" --passphrase-file "$work/wrong" "$v" "$m"
mkdir "$work/full"
echo precious >"$work/full/file"
quickstart 2 'holds files but is no Nacre volume' "$work/full" "$m"
quickstart 8 "$work/full is not empty" "$v" "$work/full"
quickstart 8 'file is not a directory' "$v" "$work/full/file"
quickstart 8 'file is not a directory' "$work/full/file" "$m"
quickstart 8 'cannot make these directories' "$v" /proc/nacre-test
quickstart 32 'in use: a file system of type proc' "$v" /proc

verdict

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# cmake --install into a folder: the programs run from there, helpers have their names under sbin,
# manual, completions, units and the desktop's files are there, units and desktop file hold, and the
# same with DESTDIR.
#
#   install.sh BUILD_FOLDER
. "$(dirname "$0")/../tools/command_harness.sh"
build=$1
if grep -qE '^NACRE_SANITIZE:.*=.+' "$build/CMakeCache.txt"; then
  echo "skipped: packaging_install: programs with sanitizers are not installed"
  exit 77
fi
[ -e "$build/packaging/manual.stamp" ] || {
  echo "skipped: packaging_install: the manual is not built"
  exit 77
}
expect 0 '' cmake --install "$build" --component nacre --prefix "$work/prefix"
for program in nacre mkfs.nacre mount.nacre fsck.nacre; do
  expect 0 '^nacre [0-9.]+.$' "$work/prefix/bin/$program" --version
done
for helper in mkfs.nacre mount.nacre fsck.nacre; do
  check "sbin/$helper leads to bin/$helper" \
    [ "$work/prefix/sbin/$helper" -ef "$work/prefix/bin/$helper" ]
  check "sbin/$helper may be moved" [ "$(readlink "$work/prefix/sbin/$helper")" = "../bin/$helper" ]
done
share=$work/prefix/share
for file in man/man1/nacre.1.gz man/man1/nacre-key.1.gz man/man5/nacre-format.5.gz \
  man/man8/{mkfs,mount,fsck}.nacre.8.gz bash-completion/completions/mount.nacre \
  zsh/vendor-completions/_nacre fish/vendor_completions.d/nacre.fish; do
  check "share/$file is installed" [ -s "$share/$file" ]
done
for file in FORMAT.md SECURITY.md changelog.gz README.md copyright comparison.svg examples/fstab; do
  check "the document $file is installed" compgen -G "$share/doc/nacre*/$file" >/dev/null
done
check 'nothing of the library is installed' [ ! -e "$work/prefix/include" ]
check 'all is readable by everybody' [ -z "$(find "$work/prefix" ! -type l ! -perm -444)" ]

# The graphical application on the desktop. A build without libmicrohttpd has none.
user_units=$work/prefix/lib/systemd/user
desktop=$share/applications/nacre.desktop
icon=$share/icons/hicolor/scalable/apps/nacre.svg
has_web=
"$work/prefix/bin/nacre" web --help >/dev/null 2>&1 && has_web=yes
if [ -n "$has_web" ]; then
  for file in "$desktop" "$icon" "$user_units/nacre-web.service" "$user_units/nacre-mount@.service"; do
    check "${file#"$work/"} is installed" [ -s "$file" ]
  done
  check 'the desktop file names the icon' grep -qx "Icon=$(basename "$icon" .svg)" "$desktop"
  check 'the icon is a picture' grep -q '^<svg ' "$icon"
  if command -v desktop-file-validate >/dev/null; then
    verdict_of_desktop=$(desktop-file-validate "$desktop" 2>&1)
    check "desktop-file-validate takes the desktop file: $verdict_of_desktop" [ -z "$verdict_of_desktop" ]
  else
    skip_part 'the desktop file' 'there is no desktop-file-validate'
  fi
else
  skip_part 'the graphical application on the desktop' 'it is not built'
fi

if command -v systemd-analyze >/dev/null; then
  # By their instances' names; what they run must be found, so it is made to be.
  units=$work/prefix/lib/systemd/system
  cp "$units/nacre-scrub@.service" "$work/nacre-scrub@mnt-volume.service"
  cp "$units/nacre-scrub@.timer" "$work/nacre-scrub@mnt-volume.timer"
  cp "$share"/doc/nacre*/examples/nacre-volume.mount "$work/mnt-volume.mount"
  cp "$share"/doc/nacre*/examples/nacre-volume.automount "$work/mnt-volume.automount"
  sed -i "s:^ExecStart=nacre:ExecStart=$work/prefix/bin/nacre:" "$work/nacre-scrub@mnt-volume.service"
  verified=$(systemd-analyze verify --man=no "$work/nacre-scrub@mnt-volume.service" \
    "$work/nacre-scrub@mnt-volume.timer" "$work/mnt-volume.mount" "$work/mnt-volume.automount" 2>&1 |
    grep -F -e nacre -e mnt-volume)
  check "systemd takes the units: $verified" [ -z "$verified" ]
  if [ -n "$has_web" ]; then
    # Where a unit's program is missing, systemd says so; the search path of a test has none.
    sed "s:^ExecStart=nacre:ExecStart=$work/prefix/bin/nacre:" "$user_units/nacre-web.service" >"$work/nacre-web.service"
    # (mkdir is in the search path of every system.)
    sed -E "s:^(Exec[A-Za-z]+)=(nacre|mount.nacre) :\1=$work/prefix/bin/\2 :" "$user_units/nacre-mount@.service" \
      >"$work/nacre-mount@vault-1234abcd.service"
    verified=$(XDG_RUNTIME_DIR=$work systemd-analyze --user verify --man=no "$work/nacre-web.service" \
      "$work/nacre-mount@vault-1234abcd.service" 2>&1 | grep -F nacre)
    check "systemd takes the user units: $verified" [ -z "$verified" ]
  fi
  # 0 is closed, 10 open (which a unit without a sandbox nearly is).
  if systemd-analyze security --help 2>/dev/null | grep -q -- --offline; then
    exposure=$(systemd-analyze security --offline=true --no-pager "$work/nacre-scrub@mnt-volume.service" 2>&1 |
      sed -n 's/.*Overall exposure level for .*: \([0-9.]*\) .*/\1/p')
    check "the scrub's unit has a sandbox: exposure ${exposure:-not told}" \
      awk -v "exposure=$exposure" 'BEGIN { exit !(exposure != "" && exposure < 3) }'
  else
    skip_part 'the sandbox of the units' 'this systemd-analyze does not judge files'
  fi
  for line in NoNewPrivileges=yes RestrictSUIDSGID=yes SystemCallArchitectures=native; do
    check "the mount's unit has $line" grep -qx "$line" "$work/mnt-volume.mount"
  done
  check "the mount's unit has nosuid,nodev" grep -q '^Options=.*nosuid,nodev' "$work/mnt-volume.mount"
  check "others may enter what the mount's unit mounts" grep -q '^Options=.*[,=]allow_other' "$work/mnt-volume.mount"
else
  skip_part units 'there is no systemd-analyze'
fi
if command -v findmnt >/dev/null; then
  # Two lines at a time name one mount point; each alone must be a line that mount(8) reads.
  while read -r line; do
    printf '%s\n' "$line" >"$work/fstab"
    seen=$(findmnt --fstab --tab-file "$work/fstab" -rn -o FSTYPE,TARGET)
    check "a line of fstab has nosuid,nodev: $line" grep -q '[, ]nosuid,nodev[, ]' <<<"$line"
    # Root's mounts are for others, too; a user's are not.
    check "a line of fstab has allow_other: $line" grep -qE '[, ](allow_other|user)[, ]' <<<"$line"
    check "a line of fstab: $line" grep -q '^nacre /' <<<"$seen"
  done < <(grep -v -e '^#' -e '^$' "$share"/doc/nacre*/examples/fstab)
fi

# Packagers install with DESTDIR, and under /usr.
expect 0 '' env DESTDIR="$work/root" cmake --install "$build" --component nacre --prefix /usr
check 'DESTDIR is heeded' [ -x "$work/root/usr/bin/nacre" ]
check 'links under DESTDIR' [ "$work/root/usr/sbin/mount.nacre" -ef "$work/root/usr/bin/mount.nacre" ]
verdict

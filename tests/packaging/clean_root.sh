#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The packages on a clean Debian of this one's release, a debootstrap folder: install, mount through /etc/fstab as
# root and as an ordinary user, use, upgrade beside a mounted volume, remove, purge, install again. The volume is
# left alone by all of that. And what lintian says of the packages.
#
#   clean_root.sh BUILD_FOLDER
#
# Only with NACRE_LONG or NACRE_CLEAN_ROOT set, and as root: it downloads a system, from NACRE_DEBIAN_MIRROR, unless
# NACRE_DEBOOTSTRAP names a folder that debootstrap has made before, which is copied. lintian runs always.
. "$(dirname "$0")/../tools/command_harness.sh"
build=$1
if grep -qE '^NACRE_SANITIZE:.*=.+' "$build/CMakeCache.txt"; then
  echo "skipped: packaging_clean_root: no packages are made of programs with sanitizers"
  exit 77
fi
[ -e "$build/packaging/manual.stamp" ] || { echo "skipped: packaging_clean_root: the manual is not built"; exit 77; }

# Two versions of the same: an upgrade from the first to the second.
for release in 1 2; do
  mkdir -p "$work/debs/$release"
  (cd "$build" && cpack -G DEB -B "$work/debs/$release" -D CPACK_DEBIAN_PACKAGE_RELEASE=$release) \
    >"$work/cpack.log" 2>&1 || failed "cpack: $(tail -n 5 "$work/cpack.log")"
  [ $release = 2 ] || [ -n "${NACRE_LONG-}${NACRE_CLEAN_ROOT-}" ] || break
done
deb=$(ls "$work"/debs/1/nacre*.deb)
dev=$(ls "$work"/debs/1/libnacre*-dev*.deb)
check 'there are two packages' [ -s "$deb" -a -s "$dev" ]
check 'its libraries are in Depends' grep -q librocksdb <<<"$(dpkg-deb -f "$deb" Depends)"
check 'no script runs when it is installed or removed' \
  bash -c "! dpkg-deb --ctrl-tarfile '$deb' | tar t | grep -qE '(pre|post)(inst|rm)'"
if command -v lintian >/dev/null; then
  errors=$(lintian --allow-root --no-tag-display-limit "$deb" "$dev" 2>&1 | grep '^E:')
  check "lintian: $errors" [ -z "$errors" ]
else
  skip_part lintian 'it is not installed'
fi

[ -n "${NACRE_LONG-}${NACRE_CLEAN_ROOT-}" ] || {
  skip_part 'the clean root' 'it downloads a system: set NACRE_CLEAN_ROOT=1 or use --long'
  verdict
}
is_root || { skip_part 'the clean root' 'only root may make one'; verdict; }
command -v debootstrap >/dev/null || [ -n "${NACRE_DEBOOTSTRAP-}" ] ||
  { skip_part 'the clean root' 'there is no debootstrap'; verdict; }
[ -e /dev/fuse ] || { skip_part 'the clean root' 'there is no /dev/fuse'; verdict; }

root=$work/root
if [ -n "${NACRE_DEBOOTSTRAP-}" ]; then
  cp -a "$NACRE_DEBOOTSTRAP" "$root"
else
  codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
  debootstrap --variant=minbase "$codename" "$root" "${NACRE_DEBIAN_MIRROR:-http://deb.debian.org/debian}" \
    >"$work/debootstrap.log" 2>&1 || {
    skip_part 'the clean root' "debootstrap cannot make one: $(tail -n 1 "$work/debootstrap.log")"
    verdict
  }
fi
cp /etc/resolv.conf "$root/etc/resolv.conf"
[ -e "$root/dev/fuse" ] || mknod -m 666 "$root/dev/fuse" c 10 229
[ -e "$root/etc/mtab" ] || ln -s ../proc/self/mounts "$root/etc/mtab" # as booting makes it
mount -t proc proc "$root/proc"
cp -r "$work/debs" "$root/debs"
# Commands, since what runs them has a limit of time.
mkdir "$work/bin"
cat >"$work/bin/within" <<END
#!/bin/sh
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \\
  chroot '$root' "\$@"
END
cat >"$work/bin/apt_within" <<'END'
#!/bin/sh
exec within apt-get -q -y -o Dpkg::Use-Pty=0 --no-install-recommends "$@"
END
chmod +x "$work/bin/within" "$work/bin/apt_within"
PATH=$work/bin:$PATH
apt_within update >"$work/apt.log" 2>&1 || {
  skip_part 'the clean root' "apt-get update: $(tail -n 1 "$work/apt.log")"
  verdict
}
name=$(dpkg-deb -f "$deb" Package)
release() { echo "/debs/$1/$(basename "$deb" | sed "s/-1_/-$1_/")"; }
expect_long() { # as expect, but a download may take its time
  local words=$1 output got=0
  shift
  output=$(timeout 900 "$@" </dev/null 2>&1) || got=$?
  { [ $got = 0 ] && grep -qEz -- "$words" <<<"$output"; } || failed "exit $got: $*: $(tail -n 15 <<<"$output")"
}

expect_long "Setting up $name" apt_within install "$(release 1)"
expect 0 '^nacre [0-9.]+.$' within nacre version
expect 0 'nacre' within bash -c 'dpkg -L nacre* | grep -c man/ >/dev/null; dpkg-query -W "nacre*"'
check 'every library is found' bash -c \
  "! env -i PATH=/usr/sbin:/usr/bin chroot '$root' ldd /usr/bin/{nacre,mkfs.nacre,mount.nacre,fsck.nacre} | grep 'not found'"

# --- root's, through /etc/fstab ---
within bash -c 'mkdir -p /etc/nacre /srv /mnt/volume && umask 077 && echo "correct horse" >/etc/nacre/volume.pass'
expect 0 'Made a volume' within mkfs.nacre --passphrase-file /etc/nacre/volume.pass "${cheap[@]}" /srv/volume
options=noauto,nofail,_netdev,x-systemd.automount,x-systemd.idle-timeout=10min,X-mount.mkdir
echo "/srv/volume /mnt/volume nacre $options,passphrase-file=/etc/nacre/volume.pass 0 0" >>"$root/etc/fstab"
expect 0 '' within mount /mnt/volume
expect 0 'fuse.nacre' within findmnt -n -o FSTYPE /mnt/volume
expect 0 '' within bash -c 'cp -r /usr/share/doc/base-files /mnt/volume/ && sync && nacre sync /mnt/volume'
expect 0 'health +ok' within nacre stats /mnt/volume
expect 0 '' within umount /mnt/volume
sed -i 's/noauto,//' "$root/etc/fstab"
expect 0 '' within mount -a
expect 0 '' within mount -a
check 'a second mount -a mounts nothing anew' [ "$(within findmnt -rn -o TARGET | grep -c /mnt/volume)" = 1 ]
expect 0 '' within nacre umount /mnt/volume
for options in defaults rw,defaults ro,noexec,nosuid,nodev user,nofail,auto; do
  expect 0 '' within mount -v -t nacre -o "$options,passphrase-file=/etc/nacre/volume.pass" /srv/volume /mnt/volume
  expect 0 '' within nacre umount /mnt/volume
done
expect 0 '' within mount.nacre /srv/volume /mnt/volume -n -s -v -o passphrase-file=/etc/nacre/volume.pass,no-such-option
expect 0 '' within umount /mnt/volume
expect 2 'no-such-option' within mount.nacre /srv/volume /mnt/volume -o passphrase-file=/etc/nacre/volume.pass,no-such-option
expect 0 'clean' within fsck.nacre --scrub /srv/volume
expect 0 'clean' within fsck.nacre --passphrase-file /etc/nacre/volume.pass /srv/volume

# --- an ordinary user's, with the option user ---
within bash -c 'useradd -m ann && su ann -c "umask 077; echo her secret >~/pass; mkdir ~/private"'
expect 0 'Made a volume' within su ann -c "mkfs.nacre --passphrase-file ~/pass --kdf-memory 8192 --kdf-time 1 ~/vault"
echo '/home/ann/vault /home/ann/private nacre noauto,user,passphrase-file=/home/ann/pass 0 0' >>"$root/etc/fstab"
expect 0 '' within su ann -c 'mount ~/private && echo hers >~/private/file && grep hers ~/private/file'
expect 1 'ermission denied' within cat /home/ann/private/file
expect 0 '' within su ann -c 'nacre umount ~/private'

# --- upgrade beside a mounted volume ---
expect 0 '' within mount /mnt/volume
expect_long "Setting up $name .*-2" apt_within install "$(release 2)"
expect 0 '^$' within bash -c 'diff -r /mnt/volume/base-files /usr/share/doc/base-files'
expect 0 '' within bash -c 'echo after >/mnt/volume/after'
expect 0 '' within nacre umount /mnt/volume
expect 0 '' within mount /mnt/volume
expect 0 'after' within cat /mnt/volume/after

# --- remove, beside a mounted volume as well ---
expect_long "Removing $name" apt_within remove "$name"
expect 0 'after' within cat /mnt/volume/after
expect 0 '' within umount /mnt/volume
for _ in $(seq 3000); do
  [ -n "$(find /proc/[0-9]* -maxdepth 1 -name root -lname "$root" 2>/dev/null)" ] || break
  sleep 0.1
done
state() { (cd "$root/srv/volume" && find . -type f -exec sha256sum {} + | sort); }
state >"$work/before"
expect 0 '' within dpkg --purge "$name" # what apt removed without leaving anything it knows no more
state >"$work/after"
check 'the volume is as it was' cmp -s "$work/before" "$work/after"
check 'nothing of the package is left' [ -z "$(find "$root/usr" -name '*nacre*')" ]
check 'what root made is left' [ -e "$root/etc/nacre/volume.pass" ]

# --- and back ---
expect_long "Setting up $name" apt_within install "$(release 2)"
expect 0 '' within mount /mnt/volume
expect 0 'after' within cat /mnt/volume/after
expect 0 '' within nacre umount /mnt/volume
expect 0 'clean' within fsck.nacre --deep --passphrase-file /etc/nacre/volume.pass /srv/volume
umount "$root/proc"
verdict

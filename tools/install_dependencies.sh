#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian 12 packages that Nacre is built with, and with --tests those that its tests
# need too. Asks apt for nothing when nothing is missing.
#
#   install_dependencies.sh [--tests]
#
# Exit status: 0 all there, 2 usage, 8 could not be installed (with the command that root must run).
set -euo pipefail

build_packages=(
  g++ cmake ninja-build ccache pkg-config
  libfuse3-dev fuse3 liburing-dev librocksdb-dev libssl-dev libipsec-mb-dev libisal-dev liblz4-dev libzstd-dev
  libexpected-dev libfmt-dev libspdlog-dev libcli11-dev nlohmann-json3-dev libargon2-dev
  libmicrohttpd-dev # metrics=; Nacre builds without it
  libtiff-dev libdeflate-dev zlib1g-dev # what nacre bench compares with; not needed without them
)
test_packages=(
  libgtest-dev libgmock-dev clang-format-14 clang-14 libclang-rt-14-dev
  python3 attr acl rsync sqlite3 git openssl unzip tar make e2fsprogs btrfs-progs util-linux mount procps psmisc
  softhsm2 libengine-pkcs11-openssl # a PKCS#11 token for the tests of --identity
)

wanted=("${build_packages[@]}")
case ${1-} in
  '') ;;
  --tests) wanted+=("${test_packages[@]}") ;;
  *) echo "usage: $0 [--tests]" >&2; exit 2 ;;
esac

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "$0: this system has no apt. Nacre is built on Debian 12; elsewhere install" >&2
  echo "  ${wanted[*]}" >&2
  exit 8
fi

missing=()
installed=" $(dpkg-query -W -f='${db:Status-Abbrev}${Package} ' 2>/dev/null || true)"
for package in "${wanted[@]}"; do
  [[ $installed == *"ii $package "* ]] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

echo "Packages to install: ${missing[*]}"
as_root=()
if [ "$(id -u)" != 0 ]; then
  # A terminal may be asked for a password, here and not in the middle of the work; without one sudo
  # must not need any.
  if command -v sudo >/dev/null && { sudo -n true 2>/dev/null || { [ -t 0 ] && sudo -v; }; }; then
    as_root=(sudo)
  else
    echo "$0: packages are missing and this user may not install them. As root, run" >&2
    echo "  apt-get update && apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 8
  fi
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 \
    "$@" >"$log" 2>&1
}
# What the lists on this machine already know needs no update.
if ! apt install --no-install-recommends "${missing[@]}"; then
  apt update || { tail -n 20 "$log" >&2; echo "$0: apt-get update failed, see above" >&2; exit 8; }
  apt install --no-install-recommends "${missing[@]}" || {
    tail -n 20 "$log" >&2
    echo "$0: apt-get could not install ${missing[*]}, see above" >&2
    exit 8
  }
fi

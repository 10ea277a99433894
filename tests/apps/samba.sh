#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A Samba share in the mount, with ACLs, streams and what macOS keeps in extended attributes: names of
# other case, streams and attributes come back, after a new mount too, and a plain directory says the same.
. "$(dirname "$0")/app_harness.sh"
is_root || skip "smbd wants root"
needs smbd smbclient getfattr
start_volume
tell samba
state=$work/smb port=$((20000 + RANDOM % 12000))
mkdir "$state"
start_server() { # SHARED FOLDER
  cat >"$state/smb.conf" <<CONF
[global]
 server role = standalone server
 map to guest = Bad User
 guest account = root
 smb ports = $port
 interfaces = lo
 bind interfaces only = yes
 load printers = no
 disable spoolss = yes
$(for name in pid lock state cache private ncalrpc; do echo " $name dir = $state"; done)
 log file = $state/log
[share]
 path = $1
 guest ok = yes
 read only = no
 ea support = yes
 store dos attributes = yes
 kernel oplocks = yes
 strict allocate = yes
 strict locking = yes
 vfs objects = catia fruit streams_xattr acl_xattr
 fruit:metadata = stream
 fruit:resource = stream
 fruit:encoding = native
CONF
  serve smbd smbd -F --no-process-group -s "$state/smb.conf"
  until_true eval 'smb ls | grep blocks'
}
smb() { smbclient //127.0.0.1/share -p "$port" -N -c "$1" 2>&1 | sed -E '/^(putting|getting) file/d'; }
mkdir "$work/local"
head -c 3000000 /dev/urandom >"$work/local/file"
head -c 900 /dev/urandom >"$work/local/small" # more is not for the extended attributes of ext4
head -c 30000 /dev/urandom >"$work/local/longer"
exchange() {
  start_server "$PWD"
  cd "$work/local"
  rm -f back*
  smb 'put file big.bin; mkdir "Dir Ü"; cd "Dir Ü"; put file x.bin; setmode x.bin +h; cd ..; rename big.bin Big2.bin'
  smb 'get BIG2.BIN back1; put small "big2.bin:stream"; put small "big2.bin:AFP_Resource"'
  smb 'cd "dir ü"; put small "X.BIN:other"; cd ..; mkdir gone; put small gone/a; put small "gone/a:s"; deltree gone'
  looks
  end_servers
}
looks() {
  cd "$work/local"
  rm -f back*
  smb 'get "big2.bin:stream" back2; get "Big2.bin:AFP_Resource" back3; get "dir ü/x.bin:other" back4; get big2.bin back1'
  cmp file back1 && cmp small back2 && cmp small back3 && cmp small back4
  smb 'allinfo big2.bin' | grep -vE '_time|FileId|^getting' | LC_ALL=C sort
  smb 'ls; cd "Dir Ü"; ls' | awk '/bin|Dir/ {print $1, $2, $3, $4}' | LC_ALL=C sort
}
looks_again() { start_server "$PWD" && looks && end_servers; }
both exchange
[ "$(cd "$app" && getfattr -R -d -m - . 2>/dev/null | grep -c DOSATTRIB)" -gt 0 ] || fail "no attributes of DOS are stored"
again looks_again
start_server "$app"
cd "$work/local"
smb 'put longer "big2.bin:long"; get "big2.bin:long" back5' || :
cmp longer back5 || fail "a stream of 30,000 bytes"
cd /
end_servers
files_of() { (cd "$1" && find . -type f | LC_ALL=C sort); }
[ "$(files_of "$app")" = "$(files_of "$plain")" ] || fail "other files than in a plain directory"
finish

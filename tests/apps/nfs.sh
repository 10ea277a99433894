#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The mount is exported by an NFS server in user space (ganesha, which opens files by handle) and read
# and written by a client on the loopback (libnfs), also after the server's and the kernel's caches
# are gone. In a network of its own, since NFS 3 wants its port mapper.
if [ "$(id -u)" = 0 ] && [ -z "${NACRE_NETWORK-}" ]; then
  NACRE_NETWORK=own exec unshare --net --mount --propagation private bash "$0" "$@"
fi
. "$(dirname "$0")/app_harness.sh"
is_root || skip "a server that opens files by handle wants root"
needs ganesha.nfsd rpcbind nfs-ls nfs-cp nfs-cat ip
. "$source_root/tests/support/user_view.sh"
leave_others_mounts
mount -t tmpfs none /run && mkdir -p /run/rpcbind && ip link set lo up || skip "there can be no network of its own"
start_volume
tell nfs-ganesha libnfs-utils
mkdir "$work/ganesha"
cat >"$work/ganesha.conf" <<CONF
NFS_CORE_PARAM { Protocols = 3, 4; NFS_Port = 2049; MNT_Port = 2050; Enable_NLM = false; Enable_RQUOTA = false; }
NFSv4 { Grace_Period = 5; Lease_Lifetime = 5; RecoveryRoot = "$work/ganesha"; Graceless = true; }
EXPORT { Export_Id = 7; Path = "$app"; Pseudo = "/export"; Access_Type = RW; Squash = No_Root_Squash;
  SecType = sys; Protocols = 3, 4; FSAL { Name = VFS; } }
CONF
serve rpcbind rpcbind -f -w
until_true rpcinfo -p 127.0.0.1
version3=nfs://127.0.0.1$app version3_options='version=3&nfsport=2049&mountport=2050'
version4=nfs://127.0.0.1/export version4_options='version=4&nfsport=2049'
start_server() {
  serve ganesha ganesha.nfsd -F -L "$work/ganesha.log" -f "$work/ganesha.conf" -p "$work/ganesha/pid"
  for _ in $(seq 3000); do
    nfs-ls "$version3?$version3_options" >/dev/null 2>&1 && return 0
    kill -0 "${servers[-1]}" 2>/dev/null ||
      skip "ganesha does not serve here: $(grep -hE 'CRIT|FATAL|MAJ' "$work"/ganesha*.log | tail -n 1)"
    sleep 0.1
  done
  fail "ganesha gives no answer: $(tail -n 3 "$work/ganesha.log")"
}
# The port mapper stays.
stop_server() {
  local server=${servers[-1]}
  servers=("$server")
  end_servers
}
start_server
head -c 5000000 /dev/urandom >"$work/file"
for i in 1 2 3; do
  nfs-cp "$work/file" "$version3/f$i?$version3_options" >"$work/cp.log" 2>&1 || fail "nfs-cp: $(cat "$work/cp.log")"
done
checked() { # WHEN
  local i folder=$app/${1// /-} # a new one: the server keeps attributes for a while
  mkdir -p "$folder/e" && echo "made $1" >"$folder/e/g"
  for i in 1 2 3; do
    nfs-cat "$version3/f$i?$version3_options" | cmp - "$work/file" || fail "f$i by NFS 3, $1"
    nfs-cat "$version4/f$i?$version4_options" | cmp - "$work/file" || fail "f$i by NFS 4, $1"
    cmp "$app/f$i" "$work/file" || fail "f$i in the mount, $1"
  done
  [ "$(nfs-cat "$version3/${1// /-}/e/g?$version3_options")" = "made $1" ] || fail "a file that was made in the mount, $1"
  [ "$(nfs-ls "$version4/?$version4_options" | grep -c ' f[123]$')" = 3 ] || fail "the listing, $1"
}
checked "at first"
sync && { echo 3 >/proc/sys/vm/drop_caches; } 2>/dev/null || skip_part "the kernel's caches" "they may not be dropped"
checked "without the kernel's caches"
mapper=${servers[0]}
stop_server
start_server
checked "after a new start of the server"
stop_server
remount
start_server
checked "after a new mount"
stop_server
servers=("$mapper")
end_servers
finish

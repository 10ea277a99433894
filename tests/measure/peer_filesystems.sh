# SPDX-License-Identifier: Apache-2.0
# The file systems that peerbench.sh knows; sourced by it. Each has its defaults, as a user who reads
# no manual gets them. For each NAME there is:
#
#   NAME_program          what must be installed
#   NAME_make BACK        makes a new file system in the empty folder BACK
#   NAME_mount BACK MNT   mounts it; may return before MNT is usable
#   NAME_unmount MNT      optional: asks it to go; peerbench.sh then waits until it is gone
#   NAME_settle MNT       optional: until all that was written is in BACK
#
# The password of every one is in $passphrase. as_user runs a command as the user who is measured;
# what it does not run is the kernel's and root's.

peer_names="gocryptfs securefs encfs cryfs"       # what Nacre is compared with
control_names="native btrfs bindfs fscrypt"       # what the kernel does, and what a pass-through costs
default_names="native $peer_names nacre"
image_mib=12288                                   # of the sparse files that the kernel's file systems lie in

# The file system that all others store in, with nothing above it: peerbench.sh has MNT = BACK.
native_program=true
native_make() { :; }
native_mount() { :; }

nacre_program=mount.nacre
nacre_make() { as_user mkfs.nacre --passphrase-file "$passphrase" "$1"; }
nacre_mount() { as_user mount.nacre --passphrase-file "$passphrase" "$1" "$2"; }
nacre_unmount() { as_user nacre umount "$1"; }
nacre_settle() { as_user nacre sync "$1"; }

gocryptfs_program=gocryptfs
gocryptfs_make() { as_user gocryptfs -init -q -passfile "$passphrase" "$1"; }
gocryptfs_mount() { as_user gocryptfs -q -passfile "$passphrase" "$1" "$2"; }

# Its password can only be an argument where nobody types it.
securefs_program=securefs
securefs_make() { as_user securefs create --pass "$(cat "$passphrase")" "$1"; }
securefs_mount() { as_user securefs mount -b --pass "$(cat "$passphrase")" "$1" "$2"; }

# It makes a new file system when it first mounts one.
encfs_program=encfs
encfs_make() {
  as_user mkdir "$1.new" && as_user encfs --standard --stdinpass "$1" "$1.new" <"$passphrase" &&
    leave encfs "$1" "$1.new" && rmdir "$1.new"
}
encfs_mount() { as_user encfs --stdinpass "$1" "$2" <"$passphrase"; }

# So does this one.
cryfs_program=cryfs
cryfs_make() { :; }
cryfs_mount() {
  as_user env CRYFS_FRONTEND=noninteractive CRYFS_NO_UPDATE_CHECK=true cryfs "$1" "$2" <"$passphrase"
}
# It keeps blocks in memory that no sync of its mount reaches.
cryfs_settle() { leave cryfs "$back" "$mnt" && enter; }

bindfs_program=bindfs
bindfs_make() { :; }
bindfs_mount() { as_user bindfs "$1" "$2"; }

# The kernel's own, each on a sparse file in BACK: compression without encryption, and the reverse.
btrfs_program=mkfs.btrfs
btrfs_make() { truncate -s "${image_mib}M" "$1/image" && mkfs.btrfs -q "$1/image"; }
btrfs_mount() { mount -o loop,compress=zstd:3 "$1/image" "$2" && chown "$user:" "$2"; }

fscrypt_program=mkfs.ext4
fscrypt_make() {
  truncate -s "${image_mib}M" "$1/image" &&
    mkfs.ext4 -q -O encrypt -E lazy_itable_init=0,lazy_journal_init=0 "$1/image"
}
fscrypt_mount() {
  mkdir -p "$1/whole" && mount -o loop "$1/image" "$1/whole" &&
    encrypt_folder "$1/whole" "$1/whole/secret" && chown "$user:" "$1/whole/secret" &&
    mount --bind "$1/whole/secret" "$2"
}
fscrypt_unmount() {
  local whole
  whole=$(dirname "$1")/back/whole
  umount "$1" && umount "$whole"
}

# encrypt_folder TOP FOLDER: gives the ext4 at TOP a key, and FOLDER, made where it is missing, a
# policy of version 2 with it: AES-256-XTS for contents, AES-256-CTS for names (linux/fscrypt.h).
encrypt_folder() {
  python3 - "$1" "$2" <<'PYTHON'
import fcntl
import os
import struct
import sys

ADD_KEY, SET_POLICY = 0xC0506617, 0x800C6613
BY_IDENTIFIER, VERSION, XTS, CTS, PAD_32 = 2, 2, 1, 4, 3
raw = bytes(range(64))
argument = bytearray(struct.pack("<II32sII32s", BY_IDENTIFIER, 0, b"", len(raw), 0, b"") + raw)
top = os.open(sys.argv[1], os.O_RDONLY)
fcntl.ioctl(top, ADD_KEY, argument)
identifier = bytes(argument[8:24])
if not os.path.isdir(sys.argv[2]):
    os.mkdir(sys.argv[2])
    folder = os.open(sys.argv[2], os.O_RDONLY)
    policy = struct.pack("<BBBBB3s16s", VERSION, XTS, CTS, PAD_32, 0, b"", identifier)
    fcntl.ioctl(folder, SET_POLICY, policy)
PYTHON
}

# define NAME MAKE MOUNT UNMOUNT: one more, by command lines in which {back}, {mnt}, {bin} and
# {passphrase} stand for these paths. An empty UNMOUNT leaves that to umount.
define() {
  local name=$1 template
  [[ $name =~ ^[a-z][a-z0-9_]*$ ]] || usage "--add: a name is letters and digits, not '$name'"
  for template in "$2" "$3" "$4"; do
    template=${template//'{back}'/'"$BACK"'} template=${template//'{mnt}'/'"$MNT"'}
    template=${template//'{bin}'/'"$BIN"'} template=${template//'{passphrase}'/'"$PASSPHRASE"'}
    defined+=("$template")
  done
  eval "${name}_program=true"
  eval "${name}_make() { run_defined $((${#defined[@]} - 3)) \"\$1\" ''; }"
  eval "${name}_mount() { run_defined $((${#defined[@]} - 2)) \"\$1\" \"\$2\"; }"
  # What was written is surely in BACK once it is unmounted.
  eval "${name}_settle() { leave $name \"\$back\" \"\$mnt\" && enter; }"
  [ -z "$4" ] || eval "${name}_unmount() { run_defined $((${#defined[@]} - 1)) '' \"\$1\"; }"
}
run_defined() {
  as_user env BIN="$bin" BACK="$2" MNT="$3" PASSPHRASE="$passphrase" bash -c "${defined[$1]}"
}

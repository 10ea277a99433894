#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A maildir of dovecot's, by doveadm without a network: delivery, flags, moves by hard link, expunges
# and indexes give what they give in a plain directory, also after dovecot's and the daemon's deaths.
. "$(dirname "$0")/app_harness.sh"
needs doveadm
is_root || skip "doveadm wants root"
letters=$(counts 60 300)
mount_options=(-o allow_other)
start_volume
tell dovecot-core
mail() { # DOVEADM'S COMMAND…, on the maildir in this directory
  setpriv --reuid nobody --regid nogroup --clear-groups env HOME="$PWD/mail" USER=nobody \
    doveadm -c "$PWD/dovecot.conf" "$@"
}
configure() {
  chmod 755 .
  cat >dovecot.conf <<CONF
base_dir = $PWD/run
state_dir = $PWD/run
mail_location = maildir:$PWD/mail
first_valid_uid = 1
first_valid_gid = 1
ssl = no
log_path = /dev/stderr
maildir_copy_with_hardlinks = yes
mail_fsync = always
CONF
  mkdir -p run mail && chown -R nobody:nogroup mail
}
letter() {
  printf 'From: a@example.org\nSubject: letter %d\nDate: Thu, 1 Jan 2026 00:00:%02d +0000\n\n%s\n' \
    "$1" $(($1 % 60)) "$(seq "$1")"
}
deliver() {
  configure
  mail mailbox create Archive Spam
  for i in $(seq "$letters"); do letter "$i" | mail save; done
  mail flags add '\Seen' mailbox INBOX 1:20
  mail move Archive mailbox INBOX 5:15
  mail copy Spam mailbox Archive 1:5
  mail expunge mailbox INBOX 1:3
  mail index '*'
  looks
}
looks() {
  mail mailbox status 'messages unseen vsize' '*' | LC_ALL=C sort
  mail fetch 'mailbox hdr.subject flags body' all | sha256sum
  mail search body 59 | wc -l
}
resynced() {
  mail force-resync '*'
  rm -rf mail/dovecot.index* mail/.*/dovecot.index*
  looks
}
both deliver
again looks
both resynced
kill_daemon
both looks
finish

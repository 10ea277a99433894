#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# LibreOffice without a screen, its user profile and its documents in the mount: it converts there and
# back, and heeds the lock file of a document that somebody else has open.
. "$(dirname "$0")/app_harness.sh"
needs soffice unzip
start_volume
tell "$(dpkg-query -W -f='${db:Status-Abbrev}${Package}\n' 'libreoffice-core*' 2>/dev/null | sed -n 's/^ii *//p')"
convert() { # FORMAT FILE
  timeout 300 soffice -env:UserInstallation="file://$PWD/profile" --headless --norestore \
    --convert-to "$1" --outdir "$PWD/out" "$2" >"$work/office.log" 2>&1 || { cat "$work/office.log"; return 1; }
}
documents() {
  mkdir -p out
  for i in $(seq 200); do echo "Line $i, äöü"; done >text.txt
  for i in $(seq 200); do echo "$i,$((i * i)),name$i"; done >table.csv
  convert odt text.txt
  convert 'txt:Text (encoded):UTF8' out/text.odt
  convert ods table.csv
  convert csv out/table.ods
  looks
}
looks() {
  unzip -tq out/text.odt && unzip -tq out/table.ods
  unzip -p out/text.odt content.xml | grep -o 'Line [0-9]*' | sha256sum
  cmp out/table.csv table.csv && echo the same table
  sed 's/^\xef\xbb\xbf//' out/text.txt | tr -d '\r' | cmp - text.txt && echo the same text
  ls -A out
}
both documents
again looks
both documents
finish

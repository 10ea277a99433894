#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Programs are built in the mount without a network, by tools whose caches and fingerprints rest on
# times, hard links and locks: make with ccache, cargo, npm. What has not changed is not built again,
# after a new mount either.
. "$(dirname "$0")/app_harness.sh"
needs gcc make ccache
sources=$(counts 12 200)
export HOME=$work/home LC_ALL=C

make_project() {
  mkdir -p c && cd c
  local i
  for i in $(seq "$sources"); do
    printf '#include "all.h"\nint part%d(void) { return %d; }\n' "$i" "$i" >part$i.c
    printf 'int part%d(void);\n' "$i" >>all.h
  done
  printf '#include <stdio.h>\n#include "all.h"\nint main(void) { printf("%%d\\n", part1() + part%d()); }\n' "$sources" >main.c
  cat >Makefile <<'CODE'
objects := $(patsubst %.c,%.o,$(wildcard *.c))
app: $(objects)
	$(CC) -o $@ $^
%.o: %.c
	ccache $(CC) -O1 -MMD -c -o $@ $<
-include $(wildcard *.d)
CODE
}
hits() { ccache --print-stats | awk '/^direct_cache_hit|^preprocessed_cache_hit/ {n += $2} END {print "hits", n}'; }
in_c() {
  export CCACHE_DIR=$PWD/ccache CCACHE_NOCOMPRESS=1 CCACHE_HARDLINK=1 CCACHE_BASEDIR=$PWD
  (make_project)
  cd c
  make -s -j2 && ./app && hits
  rm ./*.o app && make -s -j2 && ./app && hits
  make -q && echo nothing to do
}
still_in_c() {
  export CCACHE_DIR=$PWD/ccache CCACHE_NOCOMPRESS=1 CCACHE_HARDLINK=1 CCACHE_BASEDIR=$PWD
  cd c
  ./app && make -q && echo nothing to do
  rm ./*.o && make -s -j2 && ./app && hits
}
in_rust() {
  export CARGO_HOME=$PWD/cargo_home CARGO_NET_OFFLINE=true CARGO_INCREMENTAL=1
  [ -d rust ] || cargo new -q --vcs none --lib rust
  cd rust
  cargo test -q 2>&1 | grep 'test result' | sed 's/;.*//' | sort -u
  cargo build -v 2>&1 | grep -c Fresh
  echo '#[test] fn again() { assert_eq!(super::add(1, 1), 2); }' >src/more.rs
  sleep 0.01
  grep -q more src/lib.rs || echo '#[cfg(test)] mod more;' >>src/lib.rs
  cargo test -q 2>&1 | grep 'test result' | sed 's/;.*//' | sort -u
}
still_rust() {
  export CARGO_HOME=$PWD/cargo_home CARGO_NET_OFFLINE=true CARGO_INCREMENTAL=1
  cd rust && cargo build -v 2>&1 | grep -c Fresh
}
in_node() {
  export npm_config_cache=$PWD/npm npm_config_update_notifier=false npm_config_fund=false npm_config_audit=false
  rm -rf a b && mkdir a b
  (cd a && npm init -y && echo 'module.exports = 7' >index.js && npm pack) >/dev/null 2>&1
  (cd b && npm init -y && npm install --offline ../a/a-1.0.0.tgz) >/dev/null 2>&1
  node -p 'require("./b/node_modules/a")'
  (cd b && rm -r node_modules && npm ci --offline) >/dev/null 2>&1
  node -p 'require("./b/node_modules/a")'
}
start_volume
tell gcc make ccache
both in_c
again still_in_c
if [ -z "${NACRE_LONG-}" ]; then
  skip_part "cargo and npm" "only with --long, or tests/apps/run.sh"
else
  # What rustup keeps is bound to a home, Debian's is not.
  cargo --version >/dev/null 2>&1 || PATH=/usr/bin:$PATH
  if cargo --version >/dev/null 2>&1; then
    echo "ran: $(cargo --version)"
    both in_rust
    again still_rust
  else
    skip_part cargo "there is none"
  fi
  if command -v npm >/dev/null && command -v node >/dev/null; then
    echo "ran: node $(node --version), npm $(npm --version)"
    both in_node
    again in_node
  else
    skip_part npm "there is none"
  fi
fi
finish

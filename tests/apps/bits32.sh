#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A program of 32 bits without support for large files (as old games under Wine) lists, reads, writes,
# locks and maps as in a plain directory.
. "$(dirname "$0")/app_harness.sh"
needs gcc
cat >"$work/p.c" <<'CODE'
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
static void check(const char* what, int good) {
  printf("%s: %s\n", what, good ? "ok" : strerror(errno));
}
int main(void) {
  int count = 0, i;
  long where = 0;
  char name[40];
  struct dirent* entry;
  struct statvfs room;
  struct stat status;
  printf("off_t of %d bytes\n", (int)sizeof(off_t));
  mkdir("many", 0755);
  for (i = 0; i < 1000; ++i) {
    sprintf(name, "many/file%d", i);
    close(open(name, O_CREAT | O_WRONLY, 0644));
  }
  DIR* folder = opendir("many");
  while ((errno = 0, entry = readdir(folder)) != NULL) {
    if (++count == 500) where = telldir(folder);
  }
  check("listing", errno == 0);
  printf("%d entries\n", count);
  seekdir(folder, where);
  for (count = 0; readdir(folder) != NULL;) ++count;
  printf("%d after seeking back\n", count);
  closedir(folder);
  check("statvfs", statvfs(".", &room) == 0);
  int file = open("f", O_CREAT | O_RDWR | O_TRUNC, 0644);
  check("write", write(file, "0123456789", 10) == 10);
  check("seek to the last byte that fits", lseek(file, 0x7ffffffe, SEEK_SET) == 0x7ffffffe);
  check("write there", write(file, "x", 1) == 1);
  check("fstat", fstat(file, &status) == 0 && status.st_size == 0x7fffffff);
  check("beyond is refused", write(file, "y", 1) == -1 && errno == EFBIG);
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 5, .l_len = 3};
  check("fcntl lock", fcntl(file, F_SETLK, &lock) == 0);
  check("flock", flock(file, LOCK_EX) == 0);
  char* map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  check("mmap", map != MAP_FAILED && map[9] == '9');
  map[0] = 'M';
  check("msync", msync(map, 4096, MS_SYNC) == 0);
  check("ftruncate", ftruncate(file, 4096) == 0);
  char back[4];
  check("pread", pread(file, back, 2, 0) == 2 && back[0] == 'M' && back[1] == '1');
  check("rename", rename("f", "g") == 0 && stat("g", &status) == 0 && status.st_size == 4096);
  return 0;
}
CODE
gcc -m32 -o "$work/p" "$work/p.c" 2>"$work/gcc.log" || skip "gcc -m32 does not work: $(tail -n 1 "$work/gcc.log")"
(cd "$work" && mkdir try && cd try && "$work/p" >/dev/null) || skip "programs of 32 bits do not run here"
steps() { rm -rf many f g && "$work/p"; }
start_volume
tell gcc libc6-dev-i386
both steps
again steps
finish

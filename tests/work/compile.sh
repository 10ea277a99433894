#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A C++ project is compiled inside the volume, runs from it, and make sees what changed: times and
# executable mappings work.
. "$(dirname "$0")/../support/mount_harness.sh"

make_volume
mount_volume
project=$mnt/project
mkdir "$project"
parts=24
for part in $(seq $parts); do
  cat >"$project/part$part.h" <<CODE
#pragma once
#include <string>
#include <vector>
std::vector<std::string> part$part(int count);
CODE
  cat >"$project/part$part.cpp" <<CODE
#include "part$part.h"
std::vector<std::string> part$part(int count) {
  std::vector<std::string> out;
  for (int i = 0; i < count; ++i) out.push_back(std::to_string(i * $part));
  return out;
}
CODE
done
{
  for part in $(seq $parts); do echo "#include \"part$part.h\""; done
  echo '#include <cstdio>'
  echo 'int main() { std::size_t total = 0;'
  for part in $(seq $parts); do echo "for (auto& s : part$part(100)) total += s.size();"; done
  echo 'std::printf("%zu\n", total); }'
} >"$project/main.cpp"
cat >"$project/Makefile" <<'CODE'
objects := $(patsubst %.cpp,%.o,$(wildcard *.cpp))
app: libparts.a main.o
	$(CXX) -o $@ main.o -L. -lparts
libparts.a: $(filter-out main.o,$(objects))
	ar rcs $@ $^
%.o: %.cpp
	$(CXX) -O0 -g -MMD -c -o $@ $<
-include $(wildcard *.d)
CODE

expected=$(python3 -c "print(sum(len(str(i*p)) for p in range(1,$parts+1) for i in range(100)))")
make -s -C "$project" -j2 || fail "the project does not compile in the volume"
[ "$("$project/app")" = "$expected" ] || fail "the program says $("$project/app"), not $expected"
make -s -C "$project" -q || fail "make wants to build again at once"

remount
[ "$("$project/app")" = "$expected" ] || fail "after a new mount the program says something else"
make -s -C "$project" -q || fail "make wants to build again after a new mount"
sleep 0.01
echo '// changed' >>"$project/part3.h"
rebuilt=$(make -n -C "$project" | grep -c -- ' -c -o ')
[ "$rebuilt" = 2 ] || fail "make would compile $rebuilt files where two changed"
make -s -C "$project" -j2
[ "$("$project/app")" = "$expected" ] || fail "the rebuilt program says something else"
finish

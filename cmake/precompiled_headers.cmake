# Gives every program and library of ours one precompiled file of the headers that most sources
# include; tests get GoogleTest too. Sources still include what they use: most builds do without.
function(nacre_precompiled name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LIBRARIES;HEADERS;OPTIONS")
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/${name}.cpp CONTENT "")
  add_library(${name} STATIC ${CMAKE_BINARY_DIR}/${name}.cpp)
  target_link_libraries(${name} PRIVATE nacre_options ${arg_LIBRARIES})
  target_compile_options(${name} PRIVATE ${arg_OPTIONS})
  target_precompile_headers(${name} PRIVATE ${arg_HEADERS})
endfunction()

# ARGN: options that the file was made with, or that sources need for its sake.
function(nacre_reuse_precompiled folder name)
  get_directory_property(targets DIRECTORY ${folder} BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    if(type MATCHES "^(STATIC_LIBRARY|EXECUTABLE)$")
      target_precompile_headers(${target} REUSE_FROM ${name})
      target_link_libraries(${target} PRIVATE fmt::fmt)  # whose definitions it was made with
      target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${ARGN}>")
    endif()
  endforeach()
  get_directory_property(folders DIRECTORY ${folder} SUBDIRECTORIES)
  foreach(below IN LISTS folders)
    nacre_reuse_precompiled(${below} ${name} ${ARGN})
  endforeach()
endfunction()

set(headers <algorithm> <array> <atomic> <bit> <chrono> <condition_variable> <cstdint> <cstring>
  <functional> <future> <map> <memory> <mutex> <optional> <set> <shared_mutex> <span> <string>
  <string_view> <thread> <unordered_map> <utility> <vector> <fmt/format.h> <tl/expected.hpp>)
nacre_precompiled(nacre_headers LIBRARIES fmt::fmt HEADERS ${headers})
set(test_headers ${headers} <random> <gtest/gtest.h>)
get_directory_property(folders SUBDIRECTORIES)
foreach(folder IN LISTS folders)
  # The commands are descriptions of options and of JSON, which is most of what they take to compile;
  # -O1 takes an eighth more than -O0, and is for those who use them.
  if(folder MATCHES "/tools$")
    find_package(CLI11 REQUIRED)
    set(level $<IF:$<CONFIG:Release>,-O1,-O0>)
    nacre_precompiled(nacre_tool_headers LIBRARIES fmt::fmt CLI11::CLI11
      HEADERS ${headers} <CLI/CLI.hpp> <nlohmann/json.hpp> OPTIONS ${level})
    nacre_reuse_precompiled(${folder} nacre_tool_headers ${level})
    continue()
  endif()
  if(NOT folder MATCHES "/tests$")
    nacre_reuse_precompiled(${folder} nacre_headers)
    continue()
  endif()
  nacre_precompiled(nacre_test_headers LIBRARIES fmt::fmt GTest::gtest
    HEADERS ${test_headers} OPTIONS -O1)
  # Most tests only call what is built elsewhere: not optimised, they take half as long to compile.
  nacre_precompiled(nacre_plain_test_headers LIBRARIES fmt::fmt GTest::gtest
    HEADERS ${test_headers} OPTIONS -O0)
  get_directory_property(test_folders DIRECTORY ${folder} SUBDIRECTORIES)
  foreach(test_folder IN LISTS test_folders)
    if(test_folder MATCHES "/(gpu_engine|fuzz|support)$")
      # g++ 12 warns of what is not there (GCC PR 105651), and sees more of it so.
      nacre_reuse_precompiled(${test_folder} nacre_test_headers -DGTEST_HAS_PTHREAD=1 -O1
        $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
    else()
      nacre_reuse_precompiled(${test_folder} nacre_plain_test_headers -DGTEST_HAS_PTHREAD=1 -O0)
    endif()
  endforeach()
endforeach()

# SPDX-License-Identifier: Apache-2.0
# Compiles the sources of a library or program several at a time: most of what it takes to compile
# one is in the headers, which are then read once. CMake's own UNITY_BUILD names the sources by their
# absolute paths, so that ccache knows none of them in another clone.
set(NACRE_UNITY_BATCH_SIZE 24 CACHE STRING "How many sources NACRE_UNITY_BUILD compiles at once")
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/compiled_alone.txt nacre_compiled_alone REGEX "^[^#]")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
  ${CMAKE_CURRENT_LIST_DIR}/compiled_alone.txt)

# A name of one source is no name for another to hide, and neither of them is the main one. Builds of
# each source by itself warn of both.
set(nacre_unity_options -Wno-shadow)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  list(APPEND nacre_unity_options -Wshadow=local -Wno-subobject-linkage)
endif()

# What of the target may stand with other sources, as paths from the root.
function(nacre_unity_sources out target)
  get_target_property(sources ${target} SOURCES)
  get_target_property(folder ${target} SOURCE_DIR)
  set(found)
  foreach(source IN LISTS sources)
    file(REAL_PATH ${source} path BASE_DIRECTORY ${folder})
    get_source_file_property(options ${path} TARGET_DIRECTORY ${target} COMPILE_OPTIONS)
    get_source_file_property(macros ${path} TARGET_DIRECTORY ${target} COMPILE_DEFINITIONS)
    file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR} ${path})
    if(path MATCHES "\\.cpp$" AND NOT options AND NOT macros
        AND NOT name IN_LIST nacre_compiled_alone)
      list(APPEND found ${name})
    endif()
  endforeach()
  set(${out} ${found} PARENT_SCOPE)
endfunction()

function(nacre_unity_target target)
  nacre_unity_sources(sources ${target})
  list(LENGTH sources count)
  if(count LESS 2)
    return()
  endif()
  math(EXPR batches "(${count} + ${NACRE_UNITY_BATCH_SIZE} - 1) / ${NACRE_UNITY_BATCH_SIZE}")
  foreach(batch RANGE 1 ${batches})
    math(EXPR first "(${batch} - 1) * ${count} / ${batches}")
    math(EXPR size "${batch} * ${count} / ${batches} - ${first}")
    list(SUBLIST sources ${first} ${size} names)
    set(content "")
    foreach(name IN LISTS names)
      string(APPEND content "#include \"${name}\"\n")
    endforeach()
    set(path ${CMAKE_BINARY_DIR}/unity/${target}/${batch}.cpp)
    file(CONFIGURE OUTPUT ${path} CONTENT "${content}" @ONLY)
    target_sources(${target} PRIVATE ${path})
    set_source_files_properties(${path} TARGET_DIRECTORY ${target}
      PROPERTIES COMPILE_OPTIONS "${nacre_unity_options}")
  endforeach()
  list(TRANSFORM sources PREPEND ${CMAKE_SOURCE_DIR}/)
  set_source_files_properties(${sources} TARGET_DIRECTORY ${target} PROPERTIES HEADER_FILE_ONLY ON)
endfunction()

# A folder may say NACRE_COMPILED_ALONE: what is united in one of its targets is no source in another.
function(nacre_unity_build folder)
  get_directory_property(targets DIRECTORY ${folder} BUILDSYSTEM_TARGETS)
  get_directory_property(alone DIRECTORY ${folder} NACRE_COMPILED_ALONE)
  if(alone)
    set(targets)
  endif()
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    if(type MATCHES "^(STATIC_LIBRARY|EXECUTABLE)$")
      nacre_unity_target(${target})
    endif()
  endforeach()
  get_directory_property(folders DIRECTORY ${folder} SUBDIRECTORIES)
  foreach(below IN LISTS folders)
    nacre_unity_build(${below})
  endforeach()
endfunction()

nacre_unity_build(${CMAKE_SOURCE_DIR})

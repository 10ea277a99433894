# Lets the compiler read the sources of a library or program several at a time: most of what it takes
# to compile one is in the headers, which it then reads once. Whoever works on a source is better off
# without: a change compiles all that stand with it.
set(NACRE_UNITY_BATCH_SIZE 10 CACHE STRING "So many sources are compiled at once, with NACRE_UNITY_BUILD")

# Compiled alone: each has names of its own that another source of its target has too.
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/compiled_alone.txt nacre_compiled_alone REGEX "^[^#]")

function(nacre_unity_build folder)
  get_directory_property(targets DIRECTORY ${folder} BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    if(NOT type MATCHES "^(STATIC_LIBRARY|EXECUTABLE)$")
      continue()
    endif()
    set_target_properties(${target} PROPERTIES
      UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${NACRE_UNITY_BATCH_SIZE})
    get_target_property(sources ${target} SOURCES)
    foreach(source IN LISTS sources)
      file(REAL_PATH ${source} path BASE_DIRECTORY ${folder})
      file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR} ${path})
      if(name IN_LIST nacre_compiled_alone)
        set_source_files_properties(${path} TARGET_DIRECTORY ${target}
          PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
      endif()
    endforeach()
  endforeach()
  get_directory_property(folders DIRECTORY ${folder} SUBDIRECTORIES)
  foreach(below IN LISTS folders)
    nacre_unity_build(${below})
  endforeach()
endfunction()

nacre_unity_build(${CMAKE_SOURCE_DIR})

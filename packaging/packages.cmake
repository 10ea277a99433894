# CPack: nacre (or nacre-cuda) and libnacre-dev (or libnacre-cuda-dev), "cpack -G DEB" in the build
# folder. Nothing runs when they are installed or removed: no volume is ever touched by that.
# This is nobody's mailbox: publishers of packages set their own.
set(NACRE_MAINTAINER "The Nacre maintainers <maintainers@users.noreply.github.com>"
  CACHE STRING "The maintainer of the Debian packages: NAME <ADDRESS>")

# What Debian wants of each package.
find_program(GZIP gzip)
foreach(component nacre library)
  if(component STREQUAL nacre)
    set(package ${NACRE_PACKAGE})
  else()
    set(package ${NACRE_LIBRARY_PACKAGE})
  endif()
  if(NACRE_ENGINE_ONLY AND component STREQUAL nacre)
    continue()
  endif()
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${component})
  string(TIMESTAMP NACRE_DATE "%a, %d %b %Y %H:%M:%S +0000" UTC)
  configure_file(debian/changelog.in ${folder}/changelog.Debian @ONLY)
  configure_file(debian/copyright ${folder}/copyright COPYONLY)
  install(FILES ${folder}/copyright
    DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${package} COMPONENT ${component})
  if(GZIP)
    execute_process(COMMAND ${GZIP} -9nf changelog.Debian WORKING_DIRECTORY ${folder}
      COMMAND_ERROR_IS_FATAL ANY)
    install(FILES ${folder}/changelog.Debian.gz
      DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${package} COMPONENT ${component})
  endif()
endforeach()

set(CPACK_PACKAGE_NAME nacre)
set(CPACK_PACKAGE_VENDOR Nacre)
set(CPACK_PACKAGE_CONTACT "${NACRE_MAINTAINER}")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL nacre library)
if(NACRE_ENGINE_ONLY)
  set(CPACK_COMPONENTS_ALL library)
endif()
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_NACRE_PACKAGE_NAME ${NACRE_PACKAGE})
set(CPACK_DEBIAN_NACRE_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_NACRE_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_NACRE_PACKAGE_SHLIBDEPS ON)
# fusermount3, for users other than root.
set(CPACK_DEBIAN_NACRE_PACKAGE_DEPENDS "fuse3")
set(CPACK_DEBIAN_NACRE_PACKAGE_SUGGESTS "bash-completion, libsecret-tools, systemd, xdg-utils")
set(CPACK_COMPONENT_NACRE_DESCRIPTION
  "compressed, encrypted, checksummed filesystem
Nacre keeps files compressed, encrypted and checksummed in a directory of
your choice and shows them through FUSE. Names, sizes, times and the tree
itself are encrypted too.

This package has the programs to make, mount, check and repair volumes, to
rotate keys and to make backups, with mount -t nacre and /etc/fstab.")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME ${NACRE_LIBRARY_PACKAGE})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_DEPENDS "libargon2-dev, libexpected-dev, libfmt-dev, \
libipsec-mb-dev, libisal-dev, liblz4-dev, libssl-dev, libzstd-dev, pkg-config")
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION
  "engine of the Nacre filesystem, for other programs
Compresses, encrypts and checksums batches of messages on processor cores,
and on GPUs where it was built for them.

This package has the static library, its headers, and the files by which
CMake and pkg-config find them.")
if(NACRE_CUDA)
  foreach(component NACRE LIBRARY)
    string(REPLACE -cuda "" plain ${CPACK_DEBIAN_${component}_PACKAGE_NAME})
    set(CPACK_DEBIAN_${component}_PACKAGE_PROVIDES "${plain} (= ${PROJECT_VERSION}-1)")
    set(CPACK_DEBIAN_${component}_PACKAGE_CONFLICTS ${plain})
    set(CPACK_DEBIAN_${component}_PACKAGE_REPLACES ${plain})
    string(APPEND CPACK_COMPONENT_${component}_DESCRIPTION "

It is built with CUDA: what a GPU does sooner is done there. The driver is
found when it runs; without one all work is done by the processor.")
  endforeach()
endif()
include(CPack)

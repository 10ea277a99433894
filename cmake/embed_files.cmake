# SPDX-License-Identifier: Apache-2.0
# Puts the files of the page into a C++ source.
#
#   cmake -D FOLDER=… -D LIST=… -D OUTPUT=… -P embed_files.cmake
#
# Each file is there as it is and compressed by gzip(1). LIST is a text file with one name a line,
# relative to FOLDER; lines that begin with '#' are left out. A name may have only letters, digits
# and ".-_/".
set(type_html "text/html; charset=utf-8")
set(type_css "text/css; charset=utf-8")
set(type_js "text/javascript; charset=utf-8")
set(type_mjs "${type_js}")
set(type_json "application/json; charset=utf-8")
set(type_svg "image/svg+xml")
set(type_png "image/png")
set(type_ico "image/x-icon")
set(type_txt "text/plain; charset=utf-8")

file(STRINGS "${LIST}" names REGEX "^[^#]")
set(arrays "")
set(rows "")
set(index 0)
foreach(name IN LISTS names)
  if(NOT name MATCHES "^[A-Za-z0-9._/-]+$" OR NOT EXISTS "${FOLDER}/${name}")
    message(FATAL_ERROR "${LIST}: there is no file ${FOLDER}/${name}")
  endif()
  string(REGEX REPLACE "^.*\\." "" extension "${name}")
  if(NOT DEFINED type_${extension})
    message(FATAL_ERROR "${LIST}: ${name} has no known content type")
  endif()
  file(SHA256 "${FOLDER}/${name}" tag)
  execute_process(COMMAND gzip -9 -n -c "${FOLDER}/${name}" OUTPUT_FILE "${OUTPUT}.gz" COMMAND_ERROR_IS_FATAL ANY)
  file(READ "${FOLDER}/${name}" digits HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${digits}")
  file(READ "${OUTPUT}.gz" digits HEX)
  string(REGEX REPLACE "(..)" "0x\\1," gzip_bytes "${digits}")
  if(bytes STREQUAL "")
    message(FATAL_ERROR "${LIST}: ${name} is empty")
  endif()
  string(APPEND arrays "constexpr Byte asset_${index}[] = {\n${bytes}};\n")
  string(APPEND arrays "constexpr Byte gzip_asset_${index}[] = {\n${gzip_bytes}};\n")
  string(APPEND rows "    {\"${name}\", \"${type_${extension}}\", \"${tag}\", asset_${index}, gzip_asset_${index}},\n")
  math(EXPR index "${index} + 1")
endforeach()

file(WRITE "${OUTPUT}.new" "// Made by cmake/embed_files.cmake.
#include \"tools/web/assets.h\"

namespace nacre::tools::web {

namespace {

${arrays}
constexpr Asset page_assets[] = {
${rows}};

}  // namespace

std::span<const Asset> embedded_assets() {
  return page_assets;
}

}  // namespace nacre::tools::web
")
file(COPY_FILE "${OUTPUT}.new" "${OUTPUT}" ONLY_IF_DIFFERENT)
file(REMOVE "${OUTPUT}.new" "${OUTPUT}.gz")

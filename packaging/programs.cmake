# For the component "nacre": the names under sbin by which mount(8), mkfs(8) and fsck(8) find their
# helpers, man pages, completions, units, documents.
set(docdir ${CMAKE_INSTALL_DATAROOTDIR}/doc/${NACRE_PACKAGE})
set(programs mkfs.nacre fsck.nacre nacre)
set(helpers mkfs.nacre fsck.nacre)
if(NACRE_FUSE)
  list(APPEND programs mount.nacre)
  list(APPEND helpers mount.nacre)
endif()
foreach(helper ${helpers})
  set(link ${CMAKE_CURRENT_BINARY_DIR}/sbin/${helper})
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/sbin)
  file(CREATE_LINK ../bin/${helper} ${link} SYMBOLIC)
  install(FILES ${link} DESTINATION ${CMAKE_INSTALL_SBINDIR})
endforeach()

# Man pages and completions come from running the programs, so sanitizer builds have none.
if(NACRE_MANUAL AND NOT NACRE_SANITIZE)
  find_package(Python3 3.9 COMPONENTS Interpreter)
endif()
if(NACRE_MANUAL AND NOT NACRE_SANITIZE AND Python3_Interpreter_FOUND)
  set(manual ${CMAKE_CURRENT_BINARY_DIR}/manual)
  set(completions ${CMAKE_CURRENT_BINARY_DIR}/completions)
  file(GLOB pages CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/docs/man/*.[158])
  set(sources help_tree.py write_completions.py write_manual.py markdown_to_man.py)
  add_custom_command(OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/manual.stamp
    # Pages of commands that no longer exist must be removed.
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${manual} ${completions}
    COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/write_manual.py
      --bin ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} --pages ${CMAKE_SOURCE_DIR}/docs/man
      --format ${CMAKE_SOURCE_DIR}/docs/FORMAT.md --version ${PROJECT_VERSION} --out ${manual}
      --gzip ${programs}
    COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/write_completions.py
      --bin ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} --out ${completions} ${programs}
    COMMAND ${CMAKE_COMMAND} -E touch ${CMAKE_CURRENT_BINARY_DIR}/manual.stamp
    DEPENDS ${programs} ${pages} ${sources} ${CMAKE_SOURCE_DIR}/docs/FORMAT.md
      ${CMAKE_SOURCE_DIR}/CHANGELOG.md
    COMMENT "Writing man pages and completions")
  add_custom_target(manual ALL DEPENDS ${CMAKE_CURRENT_BINARY_DIR}/manual.stamp)
  install(DIRECTORY ${manual}/ DESTINATION ${CMAKE_INSTALL_MANDIR})
  install(DIRECTORY ${completions}/bash/
    DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/bash-completion/completions)
  # Debian's zsh and fish look into vendor folders; elsewhere these are the usual ones.
  install(DIRECTORY ${completions}/zsh/
    DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/zsh/vendor-completions)
  install(DIRECTORY ${completions}/fish/
    DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/fish/vendor_completions.d)
else()
  message(STATUS "man pages and completions are left out")
endif()

# systemd looks into lib, whatever the libraries' folder is called.
install(FILES systemd/nacre-scrub@.service systemd/nacre-scrub@.timer
  DESTINATION lib/systemd/system)
# What the desktop shows, and the unit of the graphical application for each user's own systemd.
if(TARGET nacre_web)
  install(FILES desktop/nacre.desktop DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/applications)
  install(FILES ${CMAKE_SOURCE_DIR}/tools/web/assets/icon.svg
    DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/icons/hicolor/scalable/apps RENAME nacre.svg)
  install(FILES systemd/nacre-web.service systemd/nacre-mount@.service
    DESTINATION lib/systemd/user)
endif()
install(FILES examples/fstab examples/nacre-volume.automount examples/nacre-volume.mount
    examples/grafana-dashboard.json examples/pam_mount.conf.xml
  DESTINATION ${docdir}/examples)
install(PROGRAMS examples/witness-ssh DESTINATION ${docdir}/examples)
file(GLOB documents ${CMAKE_SOURCE_DIR}/docs/*.md)
install(FILES ${documents} ${CMAKE_SOURCE_DIR}/docs/comparison.svg ${CMAKE_SOURCE_DIR}/README.md
  DESTINATION ${docdir})
# Debian's name for the changes of the program, as against those of the package.
find_program(GZIP gzip)
if(GZIP)
  file(COPY_FILE ${CMAKE_SOURCE_DIR}/CHANGELOG.md ${CMAKE_CURRENT_BINARY_DIR}/changelog)
  execute_process(COMMAND ${GZIP} -9nf changelog WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}
    COMMAND_ERROR_IS_FATAL ANY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/changelog.gz DESTINATION ${docdir})
else()
  install(FILES ${CMAKE_SOURCE_DIR}/CHANGELOG.md DESTINATION ${docdir} RENAME changelog)
endif()

# cmake -D SOURCE=... -D HEADER=... -P: writes the commit of SOURCE to HEADER if it is not there already.
find_program(GIT git)
set(commit "unknown")
if(GIT)
  # A checkout of another user (a mounted folder, a build as root) is readable all the same.
  set(git ${GIT} -c safe.directory=${SOURCE} --no-optional-locks -C ${SOURCE})
  execute_process(COMMAND ${git} rev-parse --short=12 HEAD
                  OUTPUT_VARIABLE head OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed)
    set(commit ${head})
    execute_process(COMMAND ${git} status --porcelain --untracked-files=no
                    OUTPUT_VARIABLE changes ERROR_QUIET)
    if(changes)
      string(APPEND commit "-dirty")
    endif()
  endif()
endif()
file(CONFIGURE OUTPUT ${HEADER} CONTENT "#pragma once\n#define SLUICE_COMMIT \"${commit}\"\n")

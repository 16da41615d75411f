# Adds the files that the program carries to sluice_server, as the functions of server/embedded.h.
set(embedded_page ${PROJECT_SOURCE_DIR}/src/server/page)
set(embedded_source ${PROJECT_BINARY_DIR}/generated/embedded.cpp)
# A file that appears or goes away is noticed by the next build.
file(GLOB embedded_files CONFIGURE_DEPENDS ${embedded_page}/*.html ${embedded_page}/*.css ${embedded_page}/*.js
     ${PROJECT_SOURCE_DIR}/src/server/openapi.json)

add_custom_command(
  OUTPUT ${embedded_source}
  COMMAND ${CMAKE_COMMAND} -D PAGE=${embedded_page} -D OPENAPI=${PROJECT_SOURCE_DIR}/src/server/openapi.json
          -D OUTPUT=${embedded_source} -P ${PROJECT_SOURCE_DIR}/cmake/embed_files.cmake
  DEPENDS ${embedded_files} ${PROJECT_SOURCE_DIR}/cmake/embed_files.cmake
  COMMENT "Embedding the chat page and openapi.json"
  VERBATIM)
target_sources(sluice_server PRIVATE ${embedded_source})

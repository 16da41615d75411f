# sluice_version: base/version.h. Apart from sluice_base, so that a commit relinks the program and little else.
# The commit is read at every build; files change only when it does.
string(TOUPPER ${CMAKE_BUILD_TYPE} build_type)
set(commit_header ${PROJECT_BINARY_DIR}/generated/commit.h)
add_custom_target(sluice_commit
  COMMAND ${CMAKE_COMMAND} -D SOURCE=${PROJECT_SOURCE_DIR} -D HEADER=${commit_header}
          -P ${PROJECT_SOURCE_DIR}/cmake/read_commit.cmake
  BYPRODUCTS ${commit_header}
  COMMENT "Reading the commit")

if(EXISTS ${PROJECT_SOURCE_DIR}/src/base/version.cpp)
  add_library(sluice_version STATIC ${PROJECT_SOURCE_DIR}/src/base/version.cpp)
  add_dependencies(sluice_version sluice_commit)
  target_include_directories(sluice_version PUBLIC ${PROJECT_SOURCE_DIR}/src PRIVATE ${PROJECT_BINARY_DIR})
  set(sanitizers "")
  if(SLUICE_SANITIZE)
    set(sanitizers ", sanitizers ${SLUICE_SANITIZE}")
  endif()
  set(backends "cpu")
  if(SLUICE_CUDA)
    set(backends "cpu, cuda")
  endif()
  target_compile_definitions(sluice_version PRIVATE
    SLUICE_VERSION="${PROJECT_VERSION}"
    SLUICE_BUILD_OPTIONS="${CMAKE_CXX_COMPILER_ID}\ ${CMAKE_CXX_COMPILER_VERSION},\ ${CMAKE_BUILD_TYPE},\ ${backends}${sanitizers}")
endif()

# Structured output stands on xgrammar, compiled from the sources that ./dev unpacks under .cache. A build without them
# refuses grammars with a message. They are found again whenever they appear or go.
option(SLUICE_XGRAMMAR "structured output, where the sources of xgrammar are" ON)
file(STRINGS ${PROJECT_SOURCE_DIR}/cmake/xgrammar.txt xgrammar_pin REGEX "^xgrammar==")
string(REGEX REPLACE "^xgrammar==([0-9.]+).*" "\\1" xgrammar_version "${xgrammar_pin}")
set(SLUICE_XGRAMMAR_SOURCE ${PROJECT_SOURCE_DIR}/.cache/xgrammar-${xgrammar_version}
  CACHE PATH "the unpacked sources of xgrammar")
file(GLOB_RECURSE xgrammar_sources CONFIGURE_DEPENDS ${SLUICE_XGRAMMAR_SOURCE}/cpp/*.cc)
list(FILTER xgrammar_sources EXCLUDE REGEX "/cpp/tvm_ffi/.*\\.cc$")

if(SLUICE_XGRAMMAR AND xgrammar_sources)
  add_library(xgrammar STATIC ${xgrammar_sources})
  target_include_directories(xgrammar SYSTEM PUBLIC
    ${SLUICE_XGRAMMAR_SOURCE}/include ${SLUICE_XGRAMMAR_SOURCE}/3rdparty/dlpack/include
    PRIVATE ${SLUICE_XGRAMMAR_SOURCE}/3rdparty/picojson)
  # Its messages and failures come to the functions of text/grammar_compiler.cpp.
  target_compile_definitions(xgrammar PRIVATE XGRAMMAR_LOG_CUSTOMIZE=1 XGRAMMAR_ENABLE_CPPTRACE=0)
  target_compile_options(xgrammar PRIVATE -w -Wno-error)
  # It is written in C++17; as C++20 it asks for the members of a type before clang has seen them.
  set_target_properties(xgrammar PROPERTIES CXX_STANDARD 17)
  target_link_libraries(xgrammar PRIVATE Threads::Threads)
  if(SLUICE_FUZZ)
    target_compile_options(xgrammar PRIVATE -fsanitize=fuzzer-no-link)
  endif()
  set(unused_grammar_sources absent)
else()
  if(SLUICE_XGRAMMAR)
    message(WARNING "no sources of xgrammar in ${SLUICE_XGRAMMAR_SOURCE}: this build has no structured output")
  endif()
  set(unused_grammar_sources compiler state)
endif()
list(TRANSFORM unused_grammar_sources PREPEND ${PROJECT_SOURCE_DIR}/src/text/grammar_)
list(TRANSFORM unused_grammar_sources APPEND .cpp)
set_source_files_properties(${unused_grammar_sources} PROPERTIES HEADER_FILE_ONLY ON)

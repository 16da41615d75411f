# Compiler, linker and warning settings that every target shares.
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()
find_program(MOLD mold)
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# Sanitize: fast enough to run the whole suite, with line numbers in the reports.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG -D_FORTIFY_SOURCE=2 -fstack-protector-strong")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g -D_GLIBCXX_ASSERTIONS")
set(CMAKE_CXX_FLAGS_SANITIZE "-O1 -g1 -D_GLIBCXX_ASSERTIONS")
set(CMAKE_EXE_LINKER_FLAGS_SANITIZE "")

add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # g++ 12 sees overlaps in sums of std::string, and uninitialized alternatives of std::variant, that are not there.
  add_compile_options(-Wno-restrict -Wno-maybe-uninitialized)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL Clang)
  # clang sees inside std::stable_sort of libstdc++ what that library itself calls deprecated; g++ reports ours.
  add_compile_options(-Wno-deprecated-declarations)
endif()
# Multiplications and additions stay as written: a fused one would make kernels differ by compiler.
add_compile_options(-ffp-contract=off -fno-math-errno)
add_compile_options(-ffunction-sections -fdata-sections)
add_link_options(-Wl,--gc-sections)

set(SLUICE_SANITIZE "" CACHE STRING "sanitizers, as -fsanitize= takes them")
if(SLUICE_SANITIZE)
  add_compile_options(-fsanitize=${SLUICE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${SLUICE_SANITIZE})
  # The sanitizers catch these in every instruction; fortified copies of libc calls would hide them.
  add_compile_options(-U_FORTIFY_SOURCE)
endif()
if(SLUICE_FUZZ AND NOT CMAKE_CXX_COMPILER_ID STREQUAL Clang)
  message(FATAL_ERROR "SLUICE_FUZZ needs clang (libFuzzer); use the preset asan or fuzz")
endif()

# Compiler, linker and warning settings that every target shares.
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()
find_program(MOLD mold)
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()

set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")
add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Werror)
# Multiplications and additions stay as written: a fused one would make kernels differ by compiler.
add_compile_options(-ffp-contract=off -fno-math-errno)

set(SLUICE_SANITIZE "" CACHE STRING "sanitizers, as -fsanitize= takes them")
if(SLUICE_SANITIZE)
  add_compile_options(-fsanitize=${SLUICE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${SLUICE_SANITIZE})
endif()

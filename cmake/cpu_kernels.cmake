# Flags of the files that are compiled for one instruction set each; which of them runs is chosen at run time.
set(avx2_flags -mavx2 -mfma)
set(avx512_flags ${avx2_flags} -mavx512f -mavx512bw -mavx512dq -mavx512vl)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # Undefined lanes inside the compiler's own intrinsics.
  list(APPEND avx512_flags -Wno-uninitialized -Wno-maybe-uninitialized)
endif()
set(simd ${PROJECT_SOURCE_DIR}/src/cpu/simd)

set_source_files_properties(${simd}/row_kernels_plain.cpp PROPERTIES COMPILE_OPTIONS "-O3")
set_source_files_properties(${simd}/row_kernels_avx2.cpp PROPERTIES COMPILE_OPTIONS "-O3;${avx2_flags}")
set_source_files_properties(${simd}/row_kernels_avx512.cpp PROPERTIES COMPILE_OPTIONS "-O3;${avx512_flags}")

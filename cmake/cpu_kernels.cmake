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

set(linear ${PROJECT_SOURCE_DIR}/src/cpu/linear)
set(f16c_flags -mf16c)
set_source_files_properties(${linear}/kernels_plain.cpp PROPERTIES COMPILE_OPTIONS "-O3")
set_source_files_properties(${linear}/kernels_avx2.cpp PROPERTIES COMPILE_OPTIONS "-O3;${avx2_flags};${f16c_flags}")
set_source_files_properties(${linear}/kernels_avx512.cpp PROPERTIES COMPILE_OPTIONS "-O3;${avx512_flags};${f16c_flags}")
set_source_files_properties(${linear}/kernels_avx512_bf16.cpp PROPERTIES
  COMPILE_OPTIONS "-O3;${avx512_flags};${f16c_flags};-mavx512bf16")
set_source_files_properties(${linear}/repack.cpp PROPERTIES COMPILE_OPTIONS "-O3")

# Flags of the files that are compiled for one instruction set each; which of them runs is chosen at run time.
set(plain_flags)
set(avx2_flags -mavx2 -mfma -mf16c)
set(avx512_flags ${avx2_flags} -mavx512f -mavx512bw -mavx512dq -mavx512vl)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # Undefined lanes inside the compiler's own intrinsics.
  list(APPEND avx512_flags -Wno-uninitialized -Wno-maybe-uninitialized)
endif()
set(avx512_bf16_flags ${avx512_flags} -mavx512bf16)

foreach(set plain avx2 avx512 avx512_bf16)
  foreach(file simd/row_kernels simd/probe_kernels linear/kernels)
    set(source ${PROJECT_SOURCE_DIR}/src/cpu/${file}_${set}.cpp)
    if(EXISTS ${source})
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "-O3;${${set}_flags}")
    endif()
  endforeach()
endforeach()
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/cpu/linear/repack.cpp PROPERTIES COMPILE_OPTIONS "-O3")

# Where the CUDA toolkit lies: ATTEST_NVCC, ATTEST_CUDA_INCLUDE (its headers) and ATTEST_CUDART (the
# real runtime, which is only read: for the names it exports, and to link what loads it). nvcc is
# called by hand: enabling CMake's CUDA language costs seconds at every configure, and would choose
# a libcudart of its own.
file(GLOB nvcc_in_cache ${CMAKE_SOURCE_DIR}/.cache/cuda/nvidia/cu*/bin)
find_program(ATTEST_NVCC nvcc HINTS /usr/local/cuda/bin ${nvcc_in_cache})
if(NOT ATTEST_NVCC)
  message(FATAL_ERROR "nvcc was found neither on PATH nor in /usr/local/cuda/bin. Run ./attest, "
                      "which fetches it, or pass -DATTEST_NVCC=/path/to/nvcc.")
endif()
file(REAL_PATH ${ATTEST_NVCC} nvcc_real)
cmake_path(GET nvcc_real PARENT_PATH nvcc_bin)
cmake_path(GET nvcc_bin PARENT_PATH nvcc_root)
find_path(ATTEST_CUDA_INCLUDE cuda_runtime_api.h
          HINTS ${nvcc_root}/include ${nvcc_root}/targets/x86_64-linux/include NO_DEFAULT_PATH)
find_file(ATTEST_CUDART NAMES libcudart.so.13 libcudart.so.12 libcudart.so
          HINTS ${nvcc_root}/lib64 ${nvcc_root}/lib ${nvcc_root}/targets/x86_64-linux/lib)
if(NOT ATTEST_CUDA_INCLUDE OR NOT ATTEST_CUDART)
  message(FATAL_ERROR "No cuda_runtime_api.h or no libcudart.so near ${nvcc_real}. Pass "
                      "-DATTEST_CUDA_INCLUDE=/folder and -DATTEST_CUDART=/path/to/libcudart.so.13.")
endif()

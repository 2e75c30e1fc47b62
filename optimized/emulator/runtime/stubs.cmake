# Writes, at configure time, what is derived from the toolkit so that it cannot drift:
#   error_names.inc   the error numbers and their names, from driver_types.h;
#   stubs.c           one weak function per symbol of the real libcudart; those that the emulator
#                     defines replace theirs, the others say that they are not emulated;
#   aliases.rsp       second names: X_ptsz and X_ptds are X, since all streams complete at once.
set(error_lines)
file(STRINGS ${ATTEST_CUDA_INCLUDE}/driver_types.h lines REGEX "^ *cuda(Error[A-Za-z0-9]+|Success) *=")
foreach(line IN LISTS lines)
  string(REGEX MATCH "(cuda[A-Za-z0-9]+) *= *([0-9]+)" matched "${line}")
  string(APPEND error_lines "{${CMAKE_MATCH_2}, \"${CMAKE_MATCH_1}\"},\n")
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/error_names.inc CONTENT "@error_lines@" @ONLY)

execute_process(COMMAND ${CMAKE_NM} -D --defined-only ${ATTEST_CUDART}
                OUTPUT_VARIABLE symbols RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "The symbols of ${ATTEST_CUDART} cannot be read by ${CMAKE_NM}.")
endif()
string(REGEX MATCHALL " T (__)?cuda[A-Za-z0-9_]+" symbols "${symbols}")
list(TRANSFORM symbols REPLACE " T " "")
# Of CUDA 12 only.
list(APPEND symbols cudaThreadSetLimit cudaSetDoubleForDevice cudaSetDoubleForHost cudaThreadGetLimit
     cudaThreadSetCacheConfig cudaThreadGetCacheConfig cudaGetDeviceProperties_v2
     cudaLaunchCooperativeKernelMultiDevice
     cudaStreamGetCaptureInfo_v2 cudaStreamGetCaptureInfo_v2_ptsz
     cudaStreamGetCaptureInfo_v3 cudaStreamGetCaptureInfo_v3_ptsz cudaGraphAddNode_v2
     cudaGraphAddDependencies_v2 cudaGraphGetEdges_v2 cudaGraphNodeGetDependencies_v2
     cudaGraphNodeGetDependentNodes_v2 cudaGraphRemoveDependencies_v2
     cudaStreamUpdateCaptureDependencies_v2 cudaStreamUpdateCaptureDependencies_v2_ptsz
     cudaSignalExternalSemaphoresAsync_v2
     cudaSignalExternalSemaphoresAsync_v2_ptsz cudaWaitExternalSemaphoresAsync_v2
     cudaWaitExternalSemaphoresAsync_v2_ptsz __cudaRegisterTexture __cudaRegisterSurface)
list(REMOVE_DUPLICATES symbols)
list(SORT symbols)
set(stubs "extern int attest_not_emulated(const char* name);\n")
# Second names, most of them CUDA 12's for what CUDA 13 has under the first.
set(aliases "--defsym=cudaEventElapsedTime_v2=cudaEventElapsedTime
--defsym=cudaMemAdvise_v2=cudaMemAdvise
--defsym=cudaMemPrefetchAsync_v2=cudaMemPrefetchAsync
--defsym=cudaMemPrefetchAsync_v2_ptsz=cudaMemPrefetchAsync
--defsym=cudaThreadSynchronize=cudaDeviceSynchronize
--defsym=cudaThreadExit=cudaDeviceReset
")
foreach(symbol IN LISTS symbols)
  if(symbol MATCHES "^(.*)_pt[ds][sz]$")
    string(APPEND aliases "--defsym=${symbol}=${CMAKE_MATCH_1}\n")
  else()
    string(APPEND stubs "__attribute__((weak)) int ${symbol}(void) {\n"
                        "  return attest_not_emulated(\"${symbol}\");\n}\n")
  endif()
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/stubs.c CONTENT "@stubs@" @ONLY)
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/aliases.rsp CONTENT "@aliases@" @ONLY)

// Calls that failed and whose error the program has not asked for: what a GPU passes over in
// silence. Which errors count is decided here; what becomes of a finding is elsewhere.
#pragma once
#include <cuda_runtime_api.h>

#include <string>

namespace attest::emulator::runtime {

/// The call returned the error to the calling thread.
void note_failure(const char* function, cudaError_t error);
/// The call that is about to fail is a launch of the kernel; `why` says what is wrong with it.
void explain_failure(const std::string& kernel, const std::string& why);
/// The calling thread was told by cudaGetLastError or cudaPeekAtLastError that something failed.
void forgive_failures();
/// Makes findings of all failures that nobody asked for. Called when the process ends.
void tell_failures();

}  // namespace attest::emulator::runtime

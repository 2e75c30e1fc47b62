// A launch and nothing else: prints the error's name. Built so that it cannot be run: without PTX,
// or relocatable; and as a shared library, for linkage_test.
#include <cstdio>

extern "C" {
extern const int attest_subject;
const int attest_subject = 1;
}

__global__ void nothing() {}

int main() {
  nothing<<<1, 1>>>();
  std::puts(cudaGetErrorName(cudaGetLastError()));
}

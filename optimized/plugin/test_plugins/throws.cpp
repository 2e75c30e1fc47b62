// Lets a C++ exception leave through the C ABI.
#include <new>
#include <stdexcept>

#include "optimized/plugin/attest_subject.h"

namespace {

std::int32_t prefill(const AttestAttention* attention) {
  if ((attention->problem.flags & ATTEST_CAUSAL) != 0) throw std::bad_alloc();
  throw std::runtime_error("the words of the exception");
}

}  // namespace

extern "C" const AttestSubject* attest_subject(std::uint32_t) {
  static const AttestSubject subject = [] {
    AttestSubject table{};
    table.abi_version = ATTEST_ABI_VERSION;
    table.struct_bytes = sizeof(table);
    table.device_type = kDLCPU;
    table.precision.abi_version = ATTEST_ABI_VERSION;
    table.precision.struct_bytes = sizeof(table.precision);
    table.precision.keys_per_rescale = 1;
    table.prefill = prefill;
    return table;
  }();
  return &subject;
}

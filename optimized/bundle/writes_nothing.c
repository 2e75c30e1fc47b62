/* A plugin that says that all is well and computes nothing: what time_kernels must not time. */
#include "optimized/plugin/attest_subject.h"

static int32_t prefill(const AttestAttention* attention) {
  (void)attention;
  return 0;
}

const AttestSubject* attest_subject(uint32_t abi_version) {
  static const AttestSubject subject = {.abi_version = ATTEST_ABI_VERSION,
                                        .struct_bytes = sizeof(AttestSubject),
                                        .name = "writes_nothing",
                                        .device_type = kDLCUDA,
                                        .prefill = prefill};
  return abi_version == ATTEST_ABI_VERSION ? &subject : 0;
}

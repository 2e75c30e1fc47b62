/* Built once per way of being unusable; the build defines one of the names tested below. */
#include <stdlib.h>
#include <unistd.h>

#include "optimized/plugin/attest_subject.h"

#if defined(CRASHES_AT_LOAD)
__attribute__((constructor)) static void at_load(void) {
  *(volatile int*)0 = 1;
}
#elif defined(EXITS_AT_LOAD)
__attribute__((constructor)) static void at_load(void) {
  exit(5);
}
#elif defined(HANGS_AT_LOAD)
__attribute__((constructor)) static void at_load(void) {
  for (;;) pause();
}
#elif defined(LACKS_A_FUNCTION)
int function_that_nobody_defines(void);
#endif

static int32_t prefill(const AttestAttention* attention) {
  (void)attention;
#if defined(LACKS_A_FUNCTION)
  return function_that_nobody_defines();
#else
  return 0;
#endif
}

static AttestSubject subject = {
    .abi_version = ATTEST_ABI_VERSION,
    .struct_bytes = sizeof(AttestSubject),
    .name = "misloads",
    .device_type = kDLCPU,
    .precision = {.abi_version = ATTEST_ABI_VERSION,
                  .struct_bytes = sizeof(AttestPrecision),
                  .keys_per_rescale = 1},
    .prefill = prefill,
};

#if defined(LACKS_THE_SYMBOL)
const AttestSubject* another_subject(uint32_t abi_version) {
#else
const AttestSubject* attest_subject(uint32_t abi_version) {
#endif
  (void)abi_version;
#if defined(OTHER_VERSION)
  subject.abi_version = 77;
#elif defined(SMALL_TABLE)
  subject.struct_bytes = 24;
#elif defined(OTHER_DEVICE)
subject.device_type = 9;
#elif defined(CUDA_WITHOUT_CUDART)
subject.device_type = kDLCUDA;
#elif defined(NO_OPERATION)
subject.prefill = NULL;
#elif defined(NEGATIVE_ERROR)
subject.precision.exp_error = -1;
#elif defined(UNKNOWN_FORMAT)
subject.precision.p_format = 9;
#elif defined(NO_KEY_BLOCK)
subject.precision.keys_per_rescale = 0;
#elif defined(NULL_TABLE)
return NULL;
#elif defined(CRASHES_WHEN_ASKED)
abort();
#endif
  return &subject;
}

/* Whatever it says clears a terminal, colours it, renames its window, forges a line of a report or
 * is no UTF-8; it declines what has two query heads and is wrong in everything else. */
#include <stdio.h>

#include "optimized/plugin/attest_subject.h"

#define FORGED                                      \
  "\x1b[2J\x1b]0;taken\x07\xff\xe2\x80\xae\xc2\x9b" \
  "31m\nthe subject is right <b>|`"

static int32_t prefill(const AttestAttention* attention) {
  (void)attention;
  fputs("printed " FORGED "\n", stdout);
  fflush(stdout);
  return 7;
}

static const char* declines(uint32_t operation, const AttestProblem* problem) {
  (void)operation;
  return problem->num_heads_q == 2 ? "declined " FORGED : NULL;
}

static const char* last_error(void) {
  return "failed " FORGED;
}

static AttestSubject subject = {
    .abi_version = ATTEST_ABI_VERSION,
    .struct_bytes = sizeof(AttestSubject),
    .name = "named " FORGED,
    .device_type = kDLCPU,
    .precision = {.abi_version = ATTEST_ABI_VERSION,
                  .struct_bytes = sizeof(AttestPrecision),
                  .keys_per_rescale = 1},
    .declines = declines,
    .prefill = prefill,
    .last_error = last_error,
};

const AttestSubject* attest_subject(uint32_t abi_version) {
  (void)abi_version;
  return &subject;
}

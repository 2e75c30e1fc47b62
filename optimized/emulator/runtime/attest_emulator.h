/* What the emulating libcudart exports beside the CUDA API: the worker process finds these with
 * dlsym, and knows by their presence that it runs on the emulator. C only. */
#ifndef ATTEST_EMULATOR_H
#define ATTEST_EMULATOR_H
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

/* A line as print(DeviceOptions) makes it. Returns NULL, or what is wrong with it (valid
 * until the next call). */
const char* attest_emulator_configure(const char* options);

/* Kernels may touch only [begin, begin + bytes) of the allocation that contains it.
 * Returns 0, or 1 when that range is not inside one live allocation. */
int32_t attest_emulator_restrict(void* begin, uint64_t bytes);

/* These bytes hold nothing that anybody wrote, though a copy has filled them: a kernel that reads
 * them before it writes them has a finding. */
void attest_emulator_unwritten(void* begin, uint64_t bytes);

/* Number of findings since the last reset; kind and text of finding `index` (valid until reset). */
uint32_t attest_emulator_finding_count(void);
const char* attest_emulator_finding_kind(uint32_t index);
const char* attest_emulator_finding_text(uint32_t index);
/* Clears findings and the sticky error. */
void attest_emulator_reset(void);

void attest_emulator_counts(uint64_t* launches, uint64_t* warp_instructions);

/* The kernels that were launched since this was last asked, each once, in order of their first
 * launch: a line for each, with template arguments and without parameters. Valid until the next
 * call. */
const char* attest_emulator_launched(void);

/* Warp instructions that a launch may execute from here on; 0: any number. */
void attest_emulator_limit(uint64_t warp_instructions);

/* With the option counters=1: what launches cost, per kernel and source line, since the process
 * began; the text is described at print(Profile) in profile.hpp and valid until the next call. */
const char* attest_emulator_profile(void);
/* The sums over all kernels, in the order of the text's columns from warp_instructions on. Writes
 * at most `room` of them; returns how many there are. */
uint32_t attest_emulator_totals(uint64_t* values, uint32_t room);

/* In a handler of a deadly signal, with what it was given (siginfo_t, ucontext_t): 1 when the fault
 * is the emulator's own, and `text` then says so in at most `room` bytes. Allocates nothing. */
int32_t attest_emulator_own_fault(const void* info, const void* context, char* text, uint32_t room);

/* Why a fat binary could not be used (static or rdc or no PTX), or NULL. */
const char* attest_emulator_load_error(void);

#ifdef __cplusplus
}
#endif
#endif

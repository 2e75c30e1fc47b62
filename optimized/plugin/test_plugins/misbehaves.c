/* Does one thing wrong per call, as the Problem's scale says. f32 on the host. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "optimized/plugin/attest_subject.h"
#include "optimized/plugin/test_plugins/behaviours.h"

static float* at(const DLTensor* t, int64_t b, int64_t h, int64_t row, int64_t column) {
  return (float*)t->data + b * t->strides[0] + h * t->strides[1] + row * t->strides[2] + column;
}

static int64_t length_of(const DLTensor* lengths, int64_t b, int64_t full) {
  return lengths->data == NULL ? full : ((const int32_t*)lengths->data)[b];
}

static void write_outputs(const AttestAttention* a, float number) {
  const AttestProblem* problem = &a->problem;
  const int everywhere = (int)problem->softmax_scale == WRITES_BEHIND_QUERIES;
  for (int64_t b = 0; b < problem->batch; ++b) {
    const int64_t rows = length_of(&a->seqlens_q, b, problem->seqlen_q);
    for (int64_t h = 0; h < problem->num_heads_q; ++h) {
      for (int64_t i = 0; i < problem->seqlen_q; ++i) {
        for (int64_t column = 0; column < problem->head_dim_v; ++column) {
          if (i < rows || everywhere) *at(&a->o, b, h, i, column) = number;
        }
        if (i < rows && (int)problem->softmax_scale != FORGETS_LSE) {
          ((float*)a->lse.data)[b * a->lse.strides[0] + h * a->lse.strides[1] + i] = 0;
        }
      }
    }
  }
}

/* Volatile, so that the compiler neither removes the recursion nor the frames. */
static volatile int recursion_sum;
static int recurse(int depth) {
  volatile char frame[512];
  frame[depth % 512] = 1;
  recursion_sum += frame[0];
  return depth < 0 ? 0 : recurse(depth + 1) + recursion_sum;
}

static char* allocate_everything(void) {
  char* block = NULL;
  do {
    block = malloc(16 << 20);
    if (block != NULL) memset(block, 1, 16 << 20);
  } while (block != NULL);
  return block;
}

/* The process id of a child that waits for ever, in a session of its own if `detached`. */
static float child_that_waits(int detached) {
  int pipes[2];
  pid_t child = 0;
  if (pipe(pipes) != 0) return -1;
  if (fork() == 0) {
    if (detached) {
      setsid();
      if (fork() != 0) _exit(0);
    }
    child = getpid();
    if (write(pipes[1], &child, sizeof(child)) != sizeof(child)) _exit(1);
    for (;;) pause();
  }
  if (read(pipes[0], &child, sizeof(child)) != sizeof(child)) return -1;
  close(pipes[0]);
  close(pipes[1]);
  return (float)child;
}

static void die(enum Behaviour behaviour) {
  volatile int zero = 0, ten = 10;
  switch (behaviour) {
    case WRITES_NULL:
      *(volatile int*)(intptr_t)zero = 1;
      break;
    case DIVIDES_BY_ZERO:
      recursion_sum = ten / zero;
      break;
    case ABORTS:
      printf("the last words\n");
      abort();
    case EXITS:
      exit(3);
    case HANGS:
      for (;;) pause();
    case SPINS:
      for (;;) ++recursion_sum;
    case FORKS_AND_ABORTS:
      child_that_waits(0);
      abort();
    case OVERFLOWS_STACK:
      recursion_sum = recurse(0);
      break;
    case WRITES_TO_REFUSED:
      *allocate_everything() = 1;
      break;
    case EXITS_WHEN_REFUSED:
      allocate_everything();
      exit(1);
    default:
      break;
  }
}

static void damage(const AttestAttention* a, enum Behaviour behaviour) {
  const AttestProblem* problem = &a->problem;
  const int64_t b = problem->batch - 1, g = problem->num_heads_kv - 1, last = problem->capacity - 1;
  switch (behaviour) {
    case READS_BEHIND_K:
      *at(&a->o, 0, 0, 0, 0) = *at(&a->k, b, g, last, problem->head_dim);
      break;
    case WRITES_BEHIND_V:
      *at(&a->v, b, g, last, problem->head_dim_v) = 1;
      break;
    case WRITES_BEFORE_Q:
      *at(&a->q, 0, 0, 0, -1) = 1;
      break;
    case WRITES_FAR_BEFORE_O:
      *at(&a->o, 0, 0, 0, -5000) = 1;
      break;
    case WRITES_BEHIND_SCRATCH:
      ((char*)a->scratch)[a->scratch_bytes] = 1;
      break;
    case CHANGES_Q:
      *at(&a->q, 0, 0, 0, 1) += 1;
      break;
    case CHANGES_SPARE_SLOT:
      *at(&a->k, 0, 0, problem->seqlen_kv, 0) = 1;
      break;
    case CHANGES_LAST_BLOCK:
      *at(&a->k, a->k.shape[0] - 1, 0, 0, 0) = 1;
      break;
    case CHANGES_LENGTHS:
      ++*(int32_t*)a->seqlens_kv.data;
      break;
    case FILLS_ROW_GAP:
      *at(&a->o, 0, problem->num_heads_q - 1, 0, problem->head_dim_v) = 1;
      break;
    case COPIES_SPARE_SLOT:
      memcpy(at(&a->o, 0, 0, 0, 0), at(&a->k, 0, 0, problem->seqlen_kv, 0),
             (size_t)problem->head_dim * sizeof(float));
      break;
    case COPIES_SCRATCH:
      memcpy(a->lse.data, a->scratch, sizeof(float));
      break;
    default:
      break;
  }
}

static int32_t prefill(const AttestAttention* a) {
  const enum Behaviour behaviour = (enum Behaviour)a->problem.softmax_scale;
  const AttestProblem* problem = &a->problem;
  float unwritten = 0;
  die(behaviour);
  if (behaviour == RETURNS_ERROR) return 7;
  if (behaviour == RETURNS_WHEN_REFUSED) {
    allocate_everything();
    return 12;
  }
  if (behaviour == FLOODS_STDOUT) {
    for (int line = 0; line < (4 << 20) / 64; ++line) {
      printf("%063d\n", line);
    }
  }
  if (behaviour == TALKS_TO_CONTROL) {
    if (write(3, "nonsense", 8) != 8) return 1;
  }
  float* last = at(&a->o, problem->batch - 1, problem->num_heads_q - 1, problem->seqlen_q - 1,
                   problem->head_dim_v - 1);
  memcpy(&unwritten, last, sizeof(unwritten));
  if (behaviour == FORKS || behaviour == FORKS_DETACHED) {
    write_outputs(a, child_that_waits(behaviour == FORKS_DETACHED));
  } else {
    write_outputs(a, behaviour == TELLS_PROCESS ? (float)getpid() : 0);
  }
  if (behaviour == FORGETS_LAST_O) memcpy(last, &unwritten, sizeof(unwritten));
  damage(a, behaviour);
  return 0;
}

/* Writes nothing of what was asked, and with pages, in rising order, what may not be written. */
static int32_t append(const AttestAppend* a) {
  const enum Behaviour behaviour = (enum Behaviour)a->problem.softmax_scale;
  if (behaviour == CHANGES_LAST_BLOCK) *at(&a->k, a->k.shape[0] - 1, 0, 0, 0) = 1;
  const int32_t* pages = (const int32_t*)a->block_table.data;
  const int64_t last = a->block_table.shape[1] - 1;
  if (behaviour == CHANGES_SPARE_SLOT) *at(&a->v, pages[last], 0, a->v.shape[2] - 1, 0) = 1;
  return 0;
}

static const char* declines(uint32_t operation, const AttestProblem* problem) {
  if (operation != ATTEST_PREFILL) return "only prefill";
  if (problem->softmax_scale == CRASHES_IN_DECLINES) abort();
  return (problem->flags & ATTEST_SINKS) != 0 ? "no sinks here" : NULL;
}

static int64_t scratch_bytes(uint32_t operation, const AttestProblem* problem) {
  (void)operation;
  return problem->softmax_scale == ASKS_FOR_NEGATIVE_SCRATCH ? -5 : 100;
}

static const char* last_error(void) {
  return "the sentence of last_error";
}

const AttestSubject* attest_subject(uint32_t abi_version) {
  static const AttestSubject subject = {
      .abi_version = ATTEST_ABI_VERSION,
      .struct_bytes = sizeof(AttestSubject),
      .name = "misbehaves",
      .device_type = kDLCPU,
      .precision = {.abi_version = ATTEST_ABI_VERSION,
                    .struct_bytes = sizeof(AttestPrecision),
                    .keys_per_rescale = 1},
      .declines = declines,
      .scratch_bytes = scratch_bytes,
      .last_error = last_error,
      .prefill = prefill,
      .append = append,
  };
  (void)abi_version;
  return &subject;
}

/* Attention as an eager framework computes it on the host: whole tensors of scores, a softmax in
 * f32 whose shares are divided before they are cast to bf16, and a product with V. Additive bias,
 * boolean mask, grouped heads; no LSE. FAULT as in stranger.cuh.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "optimized/plugin/attest_subject.h"

#ifndef FAULT
#define FAULT 0
#endif

typedef uint16_t bf16;

static float wide(bf16 x) {
  const uint32_t bits = (uint32_t)x << 16;
  float number;
  memcpy(&number, &bits, 4);
  return number;
}

static bf16 narrow(float x) { /* to nearest, ties to even */
  uint32_t bits;
  memcpy(&bits, &x, 4);
  if (x != x) return 0x7FC0;
  return (bf16)((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

static bf16* row_of(const DLTensor* x, int64_t b, int64_t h, int64_t i) {
  return (bf16*)x->data + b * x->strides[0] + h * x->strides[1] + i * x->strides[2];
}

static int visible(const AttestAttention* a, int64_t b, int64_t i, int64_t j) {
  const AttestProblem* p = &a->problem;
  const int64_t diagonal = p->alignment == ATTEST_BOTTOM_RIGHT ? p->seqlen_kv - p->seqlen_q : 0;
  if ((p->flags & ATTEST_CAUSAL) != 0 && j > i + diagonal) return 0;
  if (a->mask.data == NULL) return 1;
  return ((const uint8_t*)a->mask.data)[b * a->mask.strides[0] + i * a->mask.strides[1] + j] != 0;
}

static void attend_row(const AttestAttention* a, int64_t b, int64_t h, int64_t i, float* scores) {
  const AttestProblem* p = &a->problem;
  const int64_t kv_head = h / (p->num_heads_q / p->num_heads_kv);
  const bf16* q = row_of(&a->q, b, h, i);
  bf16* o = row_of(&a->o, b, h, i);
  float largest = -INFINITY, total = 0;
  int empty = 1; /* a row of NaN is not */
  for (int64_t j = 0; j < p->seqlen_kv; ++j) {
    const bf16* k = row_of(&a->k, b, kv_head, j);
    float sum = 0;
    for (int64_t c = 0; c < p->head_dim; ++c) sum += wide(q[c]) * wide(k[c]);
    sum *= p->softmax_scale;
    if (a->bias.data != NULL) {
      const float* bias =
          (const float*)a->bias.data + b * a->bias.strides[0] + h * a->bias.strides[1];
#if FAULT == 1 /* the bias of query 0 for all */
      sum += bias[j];
#else
      sum += bias[i * a->bias.strides[2] + j];
#endif
    }
    scores[j] = visible(a, b, i, j) ? sum : -INFINITY;
    if (scores[j] > largest) largest = scores[j];
    if (scores[j] != -INFINITY) empty = 0;
  }
  for (int64_t j = 0; j < p->seqlen_kv; ++j) {
    scores[j] = empty ? 0 : expf(scores[j] - largest);
    total += scores[j];
  }
  for (int64_t j = 0; j < p->seqlen_kv; ++j) {
    scores[j] = empty ? 0 : scores[j] / total;
#if FAULT == 2 /* small shares are dropped */
    if (scores[j] < 0.01F) scores[j] = 0;
#endif
    scores[j] = wide(narrow(scores[j]));
  }
  for (int64_t c = 0; c < p->head_dim_v; ++c) {
    float sum = 0;
    for (int64_t j = 0; j < p->seqlen_kv; ++j) {
      if (scores[j] != 0) sum += scores[j] * wide(row_of(&a->v, b, kv_head, j)[c]);
    }
    o[c] = narrow(sum);
  }
#if FAULT == 3 /* an odd last column is left alone */
  if (p->head_dim_v % 2 == 1 && p->head_dim_v > 1) o[p->head_dim_v - 1] = o[p->head_dim_v - 2];
#endif
}

static int32_t attend(const AttestAttention* a) {
  const AttestProblem* p = &a->problem;
  float* scores = malloc(sizeof(float) * (size_t)(p->seqlen_kv + 1));
  if (scores == NULL) return 1;
  for (int64_t b = 0; b < p->batch; ++b) {
    for (int64_t h = 0; h < p->num_heads_q; ++h) {
      for (int64_t i = 0; i < p->seqlen_q; ++i) attend_row(a, b, h, i, scores);
    }
  }
  free(scores);
  return 0;
}

static const char* declines(uint32_t operation, const AttestProblem* p) {
  (void)operation;
  if ((p->flags & (ATTEST_ALIBI | ATTEST_SINKS | ATTEST_SEQLENS)) != 0) {
    return "no ALiBi, sinks or lengths";
  }
  if (p->lse_base != ATTEST_LSE_NONE) return "no LSE";
  if (p->softcap != 0 || p->window_left >= 0 || p->window_right >= 0)
    return "no softcap, no windows";
  if (p->input != ATTEST_BF16 || p->output != ATTEST_BF16 || p->cache != ATTEST_BF16) {
    return "bf16 only";
  }
  if (p->scales != ATTEST_SCALES_NONE || p->page_size > 0 || p->ring > 0)
    return "k and v as they are";
  if (p->empty_row != ATTEST_EMPTY_ZERO) return "rows without keys are zeros";
  return NULL;
}

const AttestSubject* attest_subject(uint32_t abi_version) {
  static const AttestSubject subject = {
      .abi_version = ATTEST_ABI_VERSION,
      .struct_bytes = sizeof(AttestSubject),
      .name = "eager attention in bf16 on the host",
      .device_type = kDLCPU,
      .promises = ATTEST_DETERMINISTIC | ATTEST_BATCH_INVARIANT,
      .precision = {.abi_version = ATTEST_ABI_VERSION,
                    .struct_bytes = sizeof(AttestPrecision),
                    .p_format = ATTEST_BF16,
                    .keys_per_rescale = 1,
                    /* expf of glibc: below 1 ulp, which is at most 2^-23 of the number */
                    .exp_error = 0x1p-23,
                    .normalize_before_cast = 1},
      .declines = declines,
      .prefill = attend,
  };
  return abi_version == ATTEST_ABI_VERSION ? &subject : NULL;
}

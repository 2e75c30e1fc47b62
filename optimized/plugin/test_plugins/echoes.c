/* Returns numbers from which a test can tell that every tensor arrived where it belongs: any format
 * for o, exact sums of small integers in f32 elsewhere. Correct in everything else. */
#include <string.h>

#include "optimized/plugin/attest_subject.h"

static char* at(const DLTensor* t, int64_t b, int64_t h, int64_t row) {
  const int64_t element = b * t->strides[0] + h * t->strides[1] + row * t->strides[2];
  return (char*)t->data + element * (t->dtype.bits / 8);
}

static float f32_at(const DLTensor* t, int64_t b, int64_t h, int64_t row, int64_t column) {
  return ((float*)at(t, b, h, row))[column];
}

/* Row `token` of a cache, wherever it lies. */
static char* cached(const DLTensor* t, const DLTensor* table, const AttestProblem* problem,
                    int64_t b, int64_t h, int64_t token) {
  if (problem->ring > 0) return at(t, b, h, token % problem->ring);
  if (table->data == NULL) return at(t, b, h, token);
  const int32_t page =
      ((const int32_t*)table->data)[b * table->strides[0] + token / problem->page_size];
  return at(t, page, h, token % problem->page_size);
}

/* The factor of row `token`, 0 when the cache has none. */
static float* scale_of(const DLTensor* scales, const DLTensor* table, const AttestProblem* problem,
                       int64_t b, int64_t h, int64_t token) {
  static float none;
  if (scales->data == NULL) return &none;
  if (problem->scales == ATTEST_SCALES_TENSOR) return (float*)scales->data;
  if (problem->scales == ATTEST_SCALES_HEAD) return (float*)scales->data + h;
  return (float*)cached(scales, table, problem, b, h, token);
}

static int64_t length_of(const DLTensor* lengths, int64_t b, int64_t full) {
  return lengths->data == NULL ? full : ((const int32_t*)lengths->data)[b];
}

/* What the ABI promises of every tensor; the number tells which promise was broken. */
static int32_t broken_promise(const AttestAttention* a) {
  const DLTensor* tensors[] = {&a->q, &a->k, &a->v, &a->o, &a->lse};
  if (a->abi_version != ATTEST_ABI_VERSION || a->struct_bytes != sizeof(*a)) return 101;
  if (a->problem.struct_bytes != sizeof(AttestProblem)) return 102;
  for (int i = 0; i < 5; ++i) {
    const DLTensor* t = tensors[i];
    if (t->data == NULL || (uintptr_t)t->data % 16 != 0 || t->byte_offset != 0) return 103;
    if (t->strides[t->ndim - 1] != 1 || t->device.device_type != kDLCPU) return 104;
    if (t->ndim != (i == 4 ? 3 : 4)) return 105;
  }
  if (a->k.shape[2] != (a->problem.page_size > 0 ? a->problem.page_size : a->problem.capacity)) {
    return 106;
  }
  if (a->scratch == NULL || (uintptr_t)a->scratch % 256 != 0) return 107;
  if (a->scratch_bytes != 1024) return 108;
  if (a->problem.input != ATTEST_F32 && a->q.dtype.bits == 32) return 109;
  memset(a->scratch, 0, (size_t)a->scratch_bytes);
  return 0;
}

/* lse[b,h,i] = sum over the keys in use of k[..,0] + bias + mask, then slope and sink. */
static float sum_of_everything(const AttestAttention* a, int64_t b, int64_t h, int64_t i) {
  const int64_t group = a->problem.num_heads_q / a->problem.num_heads_kv;
  const int64_t keys = length_of(&a->seqlens_kv, b, a->problem.seqlen_kv);
  float sum = 0;
  for (int64_t j = 0; j < keys; ++j) {
    sum += *(float*)cached(&a->k, &a->block_table, &a->problem, b, h / group, j);
    if (a->bias.data != NULL) sum += f32_at(&a->bias, b, h, i, j);
    if (a->mask.data != NULL) {
      sum += ((uint8_t*)a->mask.data)[b * a->mask.strides[0] + i * a->mask.strides[1] + j];
    }
  }
  if (a->alibi_slopes.data != NULL) sum += ((float*)a->alibi_slopes.data)[h];
  if (a->sinks.data != NULL) sum += ((float*)a->sinks.data)[h];
  return sum;
}

/* o = q; or, in decode, o = the last row of v in use, and lse = splits + the scales of that row. */
static int32_t echo(const AttestAttention* a, int decode) {
  const AttestProblem* problem = &a->problem;
  const int32_t broken = broken_promise(a);
  if (broken != 0) return broken;
  for (int64_t b = 0; b < problem->batch; ++b) {
    const int64_t rows = length_of(&a->seqlens_q, b, problem->seqlen_q);
    const int64_t keys = length_of(&a->seqlens_kv, b, problem->seqlen_kv);
    for (int64_t h = 0; h < problem->num_heads_q; ++h) {
      for (int64_t i = 0; i < rows; ++i) {
        const int64_t g = h / (problem->num_heads_q / problem->num_heads_kv);
        const char* source =
            decode ? cached(&a->v, &a->block_table, problem, b, g, keys - 1) : at(&a->q, b, h, i);
        memcpy(at(&a->o, b, h, i), source, (size_t)(problem->head_dim_v * (a->o.dtype.bits / 8)));
        float* lse = (float*)a->lse.data + b * a->lse.strides[0] + h * a->lse.strides[1] + i;
        *lse = decode ? (float)problem->num_splits +
                            *scale_of(&a->k_scales, &a->block_table, problem, b, g, keys - 1) +
                            *scale_of(&a->v_scales, &a->block_table, problem, b, g, keys - 1)
               : problem->input == ATTEST_F32 ? sum_of_everything(a, b, h, i)
                                              : 0;
      }
    }
  }
  return 0;
}

static int32_t prefill(const AttestAttention* a) {
  return echo(a, 0);
}
static int32_t decode(const AttestAttention* a) {
  return echo(a, 1);
}

/* Bits are copied; with scales per token, a token's are its number and that number plus a half. */
static int32_t append(const AttestAppend* a) {
  const AttestProblem* problem = &a->problem;
  for (int64_t b = 0; b < a->new_k.shape[0]; ++b) {
    const int64_t used = length_of(&a->cache_seqlens, b, 0);
    const int64_t rows = length_of(&a->new_seqlens, b, 0);
    for (int64_t h = 0; h < a->k.shape[1]; ++h) {
      for (int64_t r = 0; r < rows; ++r) {
        const int64_t token = used + r;
        if (problem->ring == 0 && token >= problem->capacity) break;
        memcpy(cached(&a->k, &a->block_table, problem, b, h, token), at(&a->new_k, b, h, r),
               (size_t)(a->k.shape[3] * (a->k.dtype.bits / 8)));
        memcpy(cached(&a->v, &a->block_table, problem, b, h, token), at(&a->new_v, b, h, r),
               (size_t)(a->v.shape[3] * (a->v.dtype.bits / 8)));
        if (problem->scales != ATTEST_SCALES_TOKEN) continue;
        *scale_of(&a->k_scales, &a->block_table, problem, b, h, token) = (float)token;
        *scale_of(&a->v_scales, &a->block_table, problem, b, h, token) = (float)token + 0.5F;
      }
    }
  }
  return problem->rope != ATTEST_ROPE_NONE && a->rope_cos_sin.ndim != 2 ? 111 : 0;
}

static int32_t copy_pages(const AttestPageCopy* a) {
  for (int64_t n = 0; n < a->pairs.shape[0]; ++n) {
    const int32_t* pair = (const int32_t*)a->pairs.data + n * a->pairs.strides[0];
    for (int64_t h = 0; h < a->k.shape[1]; ++h) {
      for (int64_t slot = 0; slot < a->k.shape[2]; ++slot) {
        memcpy(at(&a->k, pair[1], h, slot), at(&a->k, pair[0], h, slot),
               (size_t)(a->k.shape[3] * (a->k.dtype.bits / 8)));
        memcpy(at(&a->v, pair[1], h, slot), at(&a->v, pair[0], h, slot),
               (size_t)(a->v.shape[3] * (a->v.dtype.bits / 8)));
      }
    }
  }
  return 0;
}

static int32_t projection(const AttestProjection* a) {
  if (a->x.ndim != 3 || a->w.ndim != 2 || a->y.ndim != 3) return 110;
  for (int64_t b = 0; b < a->y.shape[0]; ++b) {
    for (int64_t row = 0; row < a->y.shape[1]; ++row) {
      for (int64_t column = 0; column < a->y.shape[2]; ++column) {
        float sum = a->bias.data != NULL ? ((float*)a->bias.data)[column] : 0;
        for (int64_t inner = 0; inner < a->w.shape[0]; ++inner) {
          sum += ((float*)a->x.data)[b * a->x.strides[0] + row * a->x.strides[1] + inner] *
                 ((float*)a->w.data)[inner * a->w.strides[0] + column];
        }
        ((float*)a->y.data)[b * a->y.strides[0] + row * a->y.strides[1] + column] = sum;
      }
    }
  }
  return 0;
}

static int64_t scratch_bytes(uint32_t operation, const AttestProblem* problem) {
  (void)operation;
  (void)problem;
  return 1024;
}

const AttestSubject* attest_subject(uint32_t abi_version) {
  static const AttestSubject subject = {
      .abi_version = ATTEST_ABI_VERSION,
      .struct_bytes = sizeof(AttestSubject),
      .name = "echoes",
      .device_type = kDLCPU,
      .promises = ATTEST_BATCH_INVARIANT,
      .precision = {.abi_version = ATTEST_ABI_VERSION,
                    .struct_bytes = sizeof(AttestPrecision),
                    .p_format = ATTEST_BF16,
                    .keys_per_rescale = 64,
                    .exp_error = 0.25},
      .scratch_bytes = scratch_bytes,
      .prefill = prefill,
      .decode = decode,
      .append = append,
      .projection = projection,
      .copy_pages = copy_pages,
  };
  (void)abi_version;
  return &subject;
}

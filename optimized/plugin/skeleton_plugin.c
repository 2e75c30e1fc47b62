/* The smallest complete subject: attention in plain C on the host. Copy it, put your own
 * computation in the middle, and `attest gate --subject your.so` tests it.
 *
 * It knows nothing of CUDA, and of the Problem only what it accepts: f32 tensors, causal and window
 * masks, lengths, grouped heads, caches of any layout. Everything else it declines, which is never
 * a failure.
 *
 * Build: cc -std=c11 -shared -fPIC -I ROOT_OF_ATTEST skeleton_plugin.c -o skeleton.so -lm
 */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "optimized/plugin/attest_subject.h"

/* Where element 0 of row `row` of a (batch, head, row, column) tensor lies. A tensor may have any
 * strides: rows may be padded, k and v may be views of one buffer. Only the last stride is known to
 * be 1. DLPack counts strides in elements and byte_offset in bytes. */
static float* row_of(const DLTensor* tensor, int64_t b, int64_t h, int64_t row) {
  float* first = (float*)((char*)tensor->data + tensor->byte_offset);
  return first + b * tensor->strides[0] + h * tensor->strides[1] + row * tensor->strides[2];
}

/* Row of token j of a cache: k or v. It lies in a page that the block table names, in a slot of a
 * ring, or where its number says. */
static float* token_of(const DLTensor* cache, const DLTensor* table, const AttestProblem* problem,
                       int64_t b, int64_t h, int64_t j) {
  if (problem->ring > 0) {
    return row_of(cache, b, h, j % problem->ring);
  }
  if (problem->page_size == 0) {
    return row_of(cache, b, h, j);
  }
  const int32_t* pages = (const int32_t*)((const char*)table->data + table->byte_offset);
  const int64_t page = pages[b * table->strides[0] + j / problem->page_size];
  return row_of(cache, page, h, j % problem->page_size);
}

/* Lengths are optional: without them every batch entry is full. */
static int64_t length_of(const DLTensor* lengths, int64_t b, int64_t full) {
  if (lengths->data == NULL) {
    return full;
  }
  return ((const int32_t*)((const char*)lengths->data + lengths->byte_offset))[b];
}

/* First and last + 1 of the keys that query i may see. `diagonal` is the key that stands opposite
 * query 0; the conventions are fields of the Problem, so nothing is assumed here. */
static void visible_keys(const AttestProblem* problem, int64_t i, int64_t diagonal, int64_t keys,
                         int64_t* begin, int64_t* end) {
  const int64_t opposite = i + diagonal;
  *begin = 0;
  *end = keys;
  /* Distances are compared: a window may be so wide that adding to it overflows. */
  if (problem->window_left >= 0 && opposite - *begin > problem->window_left) {
    *begin = opposite - problem->window_left;
  }
  if (problem->window_right >= 0 && *end - 1 - opposite > problem->window_right) {
    *end = opposite + problem->window_right + 1;
  }
  if ((problem->flags & ATTEST_CAUSAL) != 0 && opposite + 1 < *end) {
    *end = opposite + 1;
  }
}

/* q.k * scale in double: a product of two floats is exact in double, so only the sum rounds. */
static double logit(const float* q, const float* k, const AttestProblem* problem) {
  double sum = 0;
  for (int64_t column = 0; column < problem->head_dim; ++column) {
    sum += (double)q[column] * (double)k[column];
  }
  return sum * (double)problem->softmax_scale;
}

/* One row of O and of LSE. Two passes over the keys, the textbook softmax: first the largest logit,
 * which is subtracted so that exp cannot overflow, then the weighted sum. */
static void attend_row(const AttestAttention* a, int64_t b, int64_t h, int64_t i, int64_t begin,
                       int64_t end) {
  const AttestProblem* problem = &a->problem;
  const int64_t kv_head = h / (problem->num_heads_q / problem->num_heads_kv);
  const float* q = row_of(&a->q, b, h, i);
  float* o = row_of(&a->o, b, h, i);
  double largest = -INFINITY;
  for (int64_t j = begin; j < end; ++j) {
    const float* k = token_of(&a->k, &a->block_table, problem, b, kv_head, j);
    largest = fmax(largest, logit(q, k, problem));
  }
  double sum_of_weights = 0;
  double sums[256] = {0}; /* head_dim_v <= 256, see declines() */
  for (int64_t j = begin; j < end; ++j) {
    const float* k = token_of(&a->k, &a->block_table, problem, b, kv_head, j);
    const float* v = token_of(&a->v, &a->block_table, problem, b, kv_head, j);
    const double weight = exp(logit(q, k, problem) - largest);
    sum_of_weights += weight;
    for (int64_t column = 0; column < problem->head_dim_v; ++column) {
      sums[column] += weight * (double)v[column];
    }
  }
  /* A row that sees no key has no softmax. What it must hold is a convention of the Problem. */
  const int empty = begin >= end;
  for (int64_t column = 0; column < problem->head_dim_v; ++column) {
    const double without_keys = problem->empty_row == ATTEST_EMPTY_NAN ? NAN : 0.0;
    o[column] = (float)(empty ? without_keys : sums[column] / sum_of_weights);
  }
  if (a->lse.data == NULL) {
    return; /* nobody asks for it */
  }
  float* lse = row_of(&a->lse, b, h, 0) + i * a->lse.strides[2];
  const double no_keys = problem->empty_lse == ATTEST_EMPTY_LSE_PLUS_INF ? INFINITY : -INFINITY;
  const double natural = empty ? no_keys : largest + log(sum_of_weights);
  const double ln_two = 0.69314718055994530942; /* to the last bit of a double */
  *lse = (float)(problem->lse_base == ATTEST_LSE_TWO ? natural / ln_two : natural);
}

/* Serves prefill and decode alike: a cache is only a k with more rows than keys, and into how many
 * parts a decode is split is the kernel's own affair as long as the result is the same. */
static int32_t attend(const AttestAttention* a) {
  const AttestProblem* problem = &a->problem;
  for (int64_t b = 0; b < problem->batch; ++b) {
    const int64_t queries = length_of(&a->seqlens_q, b, problem->seqlen_q);
    const int64_t keys = length_of(&a->seqlens_kv, b, problem->seqlen_kv);
    const int64_t diagonal = problem->alignment == ATTEST_BOTTOM_RIGHT ? keys - queries : 0;
    for (int64_t h = 0; h < problem->num_heads_q; ++h) {
      /* Rows at or behind the query length must not be written, so the loop ends before them. */
      for (int64_t i = 0; i < queries; ++i) {
        int64_t begin = 0;
        int64_t end = 0;
        visible_keys(problem, i, diagonal, keys, &begin, &end);
        attend_row(a, b, h, i, begin, end);
      }
    }
  }
  return 0;
}

/* Row r of batch entry b is token cache_seqlens[b] + r; one behind the capacity is dropped, but a
 * ring has room for every token. */
static int32_t append(const AttestAppend* a) {
  const AttestProblem* problem = &a->problem;
  const int64_t batch = a->new_k.shape[0];
  const int64_t num_heads_kv = a->k.shape[1];
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t used = length_of(&a->cache_seqlens, b, 0);
    const int64_t rows = length_of(&a->new_seqlens, b, a->new_k.shape[2]);
    for (int64_t h = 0; h < num_heads_kv; ++h) {
      for (int64_t r = 0; r < rows; ++r) {
        const int64_t token = used + r;
        if (problem->ring == 0 && token >= problem->capacity) {
          break;
        }
        memcpy(token_of(&a->k, &a->block_table, problem, b, h, token), row_of(&a->new_k, b, h, r),
               (size_t)a->k.shape[3] * sizeof(float));
        memcpy(token_of(&a->v, &a->block_table, problem, b, h, token), row_of(&a->new_v, b, h, r),
               (size_t)a->v.shape[3] * sizeof(float));
      }
    }
  }
  return 0;
}

/* Say no to what is not implemented, with a reason that makes sense to a reader of the report. */
static const char* declines(uint32_t operation, const AttestProblem* problem) {
  if (operation == ATTEST_PROJECTION) {
    return "the skeleton has no projection";
  }
  if (problem->input != ATTEST_F32 || problem->output != ATTEST_F32) {
    return "the skeleton knows f32 only";
  }
  if (problem->cache != ATTEST_F32) {
    return "the skeleton knows f32 caches only";
  }
  if (operation == ATTEST_APPEND) {
    return problem->rope != ATTEST_ROPE_NONE ? "the skeleton turns no keys" : NULL;
  }
  if (problem->head_dim_v > 256) {
    return "the skeleton holds at most 256 columns of v";
  }
  if (problem->softcap != 0.0F) {
    return "the skeleton has no softcap";
  }
  if ((problem->flags & (ATTEST_BIAS | ATTEST_ALIBI | ATTEST_SINKS | ATTEST_MASK)) != 0) {
    return "the skeleton has no bias, ALiBi, sinks or explicit mask";
  }
  return NULL;
}

const AttestSubject* attest_subject(uint32_t abi_version) {
  /* Everything is computed in double and rounded to f32 once, which is better than any error that
   * can be declared here; hence the zeros, which stand for correct rounding in f32. */
  static const AttestSubject subject = {
      .abi_version = ATTEST_ABI_VERSION,
      .struct_bytes = sizeof(AttestSubject),
      .name = "skeleton: plain C in double on the host",
      .device_type = kDLCPU, /* tensors arrive in host memory; a CUDA subject says kDLCUDA */
      .promises = ATTEST_DETERMINISTIC | ATTEST_BATCH_INVARIANT,
      .precision = {.abi_version = ATTEST_ABI_VERSION,
                    .struct_bytes = sizeof(AttestPrecision),
                    .p_format = ATTEST_F32,
                    .keys_per_rescale = 1},
      .declines = declines,
      .scratch_bytes = NULL,
      .last_error = NULL,
      .prefill = attend,
      .decode = attend,
      .append = append,
      .projection = NULL,
  };
  return abi_version == ATTEST_ABI_VERSION ? &subject : NULL;
}

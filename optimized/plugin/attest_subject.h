/* The C ABI of a subject: what a shared library must offer to be gated by attest.
 *
 * C only; <stdint.h> and DLPack only. Export one function, attest_subject(), returning a table that
 * lives as long as the library is loaded. Link with `nvcc -cudart shared` and launch with <<<>>> as
 * usual: the same library runs on a GPU and on the emulator. skeleton_plugin.c beside this file is
 * complete and can be copied.
 *
 * Every struct begins with abi_version and struct_bytes. attest fills them in what it passes; a
 * subject fills them in what it returns. Fields are only ever added at the end, so a subject may
 * read any field that lies inside struct_bytes.
 *
 * Ownership: whatever attest passes belongs to attest and is valid until the call returns. Outputs
 * are allocated by attest and arrive poisoned. Nothing but the elements of an output tensor and
 * the scratch bytes may be written; inputs must stay as they are.
 *
 * A kDLCUDA subject's host code must not read or write through any pointer to tensors or scratch:
 * they are device pointers. On the emulator nothing stops it; on a GPU it crashes.
 */
#ifndef ATTEST_SUBJECT_H
#define ATTEST_SUBJECT_H

#include <dlpack/dlpack.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ATTEST_ABI_VERSION 3u

/* DLPack type codes of 8-bit floats, as numbered by DLPack 1.1 (older headers lack them). */
#define ATTEST_DL_FLOAT8_E4M3FN 10
#define ATTEST_DL_FLOAT8_E5M2 12

/* Formats, in the order of attest's own enumeration. */
#define ATTEST_F32 0u
#define ATTEST_F16 1u
#define ATTEST_BF16 2u
#define ATTEST_E4M3 3u
#define ATTEST_E5M2 4u
#define ATTEST_I8 5u /* of caches only: whole numbers from -127 to 127 */

/* Operations. */
#define ATTEST_PREFILL 0u
#define ATTEST_DECODE 1u
#define ATTEST_APPEND 2u
#define ATTEST_PROJECTION 3u
#define ATTEST_COPY_PAGES 4u

/* Alignment of the causal diagonal and of windows; empty rows; base of LSE. */
#define ATTEST_BOTTOM_RIGHT 0u
#define ATTEST_TOP_LEFT 1u
#define ATTEST_EMPTY_ZERO 0u
#define ATTEST_EMPTY_NAN 1u
#define ATTEST_LSE_E 0u
#define ATTEST_LSE_TWO 1u
#define ATTEST_LSE_NONE 2u            /* no LSE is asked for: lse.data is NULL */
#define ATTEST_EMPTY_LSE_MINUS_INF 0u /* LSE of a row that sees neither a key nor a sink */
#define ATTEST_EMPTY_LSE_PLUS_INF 1u

/* Axes of q, k, v, o in memory: heads before tokens, or tokens before heads. Strides say it too. */
#define ATTEST_LAYOUT_BHTD 0u
#define ATTEST_LAYOUT_BTHD 1u

/* Bits of AttestProblem.strided: tensors that lie with gaps behind their rows, heads and batch
 * entries; all others are contiguous, but for the rows of layout BTHD. */
#define ATTEST_STRIDED_Q 0x001u
#define ATTEST_STRIDED_K 0x002u
#define ATTEST_STRIDED_V 0x004u
#define ATTEST_STRIDED_O 0x008u
#define ATTEST_STRIDED_LSE 0x010u
#define ATTEST_STRIDED_BIAS 0x020u
#define ATTEST_STRIDED_MASK 0x040u
#define ATTEST_STRIDED_SCALES 0x080u /* k_scales and v_scales, where there is one per token */
#define ATTEST_STRIDED_TABLE 0x100u  /* block_table */
#define ATTEST_STRIDED_FRESH 0x200u  /* new_k and new_v */
/* The gaps between the entries, heads or rows of these tensors are so wide that the last of them
 * lies 3 * 2^31 elements behind the first. A kernel with offsets of 32 bits declines it. */
#define ATTEST_STRIDED_FAR 0x400u

/* Scales of a cache: what stored k and v are multiplied by. Rope: which columns of a key are turned
 * together when it is appended, (c, c + head_dim/2) or (2c, 2c + 1). */
#define ATTEST_SCALES_NONE 0u
#define ATTEST_SCALES_TENSOR 1u
#define ATTEST_SCALES_HEAD 2u
#define ATTEST_SCALES_TOKEN 3u
#define ATTEST_ROPE_NONE 0u
#define ATTEST_ROPE_HALVES 1u
#define ATTEST_ROPE_PAIRS 2u

/* Flags of AttestProblem: which optional arguments are in force. */
#define ATTEST_CAUSAL 0x01u
#define ATTEST_BIAS 0x02u
#define ATTEST_ALIBI 0x04u
#define ATTEST_SINKS 0x08u
#define ATTEST_MASK 0x10u
#define ATTEST_SEQLENS 0x20u    /* batch entries have lengths of their own: one or both of */
#define ATTEST_SEQLENS_Q 0x40u  /* seqlens_q is there */
#define ATTEST_SEQLENS_KV 0x80u /* seqlens_kv is there */

/* Promises. */
#define ATTEST_DETERMINISTIC 0x01u   /* same bits on every run */
#define ATTEST_BATCH_INVARIANT 0x02u /* a row's bits do not depend on its neighbours */

/* What is asked for. The meaning of every field is stated, with the formula, in attest's
 * reference/README.md. */
typedef struct AttestProblem {
  uint32_t abi_version, struct_bytes;
  int64_t batch, num_heads_q, num_heads_kv, seqlen_q, seqlen_kv, head_dim, head_dim_v;
  uint32_t input, output; /* ATTEST_F32 ... */
  uint32_t flags;         /* ATTEST_CAUSAL ... */
  uint32_t alignment;     /* ATTEST_BOTTOM_RIGHT ... */
  uint32_t empty_row;     /* ATTEST_EMPTY_ZERO ... */
  uint32_t lse_base;      /* ATTEST_LSE_E ... */
  int64_t window_left;    /* inclusive; -1: unbounded */
  int64_t window_right;   /* inclusive; -1: unbounded */
  float softmax_scale;    /* multiplies q.k */
  float softcap;          /* 0: off */
  int64_t capacity;       /* rows of k and v that exist; seqlen_kv <= capacity */
  int64_t num_splits;     /* decode: how many splits of the keys; >= 1 */
  uint32_t cache;         /* format of k and v; ATTEST_F32 ... ATTEST_I8 */
  uint32_t scales;        /* ATTEST_SCALES_NONE ...; others only with an 8-bit cache */
  uint32_t rope;          /* append: ATTEST_ROPE_NONE ... */
  uint32_t reserved;      /* 0 */
  int64_t page_size;      /* slots of a page; 0: the cache is contiguous */
  int64_t ring;           /* slots of a ring; 0: no ring */
  uint32_t empty_lse;     /* ATTEST_EMPTY_LSE_MINUS_INF ... */
  uint32_t layout;        /* ATTEST_LAYOUT_BHTD ... */
  uint32_t strided;       /* ATTEST_STRIDED_Q ... */
  uint32_t reserved_too;  /* 0 */
} AttestProblem;

/* Where token j of batch entry b lies in a cache, whose k is (blocks, num_heads_kv, slots,
 * head_dim) and whose v is (blocks, num_heads_kv, slots, head_dim_v):
 *
 *   contiguous: block b, slot j; blocks = batch, slots = capacity
 *
 *   pages: block block_table[b][j / page_size], slot j % page_size; slots = page_size
 *
 *   ring: block b, slot j % ring; blocks = batch, slots = ring
 *
 * Entries of the block table behind a batch entry's last token name no page and must not be used.
 * k and v of the formula are what is stored times its scale: k_scales[0], k_scales[h], or with
 * scales per token k_scales[block][h][slot]. */

/* Prefill and decode. Tensors are on the device the subject named, in the problem's formats, and
 * may have any strides with a last stride of 1. Optional tensors have data == NULL when absent.
 * data is aligned to 16 bytes, and byte_offset is 0. */
typedef struct AttestAttention {
  uint32_t abi_version, struct_bytes;
  AttestProblem problem;
  DLTensor q;            /* (batch, num_heads_q, seqlen_q, head_dim) */
  DLTensor k;            /* (blocks, num_heads_kv, slots, head_dim), as said above */
  DLTensor v;            /* (blocks, num_heads_kv, slots, head_dim_v) */
  DLTensor bias;         /* (batch, num_heads_q, seqlen_q, seqlen_kv) f32, or NULL data */
  DLTensor alibi_slopes; /* (num_heads_q) f32, or NULL data */
  DLTensor sinks;        /* (num_heads_q) f32, or NULL data */
  DLTensor mask;         /* (batch, seqlen_q, seqlen_kv) uint8, 1 = visible, or NULL data */
  DLTensor seqlens_q;    /* (batch) int32, or NULL data: all full */
  DLTensor seqlens_kv;   /* (batch) int32, or NULL data: all full */
  DLTensor o;            /* out: (batch, num_heads_q, seqlen_q, head_dim_v) */
  DLTensor lse;          /* out: (batch, num_heads_q, seqlen_q) f32, or NULL data: not asked for.
                            Rows at or behind a batch entry's query length must be left alone,
                            in o and in lse. */
  void* scratch;         /* scratch_bytes() bytes on the device, 256-byte aligned, poisoned */
  int64_t scratch_bytes;
  void* stream;         /* cudaStream_t to launch on; the subject need not synchronise */
  DLTensor block_table; /* (batch, pages of a batch entry) int32, or NULL data */
  DLTensor k_scales; /* f32: (1), (num_heads_kv) or (blocks, num_heads_kv, slots), or NULL data */
  DLTensor v_scales;
} AttestAttention;

/* Append to a cache: row r of batch entry b is token cache_seqlens[b] + r, for r < new_seqlens[b];
 * the formula, with rope and scales, is in attest's reference/README.md. A token at or behind the
 * capacity must be dropped; of a ring's, those that would be overwritten by the same append. */
typedef struct AttestAppend {
  uint32_t abi_version, struct_bytes;
  DLTensor k;     /* in and out: (blocks, num_heads_kv, slots, head_dim), format problem.cache */
  DLTensor v;     /* in and out: (blocks, num_heads_kv, slots, head_dim_v) */
  DLTensor new_k; /* (batch, num_heads_kv, rows, head_dim), format problem.input */
  DLTensor new_v; /* (batch, num_heads_kv, rows, head_dim_v) */
  DLTensor cache_seqlens; /* (batch) int32: tokens in the cache before */
  DLTensor new_seqlens;   /* (batch) int32: rows to append, each <= rows */
  void* stream;
  AttestProblem problem; /* of it: batch, num_heads_kv, head dims, input, cache, scales, rope,
                            page_size, ring, and capacity: tokens that a batch entry has room for */
  DLTensor block_table;  /* as in AttestAttention; every entry names a page */
  DLTensor k_scales;     /* as in AttestAttention; per token they are in and out */
  DLTensor v_scales;
  DLTensor rope_cos_sin; /* (positions, head_dim) f32: head_dim/2 cosines, then as many sines */
} AttestAppend;

/* y = x w + bias */
typedef struct AttestProjection {
  uint32_t abi_version, struct_bytes;
  DLTensor x; /* (batch, rows, inner) */
  DLTensor w; /* (inner, columns) */
  DLTensor y; /* out: (batch, rows, columns) */
  void* stream;
  DLTensor bias; /* (columns) f32, or NULL data */
} AttestProjection;

/* Page pairs[n][0] of k and v is copied onto page pairs[n][1], for every n. No page is written
 * twice, and none that is written is read. */
typedef struct AttestPageCopy {
  uint32_t abi_version, struct_bytes;
  DLTensor k;     /* in and out: (pages, num_heads_kv, page_size, head_dim) */
  DLTensor v;     /* in and out: (pages, num_heads_kv, page_size, head_dim_v) */
  DLTensor pairs; /* (n, 2) int32 */
  void* stream;
} AttestPageCopy;

/* AttestPrecision.split_size, where it depends on the length of the sequence. */
#define ATTEST_SPLIT_SIZE_UNKNOWN 0
#define ATTEST_SPLIT_SIZE_EVEN (-1) /* ceil(keys / num_splits), of the batch entry's own keys */
#define ATTEST_SPLIT_SIZE_POWER_OF_TWO (-2) /* the least power of two that is no less than that */

/* How the subject rounds. Wrong declarations are found out, not punished: too small an error makes
 * a correct kernel fail, too large a one makes the gate blind. All are relative errors of one
 * operation, except log_error (nats; relative above 1). 0 means correctly rounded.
 *
 * Fields from `kv_block` on say in which order the subject works. Left 0 they cost nothing but
 * sharpness: the bound then holds for any order. Declared, they let attest round P as the kernel
 * does, and see errors hundreds of times smaller. A wrong one is found out by many small
 * violations. The size of this struct is fixed; what comes later takes from `reserved`. */
typedef struct AttestPrecision {
  uint32_t abi_version, struct_bytes;
  uint32_t p_format;        /* what the weights are rounded to before they meet V */
  int32_t keys_per_rescale; /* least number of keys between two rescales; 1 when unknown */
  double exp_error;         /* e.g. ex2.approx: 2.5 ulp = 5 * 2^-24 */
  double log_error;
  double tanh_error;
  double division_error;
  /* 0: q.k and P V are sums of f32 operations, in any order. Otherwise tensor cores accumulate in
   * f32, and this is the least number of products that they add in one step: 8 for
   * mma.sync.m16n8k16 of f16 and bf16 on sm_80 and later, 4 on sm_70 and for tf32. */
  int32_t tensor_step;
  uint32_t row_sum_of_rounded_p; /* 1: row_sum adds the weights as rounded to p_format */
  /* log2 of how much weights may exceed 1 before row_max is raised; 0: it is always raised. */
  double rescale_threshold_log2;
  double p_scale_log2; /* log2 of a factor on weights and row_sum, there when P is rounded */
  /* Keys whose weights share one row_max: the largest logit seen, their own included. Blocks begin
   * at its multiples, from the split's first key. More than there are keys: row_max is that of the
   * whole row. 0: unknown. */
  int64_t kv_block;
  /* Sets of (row_max, row_sum, O) to which the KV blocks of a split are dealt in turn; 0 is 1. */
  int32_t interleaved_accumulators;
  uint32_t kv_blocks_descending; /* 1: a split's last KV block comes first */
  int64_t split_size;    /* decode with num_splits > 1: keys of a split, or ATTEST_SPLIT_SIZE_... */
  uint32_t v_scale_in_p; /* 1: a scale of the cache's v joins the weight before it is rounded */
  /* 1: q.k over columns, and P V over the keys of a KV block, are added in rising order,
   * tensor_step at a time in groups that begin at its multiples. */
  uint32_t in_order;
  /* Partial sums of row_sum in an accumulator, each with an equal share of every KV block; 0 is 1.
   */
  int32_t partial_row_sums;
  /* 1: weights are divided by row_sum before they are rounded to p_format, and O is not divided.
   * Not with row_sum_of_rounded_p. */
  uint32_t normalize_before_cast;
  /* What q.k is rounded to, and perhaps again whatever is made of it before the exponential;
   * ATTEST_F32, which is 0: nothing of the kind. */
  uint32_t scores_format;
  uint32_t reserved_first; /* 0 */
  uint64_t reserved[7];    /* 0 */
} AttestPrecision;

/* Return 0 for success. Any other value is a fault of the subject, reported with last_error(). */
typedef struct AttestSubject {
  uint32_t abi_version, struct_bytes;
  const char* name;
  int32_t device_type; /* kDLCUDA: tensors live in device memory; kDLCPU: in host memory */
  uint32_t promises;   /* ATTEST_DETERMINISTIC ... */
  AttestPrecision precision;

  /* Why this problem is not accepted, or NULL when it is. Of a projection batch, formats and
   * ATTEST_BIAS are meaningful; of ATTEST_APPEND and ATTEST_COPY_PAGES what describes the cache. */
  const char* (*declines)(uint32_t operation, const AttestProblem* problem);
  /* Device bytes wanted as scratch for one call; may be NULL for none. */
  int64_t (*scratch_bytes)(uint32_t operation, const AttestProblem* problem);
  /* One sentence about the last non-zero return; may be NULL. */
  const char* (*last_error)(void);

  /* Each may be NULL: not offered. */
  int32_t (*prefill)(const AttestAttention* attention);
  int32_t (*decode)(const AttestAttention* attention);
  int32_t (*append)(const AttestAppend* append);
  int32_t (*projection)(const AttestProjection* projection);

  /* How the subject rounds on this problem, where not everything takes the same path. *precision
   * arrives as declared above and may be changed; NULL: it always holds. Asked after declines(),
   * of problems that are accepted. */
  void (*precision_for)(uint32_t operation, const AttestProblem* problem,
                        AttestPrecision* precision);

  /* May be NULL, as the operations above. */
  int32_t (*copy_pages)(const AttestPageCopy* copy);
} AttestSubject;

/* The only symbol attest looks up. Called once, before any CUDA call, with the ABI version attest
 * was built for; return NULL if that version cannot be served. */
const AttestSubject* attest_subject(uint32_t abi_version);

typedef const AttestSubject* (*AttestSubjectFunction)(uint32_t abi_version);
#define ATTEST_SUBJECT_SYMBOL "attest_subject"

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif

// A Triton function behind the C ABI: triton_flash.py wrote triton_flash.ptx, which is loaded here
// through cudaLibraryLoadData as a launcher outside Python does it. The faults are the launcher's.
#include <array>

#include "fuzz/strangers/stranger.cuh"

// The text of the kernel, as it stands in the file.
asm(".pushsection .rodata\n"
    "attest_triton_ptx: .incbin \"" TRITON_PTX
    "\"\n"
    ".byte 0\n"
    ".popsection\n");
extern "C" const char attest_triton_ptx[];

namespace {

constexpr int kHeadDim = 64, kBlockM = 64, kBlockN = 64, kThreads = 128;
constexpr size_t kSharedBytes = 16384;  // what triton_flash.py prints

cudaKernel_t kernel() {
  static const cudaKernel_t loaded = [] {
    cudaLibrary_t library = nullptr;
    cudaKernel_t found = nullptr;
    if (cudaLibraryLoadData(&library, attest_triton_ptx, nullptr, nullptr, 0, nullptr, nullptr,
                            0) == cudaSuccess) {
      cudaLibraryGetKernel(&found, library, "attention");
    }
    return found;
  }();
  return loaded;
}

const char* declines(uint32_t, const AttestProblem* p) {
  if (const char* why = stranger::beyond_plain(*p)) return why;
  if (const char* why = stranger::beyond_dense(*p)) return why;
  if (p->flags & ATTEST_SEQLENS) return "sequences of one length";
  if (p->input != ATTEST_BF16 || p->output != ATTEST_BF16) return "bf16 only";
  if (p->head_dim != kHeadDim || p->head_dim_v != kHeadDim) return "head width 64 only";
  if (!(p->flags & ATTEST_CAUSAL) || p->alignment != ATTEST_BOTTOM_RIGHT) return "causal only";
  if (p->softmax_scale <= 0) return "scales are positive";
  if (p->lse_base == ATTEST_LSE_NONE) return "LSE is always written";
  if (p->empty_lse != ATTEST_EMPTY_LSE_MINUS_INF) return "the LSE of an empty row is -inf";
  return nullptr;
}

int32_t prefill(const AttestAttention* a) {
  const AttestProblem& p = a->problem;
  void *q = a->q.data, *k = a->k.data, *v = a->v.data, *o = a->o.data, *lse = a->lse.data;
#if FAULT == 1  // exp2 of natural logits
  float scale_log2 = p.softmax_scale;
#else
  float scale_log2 = static_cast<float>(p.softmax_scale * 1.4426950408889634);
#endif
  auto seqlen_q = static_cast<int32_t>(p.seqlen_q);
#if FAULT == 2  // rows that exist are taken for keys
  auto seqlen_kv = static_cast<int32_t>(a->k.shape[2]);
#else
  auto seqlen_kv = static_cast<int32_t>(p.seqlen_kv);
#endif
  auto num_heads_q = static_cast<int32_t>(p.num_heads_q);
  auto group = static_cast<int32_t>(p.num_heads_q / p.num_heads_kv);
  std::array<int64_t, 14> strides{};
  size_t n = 0;
  for (const DLTensor* x : {&a->q, &a->k, &a->v, &a->o}) {
    for (int axis = 0; axis < 3; ++axis) strides[n++] = x->strides[axis];
  }
  for (int axis = 0; axis < 2; ++axis) strides[n++] = a->lse.strides[axis];
#if FAULT == 3  // K's strides are used for V
  for (size_t axis = 6; axis < 9; ++axis) strides[axis] = strides[axis - 6];
#endif
  void *global_scratch = nullptr, *profile_scratch = nullptr;
  std::array<void*, 26> arguments{&q,          &k,        &v,         &o,           &lse,
                                  &scale_log2, &seqlen_q, &seqlen_kv, &num_heads_q, &group};
  for (n = 0; n < strides.size(); ++n) arguments[10 + n] = &strides[n];
  arguments[24] = &global_scratch;
  arguments[25] = &profile_scratch;
  const dim3 grid((seqlen_q + kBlockM - 1) / kBlockM,
                  static_cast<unsigned>(p.batch * p.num_heads_q));
  if (grid.x == 0 || grid.y == 0) return 0;
  cudaLaunchKernel(reinterpret_cast<const void*>(kernel()), grid, kThreads, arguments.data(),
                   kSharedBytes, static_cast<cudaStream_t>(a->stream));
  return stranger::launched("attention");
}

constexpr AttestSubject table() {
  AttestPrecision precision = stranger::f32_precision();
  precision.p_format = ATTEST_BF16;
  precision.tensor_step = 8;
  precision.keys_per_rescale = precision.kv_block = kBlockN;
  precision.division_error = 2 * 0x1p-23;  // div.full.f32: 2 ulp (PTX ISA)
  precision.log_error = 3 * 0x1p-19;       // lg2.approx, and the product with ln 2
  AttestSubject subject =
      stranger::described("causal bf16 attention of width 64, by Triton",
                          ATTEST_DETERMINISTIC | ATTEST_BATCH_INVARIANT, precision);
  subject.declines = declines;
  subject.prefill = prefill;
  return subject;
}

}  // namespace

STRANGER_EXPORT(table())

// The mapping is by number: both sides keep the same order, which the assertions below hold them
// to.
#include "optimized/plugin/abi.hpp"

#include <algorithm>

namespace attest {
namespace {

template <typename Enumerator>
constexpr bool same(Enumerator enumerator, std::uint32_t number) {
  return static_cast<std::uint32_t>(enumerator) == number;
}

static_assert(same(Format::f32, ATTEST_F32) && same(Format::f16, ATTEST_F16) &&
              same(Format::bf16, ATTEST_BF16) && same(Format::e4m3, ATTEST_E4M3) &&
              same(Format::e5m2, ATTEST_E5M2) && same(Format::i8, ATTEST_I8));
static_assert(same(Operation::prefill, ATTEST_PREFILL) && same(Operation::decode, ATTEST_DECODE) &&
              same(Operation::append, ATTEST_APPEND) &&
              same(Operation::projection, ATTEST_PROJECTION) &&
              same(Operation::copy_pages, ATTEST_COPY_PAGES));
static_assert(same(Alignment::bottom_right, ATTEST_BOTTOM_RIGHT) &&
              same(Alignment::top_left, ATTEST_TOP_LEFT));
static_assert(same(EmptyRow::zero, ATTEST_EMPTY_ZERO) && same(EmptyRow::nan, ATTEST_EMPTY_NAN));
static_assert(same(Scales::none, ATTEST_SCALES_NONE) &&
              same(Scales::tensor, ATTEST_SCALES_TENSOR) &&
              same(Scales::head, ATTEST_SCALES_HEAD) && same(Scales::token, ATTEST_SCALES_TOKEN));
static_assert(same(Rope::none, ATTEST_ROPE_NONE) && same(Rope::halves, ATTEST_ROPE_HALVES) &&
              same(Rope::pairs, ATTEST_ROPE_PAIRS));
static_assert(kEvenSplits == ATTEST_SPLIT_SIZE_EVEN &&
              kPowerOfTwoSplits == ATTEST_SPLIT_SIZE_POWER_OF_TWO);
static_assert(same(LogBase::e, ATTEST_LSE_E) && same(LogBase::two, ATTEST_LSE_TWO) &&
              same(LogBase::none, ATTEST_LSE_NONE));
static_assert(same(EmptyLse::minus_inf, ATTEST_EMPTY_LSE_MINUS_INF) &&
              same(EmptyLse::plus_inf, ATTEST_EMPTY_LSE_PLUS_INF));
static_assert(same(Layout::bhtd, ATTEST_LAYOUT_BHTD) && same(Layout::bthd, ATTEST_LAYOUT_BTHD));
constexpr bool same_bit(Strided tensor, std::uint32_t bit) {
  return 1U << static_cast<unsigned>(tensor) == bit;
}
static_assert(same_bit(Strided::q, ATTEST_STRIDED_Q) && same_bit(Strided::k, ATTEST_STRIDED_K) &&
              same_bit(Strided::v, ATTEST_STRIDED_V) && same_bit(Strided::o, ATTEST_STRIDED_O) &&
              same_bit(Strided::lse, ATTEST_STRIDED_LSE) &&
              same_bit(Strided::bias, ATTEST_STRIDED_BIAS) &&
              same_bit(Strided::mask, ATTEST_STRIDED_MASK) &&
              same_bit(Strided::scales, ATTEST_STRIDED_SCALES) &&
              same_bit(Strided::table, ATTEST_STRIDED_TABLE) &&
              same_bit(Strided::fresh, ATTEST_STRIDED_FRESH) &&
              same_bit(Strided::far, ATTEST_STRIDED_FAR));

}  // namespace

AttestProblem abi_problem(const Problem& problem) {
  AttestProblem abi{};
  abi.abi_version = ATTEST_ABI_VERSION;
  abi.struct_bytes = sizeof(AttestProblem);
  abi.batch = problem.batch;
  abi.num_heads_q = problem.num_heads_q;
  abi.num_heads_kv = problem.num_heads_kv;
  abi.seqlen_q = problem.seqlen_q;
  abi.seqlen_kv = problem.seqlen_kv;
  abi.head_dim = problem.head_dim;
  abi.head_dim_v = problem.head_dim_v;
  abi.input = static_cast<std::uint32_t>(problem.input);
  abi.output = static_cast<std::uint32_t>(problem.output);
  const std::uint32_t lengths = (problem.seqlens_q.empty() ? 0 : ATTEST_SEQLENS_Q) |
                                (problem.seqlens_kv.empty() ? 0 : ATTEST_SEQLENS_KV);
  abi.flags = (problem.causal ? ATTEST_CAUSAL : 0) | (problem.bias ? ATTEST_BIAS : 0) |
              (problem.alibi ? ATTEST_ALIBI : 0) | (problem.sinks ? ATTEST_SINKS : 0) |
              (problem.mask ? ATTEST_MASK : 0) | lengths | (lengths != 0 ? ATTEST_SEQLENS : 0);
  abi.alignment = static_cast<std::uint32_t>(problem.alignment);
  abi.empty_row = static_cast<std::uint32_t>(problem.empty_row);
  abi.lse_base = static_cast<std::uint32_t>(problem.lse_base);
  abi.window_left = problem.window_left;
  abi.window_right = problem.window_right;
  abi.softmax_scale = problem.softmax_scale;
  abi.softcap = static_cast<float>(problem.softcap);
  abi.capacity = cache_slots(problem);
  abi.num_splits = problem.num_splits;
  abi.cache = static_cast<std::uint32_t>(cache_format(problem));
  abi.scales = static_cast<std::uint32_t>(problem.scales);
  abi.rope = static_cast<std::uint32_t>(problem.rope);
  abi.page_size = problem.page_size;
  abi.ring = problem.ring;
  abi.empty_lse = static_cast<std::uint32_t>(problem.empty_lse);
  abi.layout = static_cast<std::uint32_t>(problem.layout);
  abi.strided = problem.strided;
  return abi;
}

PrecisionPath precision_path(const AttestPrecision& precision) {
  return {.p_format = static_cast<Format>(precision.p_format),
          .exp_error = precision.exp_error,
          .log_error = precision.log_error,
          .tanh_error = precision.tanh_error,
          .division_error = precision.division_error,
          .keys_per_rescale = precision.keys_per_rescale,
          .tensor_step = precision.tensor_step,
          .row_sum_of_rounded_p = precision.row_sum_of_rounded_p != 0,
          .v_scale_in_p = precision.v_scale_in_p != 0,
          .rescale_threshold_log2 = precision.rescale_threshold_log2,
          .p_scale_log2 = precision.p_scale_log2,
          .kv_block = precision.kv_block,
          .interleaved_accumulators = std::max<Index>(precision.interleaved_accumulators, 1),
          .kv_blocks_descending = precision.kv_blocks_descending != 0,
          .split_size = precision.split_size,
          .in_order = precision.in_order != 0,
          .partial_row_sums = std::max<Index>(precision.partial_row_sums, 1),
          .normalize_before_cast = precision.normalize_before_cast != 0,
          .scores_format = static_cast<Format>(precision.scores_format)};
}

std::optional<std::string> inexpressible(const Problem& problem) {
  if (static_cast<double>(static_cast<float>(problem.softcap)) != problem.softcap) {
    return "the plugin interface passes softcap as f32, and this one is not an f32 number";
  }
  return std::nullopt;
}

}  // namespace attest

// The table: one row per mutant, its operation, its name, at which sizes it is wrong, and which
// mistake of mistakes.hpp it makes there; everywhere else it is our kernels. A name begins with the
// family of kernels. CMakeLists.txt reads the first two columns.
#pragma once
#include <string_view>
#include <variant>

#include "fuzz/mutants/sizes/mistakes.hpp"

namespace attest::sizes {

/// What a request is large in; 0 where it has no such extent.
struct Sizes {
  bool simt = true;  // not for tensor cores
  bool full = true;  // no batch entry has fewer keys than the longest
  int64_t batch = 0, num_heads_kv = 0, group = 0, head_dim = 0, head_dim_v = 0, page_size = 0;
  int64_t seqlen_q = 0, seqlen_kv = 0;  // of a projection its rows and columns
  int64_t rows = 0;                     // queries of all heads and entries; appended rows of one
  int64_t capacity = 0;
};

template <class Request>
using Mistake = int32_t (*)(const Request&, Operation<Request>);

struct Mutant {
  uint32_t operation;
  std::string_view name;
  bool (*at)(const Sizes&);
  std::variant<Mistake<AttestAttention>, Mistake<AttestAppend>, Mistake<AttestPageCopy>,
               Mistake<AttestProjection>>
      mistake;
};

// clang-format off
inline const Mutant kMutants[] = {
  {ATTEST_PREFILL, "flash_prefill_keys_over_1024", [](const Sizes& s) { return s.simt && s.full && s.seqlen_kv > 1024; }, drops_last_tile},
  {ATTEST_PREFILL, "flash_prefill_keys_over_32768", [](const Sizes& s) { return s.simt && s.full && s.seqlen_kv > 32768; }, ends_at_15_bits},
  {ATTEST_PREFILL, "flash_prefill_group_of_32", [](const Sizes& s) { return s.simt && s.group >= 32; }, query_of_head_before},
  {ATTEST_PREFILL, "flash_prefill_kv_heads_in_fours", [](const Sizes& s) { return s.simt && s.num_heads_kv % 4 == 0; }, kv_head_before},
  {ATTEST_PREFILL, "flash_prefill_batch_over_8", [](const Sizes& s) { return s.simt && s.batch > 8; }, entry_before},
  {ATTEST_PREFILL, "flash_prefill_width_of_192", [](const Sizes& s) { return s.simt && s.head_dim == 192; }, ignores_last_columns},
  {ATTEST_PREFILL, "flash_prefill_rows_over_10000", [](const Sizes& s) { return s.simt && s.rows > 10000; }, leaves_last_query},

  {ATTEST_PREFILL, "mma_prefill_keys_over_1024", [](const Sizes& s) { return !s.simt && s.full && s.seqlen_kv > 1024; }, drops_last_tile},
  {ATTEST_PREFILL, "mma_prefill_keys_over_32768", [](const Sizes& s) { return !s.simt && s.full && s.seqlen_kv > 32768; }, ends_at_15_bits},
  {ATTEST_PREFILL, "mma_prefill_group_of_64", [](const Sizes& s) { return !s.simt && s.group >= 64; }, query_of_head_before},
  {ATTEST_PREFILL, "mma_prefill_eight_kv_heads", [](const Sizes& s) { return !s.simt && s.num_heads_kv >= 8; }, kv_head_before},
  {ATTEST_PREFILL, "mma_prefill_batch_over_32", [](const Sizes& s) { return !s.simt && s.batch > 32; }, entry_before},
  {ATTEST_PREFILL, "mma_prefill_width_over_192", [](const Sizes& s) { return !s.simt && s.head_dim_v > 192; }, leaves_last_columns},
  {ATTEST_PREFILL, "mma_prefill_queries_over_512", [](const Sizes& s) { return !s.simt && s.seqlen_q > 512; }, leaves_last_query},

  {ATTEST_DECODE, "split_keys_keys_over_1024", [](const Sizes& s) { return s.simt && s.full && s.seqlen_kv > 1024; }, drops_last_tile},
  {ATTEST_DECODE, "split_keys_keys_over_32768", [](const Sizes& s) { return s.simt && s.full && s.seqlen_kv > 32768; }, ends_at_15_bits},
  {ATTEST_DECODE, "split_keys_group_of_16", [](const Sizes& s) { return s.simt && s.group >= 16; }, query_of_head_before},
  {ATTEST_DECODE, "split_keys_kv_heads_in_fours", [](const Sizes& s) { return s.simt && s.num_heads_kv % 4 == 0; }, kv_head_before},
  {ATTEST_DECODE, "split_keys_pages_from_128", [](const Sizes& s) { return s.simt && s.page_size >= 128; }, reads_first_page},
  {ATTEST_DECODE, "split_keys_width_of_192", [](const Sizes& s) { return s.simt && s.head_dim == 192; }, ignores_last_columns},

  {ATTEST_DECODE, "mma_decode_keys_over_1024", [](const Sizes& s) { return !s.simt && s.full && s.seqlen_kv > 1024; }, drops_last_tile},
  {ATTEST_DECODE, "mma_decode_keys_over_32768", [](const Sizes& s) { return !s.simt && s.full && s.seqlen_kv > 32768; }, ends_at_15_bits},
  {ATTEST_DECODE, "mma_decode_group_of_64", [](const Sizes& s) { return !s.simt && s.group >= 64; }, query_of_head_before},
  {ATTEST_DECODE, "mma_decode_batch_over_8", [](const Sizes& s) { return !s.simt && s.batch > 8; }, entry_before},
  {ATTEST_DECODE, "mma_decode_pages_from_128", [](const Sizes& s) { return !s.simt && s.page_size >= 128; }, reads_first_page},
  {ATTEST_DECODE, "mma_decode_width_of_256", [](const Sizes& s) { return !s.simt && s.head_dim == 256; }, ignores_last_columns},

  {ATTEST_APPEND, "cache_append_rows_over_255", [](const Sizes& s) { return s.rows > 255; }, appends_255_rows},
  {ATTEST_APPEND, "cache_append_tokens_over_32768", [](const Sizes& s) { return s.capacity > 32768; }, drops_far_tokens},
  {ATTEST_APPEND, "cache_append_eight_kv_heads", [](const Sizes& s) { return s.num_heads_kv >= 8; }, forgets_last_kv_head},
  {ATTEST_APPEND, "cache_append_batch_over_32", [](const Sizes& s) { return s.batch > 32; }, forgets_last_entry},
  {ATTEST_APPEND, "cache_append_width_of_192", [](const Sizes& s) { return s.head_dim == 192; }, forgets_last_columns},
  {ATTEST_APPEND, "cache_append_pages_from_128", [](const Sizes& s) { return s.page_size >= 128; }, writes_first_page},

  {ATTEST_COPY_PAGES, "page_copy_pages_from_256", [](const Sizes& s) { return s.page_size >= 256; }, copies_128_slots},
  {ATTEST_COPY_PAGES, "page_copy_pages_of_512", [](const Sizes& s) { return s.page_size == 512; }, copies_but_last_slot},
  {ATTEST_COPY_PAGES, "page_copy_kv_heads_in_fours", [](const Sizes& s) { return s.num_heads_kv % 4 == 0; }, copies_but_last_head},
  {ATTEST_COPY_PAGES, "page_copy_width_over_256", [](const Sizes& s) { return s.head_dim > 256; }, copies_256_columns},
  {ATTEST_COPY_PAGES, "page_copy_width_of_192", [](const Sizes& s) { return s.head_dim == 192; }, copies_but_last_columns},

  {ATTEST_PROJECTION, "projection_rows_over_512", [](const Sizes& s) { return s.seqlen_q > 512; }, leaves_last_row},
  {ATTEST_PROJECTION, "projection_batch_over_16", [](const Sizes& s) { return s.batch > 16; }, leaves_last_entry},
  {ATTEST_PROJECTION, "projection_columns_over_1024", [](const Sizes& s) { return s.seqlen_kv > 1024; }, leaves_last_column},
  {ATTEST_PROJECTION, "projection_inner_over_256", [](const Sizes& s) { return s.head_dim > 256; }, shortens_sum},
  {ATTEST_PROJECTION, "projection_inner_of_192", [](const Sizes& s) { return s.head_dim == 192; }, shortens_sum},
};
// clang-format on

}  // namespace attest::sizes

// What the mutants of this folder do wrong: each function takes a request, the operation as our
// kernels do it, and does it with one mistake, small in extent. Where the mistake concerns a part
// of the answer only, all of it is computed rightly first, and the part once more.
#pragma once
#include "fuzz/mutants/sizes/cuts.hpp"

namespace attest::sizes {

template <class Request>
using Operation = int32_t (*)(const Request*);

// Attention.

/// The loop over tiles of 32 keys ends one too early.
inline int32_t drops_last_tile(const AttestAttention& given, Operation<AttestAttention> run) {
  AttestAttention a = given;
  a.problem.seqlen_kv = (a.problem.seqlen_kv - 1) / 32 * 32;
  return run(&a);
}

/// Keys are counted in 15 bits.
inline int32_t ends_at_15_bits(const AttestAttention& given, Operation<AttestAttention> run) {
  AttestAttention a = given;
  a.problem.seqlen_kv = INT64_C(1) << 15;
  return run(&a);
}

/// The last head of the last group is given the query of the head before.
inline int32_t query_of_head_before(const AttestAttention& given, Operation<AttestAttention> run) {
  if (const int32_t status = run(&given)) return status;
  Changed<AttestAttention> changed(given);
  cut_head(changed, given.problem.num_heads_q - 1);
  changed.move(changed.request.q, 1, -1);
  return run(&changed.request);
}

/// The last query head reads the KV head before its own.
inline int32_t kv_head_before(const AttestAttention& given, Operation<AttestAttention> run) {
  if (const int32_t status = run(&given)) return status;
  Changed<AttestAttention> changed(given);
  cut_head(changed, given.problem.num_heads_q - 1);
  changed.move(changed.request.k, 1, -1);
  changed.move(changed.request.v, 1, -1);
  return run(&changed.request);
}

/// The last batch entry is given the queries of the one before.
inline int32_t entry_before(const AttestAttention& given, Operation<AttestAttention> run) {
  if (const int32_t status = run(&given)) return status;
  Changed<AttestAttention> changed(given);
  cut_entry(changed, given.problem.batch - 1);
  changed.move(changed.request.q, 0, -1);
  return run(&changed.request);
}

/// The last eight columns of q and k take no part in the scores.
inline int32_t ignores_last_columns(const AttestAttention& given, Operation<AttestAttention> run) {
  AttestAttention a = given;
  a.problem.head_dim -= 8;
  return run(&a);
}

/// The last eight columns of o are not written.
inline int32_t leaves_last_columns(const AttestAttention& given, Operation<AttestAttention> run) {
  AttestAttention a = given;
  a.problem.head_dim_v -= 8;
  return run(&a);
}

/// The last query is not answered.
inline int32_t leaves_last_query(const AttestAttention& given, Operation<AttestAttention> run) {
  AttestAttention a = given;
  a.problem.seqlen_q -= 1;
  return run(&a);
}

/// Tokens of every page are looked for on the first.
inline int32_t reads_first_page(const AttestAttention& given, Operation<AttestAttention> run) {
  Changed<AttestAttention> changed(given);
  changed.repeat_first(changed.request.block_table, 1);
  return run(&changed.request);
}

// Append.

/// So many elements of an axis of the new rows are appended: kEntries, kHeads, kRows, kColumns.
template <int kAxis>
int32_t appends_only(const AttestAppend& given, Operation<AttestAppend> run, int64_t count) {
  Changed<AttestAppend> changed(given);
  for (DLTensor* each : {&changed.request.new_k, &changed.request.new_v}) {
    changed.cut(*each, kAxis, 0, std::min(each->shape[kAxis], count));
  }
  return run(&changed.request);
}

inline int32_t appends_255_rows(const AttestAppend& given, Operation<AttestAppend> run) {
  return appends_only<2>(given, run, 255);
}
inline int32_t forgets_last_kv_head(const AttestAppend& given, Operation<AttestAppend> run) {
  return appends_only<1>(given, run, given.problem.num_heads_kv - 1);
}
inline int32_t forgets_last_entry(const AttestAppend& given, Operation<AttestAppend> run) {
  return appends_only<0>(given, run, given.problem.batch - 1);
}
/// The last eight columns of a key stay as they were.
inline int32_t forgets_last_columns(const AttestAppend& given, Operation<AttestAppend> run) {
  Changed<AttestAppend> changed(given);
  changed.cut(changed.request.new_k, 3, 0, given.problem.head_dim - 8);
  return run(&changed.request);
}
/// Tokens whose number needs more than 15 bits are dropped.
inline int32_t drops_far_tokens(const AttestAppend& given, Operation<AttestAppend> run) {
  AttestAppend a = given;
  a.problem.capacity = INT64_C(1) << 15;
  return run(&a);
}
/// Tokens of every page are stored on the first.
inline int32_t writes_first_page(const AttestAppend& given, Operation<AttestAppend> run) {
  Changed<AttestAppend> changed(given);
  changed.repeat_first(changed.request.block_table, 1);
  return run(&changed.request);
}

// Copied pages.

template <int kAxis>
int32_t copies_only(const AttestPageCopy& given, Operation<AttestPageCopy> run, int64_t count) {
  Changed<AttestPageCopy> changed(given);
  for (DLTensor* each : {&changed.request.k, &changed.request.v}) {
    changed.cut(*each, kAxis, 0, std::min(each->shape[kAxis], count));
  }
  return run(&changed.request);
}

inline int32_t copies_128_slots(const AttestPageCopy& given, Operation<AttestPageCopy> run) {
  return copies_only<2>(given, run, 128);
}
inline int32_t copies_but_last_slot(const AttestPageCopy& given, Operation<AttestPageCopy> run) {
  return copies_only<2>(given, run, given.k.shape[2] - 1);
}
inline int32_t copies_but_last_head(const AttestPageCopy& given, Operation<AttestPageCopy> run) {
  return copies_only<1>(given, run, given.k.shape[1] - 1);
}
inline int32_t copies_256_columns(const AttestPageCopy& given, Operation<AttestPageCopy> run) {
  return copies_only<3>(given, run, 256);
}
/// The last eight columns of k stay as they were.
inline int32_t copies_but_last_columns(const AttestPageCopy& given, Operation<AttestPageCopy> run) {
  Changed<AttestPageCopy> changed(given);
  changed.cut(changed.request.k, 3, 0, given.k.shape[3] - 8);
  return run(&changed.request);
}

// Projection.

/// The last row of every batch entry is not answered.
inline int32_t leaves_last_row(const AttestProjection& given, Operation<AttestProjection> run) {
  Changed<AttestProjection> changed(given);
  changed.cut(changed.request.x, 1, 0, given.x.shape[1] - 1);
  return run(&changed.request);
}
/// The last batch entry is not answered.
inline int32_t leaves_last_entry(const AttestProjection& given, Operation<AttestProjection> run) {
  Changed<AttestProjection> changed(given);
  changed.cut(changed.request.x, 0, 0, given.x.shape[0] - 1);
  return run(&changed.request);
}
/// The last column is not answered.
inline int32_t leaves_last_column(const AttestProjection& given, Operation<AttestProjection> run) {
  Changed<AttestProjection> changed(given);
  changed.cut(changed.request.w, 1, 0, given.w.shape[1] - 1);
  return run(&changed.request);
}
/// The last eight columns of x take no part in the sums.
inline int32_t shortens_sum(const AttestProjection& given, Operation<AttestProjection> run) {
  Changed<AttestProjection> changed(given);
  changed.cut(changed.request.x, 2, 0, given.x.shape[2] - 8);
  return run(&changed.request);
}

}  // namespace attest::sizes

// Excerpts of whole heads, dealt to threads: see the header.
#include "properties/by_heads.hpp"

#include <algorithm>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

#include "properties/excerpt.hpp"
#include "properties/row_sample.hpp"
#include "properties/rows.hpp"

namespace attest {
namespace {

bool any_of(const std::vector<bool>& wanted, std::size_t first, Index count) {
  const std::vector<bool> part = part_of(wanted, first, count);
  return part.empty() || std::ranges::find(part, true) != part.end();
}

/// Calls act(excerpt, number of its first row in the whole) for every head of every batch entry
/// that has rows of those wanted, from several threads.
template <class Act>
void for_each_head(const Problem& problem, const Values& values, std::atomic<Index>* done,
                   const Act& act, const std::vector<bool>& wanted = {}) {
  const Index heads = problem.batch * problem.num_heads_q;
  const auto cores = static_cast<Index>(std::max(1U, std::thread::hardware_concurrency()));
  std::atomic<Index> next = 0;
  std::exception_ptr failure;
  std::mutex mutex;  // of `failure`
  const auto work = [&] {
    try {
      for (Index n = next++; n < heads; n = next++) {
        const Index b = n / problem.num_heads_q, h = n % problem.num_heads_q;
        const Index rows = query_length(problem, b);
        const std::size_t first = row_number(problem, b, h, 0);
        if (rows > 0 && any_of(wanted, first, rows)) {
          act(excerpt(problem, values, {}, {b, h, 0, rows}), first);
        }
        if (done != nullptr) ++*done;
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (Index n = 1; n < std::min(cores, heads); ++n) threads.emplace_back(work);
    work();
  }
  if (failure) std::rethrow_exception(failure);
}

/// What acceptance() says of rows behind a query length.
Acceptance of_no_row(const Problem& p) {
  const std::size_t rows = row_count(p), elements = rows * static_cast<std::size_t>(p.head_dim_v);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return {{p.output, std::vector<double>(elements), std::vector<double>(elements, kInfinity)},
          {Format::f32, std::vector<double>(rows), std::vector<double>(rows, kInfinity)},
          std::vector<Strength>(rows, Strength::order_free)};
}

/// What the oracles say of rows behind a query length.
Truth truth_of_no_row(const Problem& p) {
  const std::size_t rows = row_count(p), elements = rows * static_cast<std::size_t>(p.head_dim_v);
  Truth truth;
  truth.extent = {p.batch, p.num_heads_q, p.seqlen_q, p.head_dim_v};
  for (auto* numbers : {&truth.o, &truth.o_tail}) numbers->resize(elements);
  for (auto* numbers : {&truth.lse, &truth.lse_tail}) numbers->resize(rows);
  return truth;
}

/// `from` begins at place `at` of `to`.
template <class Number>
void put(const std::vector<Number>& from, std::vector<Number>& to, std::size_t at) {
  std::copy(from.begin(), from.end(), to.begin() + static_cast<std::ptrdiff_t>(at));
}

void put_head(const Acceptance& head, Acceptance& all, std::size_t first_row, Index columns) {
  const std::size_t first = first_row * static_cast<std::size_t>(columns);
  put(head.o.centre, all.o.centre, first);
  put(head.o.radius, all.o.radius, first);
  put(head.lse.centre, all.lse.centre, first_row);
  put(head.lse.radius, all.lse.radius, first_row);
  put(head.strength, all.strength, first_row);
}

void put_head(const Truth& head, Truth& all, std::size_t first_row) {
  const std::size_t first = first_row * static_cast<std::size_t>(all.extent[3]);
  put(head.o, all.o, first);
  put(head.o_tail, all.o_tail, first);
  put(head.lse, all.lse, first_row);
  put(head.lse_tail, all.lse_tail, first_row);
}

}  // namespace

Acceptance acceptance_by_heads(const Problem& problem, const Values& values,
                               const PrecisionPath& path, Strength at_most,
                               const std::vector<bool>& wanted, std::atomic<Index>* done) {
  Acceptance all = of_no_row(problem);
  if (!wanted.empty()) {
    all.lse.centre.assign(wanted.size(), std::numeric_limits<double>::quiet_NaN());
  }
  for_each_head(
      problem, values, done,
      [&](const Excerpt& head, std::size_t first_row) {
        const std::vector<bool> rows = part_of(wanted, first_row, head.problem.seqlen_q);
        put_head(acceptance(head.problem, head.values, path, at_most, rows), all, first_row,
                 problem.head_dim_v);
      },
      wanted);
  return all;
}

Certified certified_by_heads(const Problem& problem, const Values& values,
                             std::atomic<Index>* done) {
  Certified all;
  all.truth = truth_of_no_row(problem);
  all.o_radius.resize(all.truth.o.size());
  all.lse_radius.resize(all.truth.lse.size());
  all.tier.resize(all.truth.lse.size());
  for_each_head(problem, values, done, [&](const Excerpt& head, std::size_t first_row) {
    const Certified certified = certified_attention(head.problem, head.values);
    put_head(certified.truth, all.truth, first_row);
    put(certified.o_radius, all.o_radius, first_row * static_cast<std::size_t>(problem.head_dim_v));
    put(certified.lse_radius, all.lse_radius, first_row);
    put(certified.tier, all.tier, first_row);
  });
  return all;
}

ExactTruth exact_by_heads(const Problem& problem, const Values& values, Digits digits,
                          std::atomic<Index>* done) {
  constexpr int kNothingToCompare = 50;  // of certified_digits()
  ExactTruth all{truth_of_no_row(problem), kNothingToCompare};
  std::mutex mutex;  // of all.digits
  for_each_head(problem, values, done, [&](const Excerpt& head, std::size_t first_row) {
    put_head(exact_attention(head.problem, head.values, digits), all.truth, first_row);
    const int agreeing = certified_digits(head.problem, head.values);
    const std::lock_guard lock(mutex);
    all.digits = std::min(all.digits, agreeing);
  });
  return all;
}

}  // namespace attest

// Excerpts of whole heads, dealt to threads: see the header.
#include "properties/by_heads.hpp"

#include <algorithm>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

#include "properties/excerpt.hpp"
#include "properties/rows.hpp"

namespace attest {
namespace {

/// What acceptance() says of rows behind a query length.
Acceptance of_no_row(const Problem& p) {
  const std::size_t rows = row_count(p), elements = rows * static_cast<std::size_t>(p.v_depth);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return {{p.output, std::vector<double>(elements), std::vector<double>(elements, kInfinity)},
          {Format::f32, std::vector<double>(rows), std::vector<double>(rows, kInfinity)},
          std::vector<Strength>(rows, Strength::order_free)};
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

}  // namespace

Acceptance acceptance_by_heads(const Problem& problem, const Values& values,
                               const PrecisionPath& path, Strength at_most,
                               std::atomic<Index>* done) {
  const Index heads = problem.batch * problem.query_heads;
  const auto cores = static_cast<Index>(std::max(1U, std::thread::hardware_concurrency()));
  Acceptance all = of_no_row(problem);
  std::atomic<Index> next = 0;
  std::exception_ptr failure;
  std::mutex mutex;  // of `failure`
  const auto work = [&] {
    try {
      for (Index n = next++; n < heads; n = next++) {
        const Index b = n / problem.query_heads, h = n % problem.query_heads;
        if (const Index rows = query_length(problem, b); rows > 0) {
          const Excerpt part = excerpt(problem, values, {}, {b, h, 0, rows});
          put_head(acceptance(part.problem, part.values, path, at_most), all,
                   row_number(problem, b, h, 0), problem.v_depth);
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
  return all;
}

}  // namespace attest

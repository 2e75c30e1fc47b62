// Subject: whatever claims to compute attention, seen through values alone: a kernel on the
// emulator or on a GPU, somebody's plugin in a worker process, a mutant, or the oracle itself.
// A property talks to nothing else.
#pragma once
#include <bitset>
#include <cstdint>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "reference/precision.hpp"
#include "reference/request.hpp"
#include "reference/values.hpp"

namespace attest {

/// What memory that no correct subject may read is filled with: slots behind the last key, rows
/// behind a batch entry's length, gaps between strided rows, guard zones, outputs and scratch.
enum class Poison : std::uint8_t { nan, huge, small };

/// What a subject says of itself.
struct Description {
  std::string name;
  std::string numerics;        // the numeric model it runs under, e.g. "emulated: sm_80" or "cuda"
  PrecisionPath precision;     // where Subject::precision_for says nothing else
  bool deterministic = false;  // promises the same bits on every run
  bool batch_invariant = false;  // promises a row's bits do not depend on its neighbours
  bool counts = false;           // its replies carry Counters
};

/// A crash, a hang, an exit, a corrupted guard zone, changed inputs, or a finding of a checker.
struct Fault {
  std::string
      kind;  // one word: crashed, hung, exited, guard, inputs_changed, memcheck, refused ...
  std::string what;  // one sentence with kernel, block, thread and source line where known
};

/// What the emulator counted while a subject ran; empty on a GPU or for host code. An addition or
/// product is one operation, a fused multiply-add two. Bytes are those that threads ask for; there
/// is no cache. What is copied by the host, before or after, is not in it.
struct Counters {
  std::int64_t launches = 0;
  std::int64_t warp_instructions = 0;
  std::int64_t f32_flops = 0;
  std::int64_t f16_flops = 0;  // and bf16
  std::int64_t f64_flops = 0;
  std::int64_t tensor_flops = 0;
  std::int64_t special_operations = 0;  // exponentials, reciprocals, roots, quotients ...
  std::int64_t integer_operations = 0;
  std::int64_t global_read_bytes = 0;
  std::int64_t global_written_bytes = 0;
  std::int64_t global_sectors = 0;  // of 32 bytes, per access of a warp
  std::int64_t shared_bytes = 0;
  std::int64_t bank_conflicts = 0;  // passes over shared memory beyond the least
  std::int64_t local_bytes = 0;
  std::int64_t barriers = 0;  // waited at by warps
  std::int64_t divergent_branches = 0;
  bool operator==(const Counters&) const = default;
};

/// The members of Counters by the names under which they are shown.
struct CounterColumn {
  std::string_view name;
  std::int64_t Counters::*value;
};
inline constexpr CounterColumn kCounterColumns[] = {
    {"launches", &Counters::launches},
    {"warp_instructions", &Counters::warp_instructions},
    {"f32_flops", &Counters::f32_flops},
    {"f16_flops", &Counters::f16_flops},
    {"f64_flops", &Counters::f64_flops},
    {"tensor_flops", &Counters::tensor_flops},
    {"special_operations", &Counters::special_operations},
    {"integer_operations", &Counters::integer_operations},
    {"global_read_bytes", &Counters::global_read_bytes},
    {"global_written_bytes", &Counters::global_written_bytes},
    {"global_sectors", &Counters::global_sectors},
    {"shared_bytes", &Counters::shared_bytes},
    {"bank_conflicts", &Counters::bank_conflicts},
    {"local_bytes", &Counters::local_bytes},
    {"barriers", &Counters::barriers},
    {"divergent_branches", &Counters::divergent_branches},
};
static_assert(sizeof(Counters) == std::size(kCounterColumns) * sizeof(std::int64_t));

constexpr Counters& operator+=(Counters& sum, const Counters& more) {
  for (const CounterColumn& column : kCounterColumns) sum.*column.value += more.*column.value;
  return sum;
}

/// Whether anything was counted: a subject that has run has launched something.
constexpr bool has_counters(const Counters& counters) {
  return counters.launches != 0 && counters.warp_instructions != 0;
}
constexpr std::int64_t flops_of(const Counters& counters) {
  return counters.f32_flops + counters.f16_flops + counters.f64_flops + counters.tensor_flops;
}

/// Whatever is not set was not produced. When `fault` is set nothing else may be believed.
struct Reply {
  std::optional<Fault> fault;
  Tensor o;     // prefill, decode: (batch, num_heads_q, queries, head_dim_v)  format: output
  Tensor lse;   // prefill, decode: (batch, num_heads_q, queries, 1)        f32
  Tensor k, v;  // append: the whole cache afterwards, (batch, num_heads_kv, capacity, head_dim /
                // head_dim_v); copy_pages: all pages afterwards
  Tensor k_scales, v_scales;  // append with scales per token: those of the whole cache
  Tensor y;                   // projection: (batch, 1, rows, columns of w)
  Counters counters;
  std::vector<std::string> kernels;  // that were launched, in that order; empty where unknown
};

/// What an emulator may choose where hardware differs: arithmetic, and one of the legal orders.
struct Setting {
  std::string numerics;        // "sm_90+worst:7"
  std::uint64_t schedule = 0;  // a seed; 0: the strictest order for progress
  bool operator==(const Setting&) const = default;
};

using Handler = std::function<Reply(const Request&, Poison)>;

struct Subject {
  Description description;
  std::bitset<kOperationCount> offered;  // a bit per Operation
  /// Why this Problem is not accepted, or nothing. Declined is not failed.
  std::function<std::optional<std::string>(Operation, const Problem&)> declines;
  /// How it rounds on this Problem, when that is not the same for all; see precision_of.
  std::function<PrecisionPath(Operation, const Problem&)> precision_for;
  /// Only for what is offered.
  Handler call;
  /// Begins a check: all calls until the next one run under `setting`, and the same calls give the
  /// same bits again. Not set where there is nothing to choose, as on a GPU. Throws Error for a
  /// numeric model that does not exist.
  std::function<void(const Setting&)> begin_under;
  /// The calls that follow run in another legal order, the turn-th besides that of the check, to
  /// which 0 returns; with the same arithmetic. Set where begin_under is.
  std::function<void(std::uint64_t turn)> reorder;
};

inline bool offers(const Subject& subject, Operation operation) {
  return subject.offered.test(static_cast<std::size_t>(operation));
}

/// Hands requests of kind Asked to `act(asked, poison, right)` from now on, where `right` is what
/// handled them before; all others go there at once.
template <class Asked, class Act>
void intercept(Subject& subject, Act act) {
  subject.call = [right = std::move(subject.call), act = std::move(act)](const Request& request,
                                                                         Poison poison) -> Reply {
    if (const auto* asked = std::get_if<Asked>(&request)) return act(*asked, poison, right);
    return right(request, poison);
  };
}

/// How `subject` rounds when it is asked for `operation` on `problem`.
inline PrecisionPath precision_of(const Subject& subject, Operation operation,
                                  const Problem& problem) {
  return subject.precision_for ? subject.precision_for(operation, problem)
                               : subject.description.precision;
}

}  // namespace attest

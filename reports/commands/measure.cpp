// measure --cost: what calls of a subject cost on the emulator, kernel by kernel, and how near that
// is to the least that must be read, written and computed.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "optimized/plugin/usual_calls.hpp"
#include "optimized/plugin/worker.hpp"
#include "properties/cache_rows.hpp"
#include "properties/fills.hpp"
#include "properties/projection_bound.hpp"
#include "reference/formats.hpp"
#include "reference/text.hpp"
#include "reports/commands/assembler.hpp"
#include "reports/commands/commands.hpp"
#include "reports/commands/subjects.hpp"
#include "reports/cost.hpp"
#include "reports/say.hpp"

namespace attest {
namespace {

struct Call {
  Operation operation;
  Case test_case;
  std::string text;  // of the case
};

Problem problem_of(const UsualCall& call) {
  Problem p;
  p.batch = call.batch;
  p.num_heads_q = call.num_heads_q;
  p.num_heads_kv = call.num_heads_kv;
  p.seqlen_q = call.seqlen_q;
  p.seqlen_kv = call.seqlen_kv;
  p.head_dim = call.head_dim;
  p.head_dim_v = call.operation == ATTEST_PROJECTION ? 1 : call.head_dim;
  p.input = static_cast<Format>(call.format);
  if (call.operation != ATTEST_APPEND) p.output = p.input;
  p.softmax_scale = default_scale(p.head_dim);
  p.causal = call.causal;
  p.num_splits = call.num_splits;
  if (call.cache != call.format) p.cache = static_cast<Format>(call.cache);
  p.scales = static_cast<Scales>(call.scales);
  p.page_size = call.page_size;
  p.page_order = call.page_size > 0 ? 1 : 0;  // not in rising order, as in a cache long in use
  p.rope = static_cast<Rope>(call.rope);
  return p;
}

std::vector<Call> usual_calls() {
  std::vector<Call> calls;
  for (const UsualCall& usual : kUsualCalls) {
    const Case test_case{.problem = problem_of(usual)};
    calls.push_back({static_cast<Operation>(usual.operation), test_case, print(test_case)});
  }
  return calls;
}

Call call_named(const std::string& words) {
  constexpr Operation kMeasured[] = {Operation::prefill, Operation::decode, Operation::append,
                                     Operation::projection};
  const std::size_t blank = std::min(words.find(' '), words.size());
  for (const Operation operation : kMeasured) {
    if (words.substr(0, blank) != name_of(operation)) continue;
    const Case parsed = parse_case(words.substr(blank));
    return {operation, parsed, print(parsed)};
  }
  throw Error(
      fmt::format("--call: '{}' begins with no operation that is measured; say prefill, decode, "
                  "append or projection, and then a case line",
                  words));
}

std::int64_t size_of(const Tensor& tensor) {
  return static_cast<std::int64_t>(tensor.bytes.size());
}

/// As many tokens as there are queries, behind half a cache.
CacheUpdate update_of(const Problem& p, const Values& values) {
  const auto batch = static_cast<std::size_t>(p.batch);
  CacheUpdate update{.k = values.k,
                     .v = values.v,
                     .new_k = Tensor(p.input, {p.batch, p.num_heads_kv, p.seqlen_q, p.head_dim}),
                     .new_v = Tensor(p.input, {p.batch, p.num_heads_kv, p.seqlen_q, p.head_dim_v}),
                     .cache_seqlens = std::vector<Index>(batch, p.seqlen_kv / 2),
                     .new_seqlens = std::vector<Index>(batch, p.seqlen_q)};
  update.k_scales = values.k_scales;
  update.v_scales = values.v_scales;
  for (Index i = 0; i < update.new_k.count(); ++i)
    update.new_k.set(i, 1 + static_cast<double>(i % 3));
  for (Index i = 0; i < update.new_v.count(); ++i)
    update.new_v.set(i, 1 + static_cast<double>(i % 5));
  if (p.rope != Rope::none) update.rope_cos_sin = rotation_table(p.seqlen_kv, p.head_dim);
  return update;
}

/// Bytes of K and V when every tile of queries reads what its last row sees.
std::int64_t tiled_bytes(const Problem& p, const Values& values, std::uint64_t blocks) {
  const auto heads = static_cast<std::uint64_t>(p.batch * p.num_heads_q);
  if (heads == 0 || blocks == 0 || blocks % heads != 0) return 0;
  const auto tiles = static_cast<Index>(blocks / heads);
  const Index rows = (p.seqlen_q + tiles - 1) / tiles;
  Index keys = 0;
  for (Index last = rows; last < p.seqlen_q + rows; last += rows) {
    const Index diagonal = p.alignment == Alignment::bottom_right ? p.seqlen_kv - p.seqlen_q : 0;
    const Index seen = std::min(last, p.seqlen_q) + diagonal;
    keys += p.causal ? std::clamp<Index>(seen, 0, p.seqlen_kv) : p.seqlen_kv;
  }
  const std::int64_t all = size_of(values.k) + size_of(values.v);
  return all / (p.batch * p.num_heads_kv * p.seqlen_kv) * keys * static_cast<Index>(heads);
}

struct Done {
  Reply reply;
  std::int64_t least_bytes = 0;
};

Done ask(const Subject& subject, const Call& call, const Values& values) {
  const Problem& p = call.test_case.problem;
  Done done;
  if (call.operation == Operation::projection) {
    const Projection projection = projection_from(p, values);
    done.reply = subject.call(Project{projection}, Poison::nan);
    done.least_bytes = size_of(projection.x) + size_of(projection.w) + size_of(done.reply.y);
  } else if (call.operation == Operation::append) {
    const CacheUpdate update = update_of(p, values);
    done.reply = subject.call(Append{p, update}, Poison::nan);
    const Index tokens = p.batch * p.num_heads_kv * p.seqlen_q;
    done.least_bytes = size_of(update.new_k) + size_of(update.new_v) +
                       tokens * (p.head_dim + p.head_dim_v) * bytes_of(cache_format(p));
  } else {
    done.reply = subject.call(Attend{call.operation, p, values}, Poison::nan);
    done.least_bytes = size_of(values.q) + size_of(values.k) + size_of(values.v) +
                       size_of(done.reply.o) + size_of(done.reply.lse);
    if (call.operation == Operation::decode &&
        p.num_splits > 1) {  // parts, written and read: O, m, l
      constexpr std::int64_t kTwice = 2, kWord = 4;
      done.least_bytes +=
          kTwice * kWord * p.num_splits * p.batch * p.num_heads_q * p.seqlen_q * (p.head_dim_v + 2);
    }
  }
  return done;
}

CallCost cost_of(const ProfiledPlugin& plugin, const Call& call) {
  const Problem& p = call.test_case.problem;
  CallCost cost;
  cost.operation = name_of(call.operation);
  cost.problem = call.text;
  if (!offers(plugin.subject, call.operation)) {
    cost.declined = "not offered";
    return cost;
  }
  if (const auto why = plugin.subject.declines(call.operation, p)) {
    cost.declined = *why;
    return cost;
  }
  const Values values = make_values(call.test_case);
  plugin.profile();  // what came before is not counted
  const Done done = ask(plugin.subject, call, values);
  if (done.reply.fault) {
    throw Error(fmt::format("{} {}: {}: {}", cost.operation, cost.problem, done.reply.fault->kind,
                            done.reply.fault->what));
  }
  cost.least_bytes = done.least_bytes;
  for (const emulator::KernelProfile& kernel : plugin.profile()) {
    if (call.operation == Operation::prefill && cost.kernels.empty()) {
      const std::int64_t once = done.least_bytes - size_of(values.k) - size_of(values.v);
      const std::int64_t tiled = tiled_bytes(p, values, kernel.grid_blocks);
      cost.tiled_bytes = tiled == 0 ? 0 : once + tiled;
    }
    cost.kernels.push_back({kernel, {}});
  }
  if (cost.kernels.empty()) cost.declined = "it launched nothing";
  return cost;
}

/// As in a profile: ptxas writes mangled names.
Resources with_readable_names(const Resources& resources) {
  Resources named;
  for (const auto& [mangled, kernel] : resources) named[emulator::readable_name(mangled)] = kernel;
  return named;
}

}  // namespace

int measure(const MeasureCommand& options) {
  if (!options.cost) return measure_errors(options);
  if (!options.cases.empty() || !options.json.empty() || !options.compare.empty()) {
    throw Error("--cost: takes --call; --case, --json and --compare are for errors");
  }
  std::vector<Call> asked;
  for (const std::string& call : options.calls) asked.push_back(call_named(call));
  if (asked.empty()) asked = usual_calls();
  WorkerOptions worker;
  worker.plugin = plugin_named(options.subject.subject);
  worker.device = DeviceChoice::emulated;
  worker.case_seconds = options.subject.case_seconds;
  worker.emulator.checks = {.memcheck = false, .initcheck = false, .racecheck = false};
  const ProfiledPlugin plugin = open_profiled_plugin(worker);
  if (!plugin.subject.description.counts) {
    throw Error(fmt::format("{} launches no kernels: there is nothing to count",
                            plugin.subject.description.name));
  }
  std::map<int, Resources> resources;  // by architecture, which machines may share
  const auto ptxas = assembler();
  for (const Machine& machine : machines()) {
    if (!ptxas || resources.contains(machine.architecture)) continue;
    resources[machine.architecture] =
        with_readable_names(assemble(*ptxas, worker.plugin, machine.architecture));
  }
  std::vector<CallCost> calls;
  for (const Call& call : asked) {
    calls.push_back(cost_of(plugin, call));
    for (KernelCost& kernel : calls.back().kernels) {
      for (const Machine& machine : machines()) {
        const Resources& known = resources[machine.architecture];
        const auto found = known.find(kernel.profile.kernel);
        if (found == known.end()) break;
        kernel.use.push_back({found->second.registers, found->second.spill_bytes});
      }
    }
  }
  say("{}", cost_table(calls));
  if (!ptxas) {
    say(stderr,
        "attest: no ptxas was found, so registers are unknown; ATTEST_PTXAS may name "
        "one\n");
  }
  return 0;
}

}  // namespace attest

// Asking: what a subject must have answered before any property may look at its numbers. Knows the
// shapes that replies must have, and nothing of what should be in them.
#include "properties/ask.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <tuple>

#include "properties/judge.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

std::optional<Verdict> misshapen(Operation operation, std::string_view what, const Tensor& got,
                                 Format format, const Extent4& extent) {
  if (got.format == format && got.extent == extent) return std::nullopt;
  return faulted(fmt::format("{} returned {} as {} of {}x{}x{}x{}, asked for {} of {}x{}x{}x{}",
                             name_of(operation), what, attest::name_of(got.format), got.extent[0],
                             got.extent[1], got.extent[2], got.extent[3], attest::name_of(format),
                             extent[0], extent[1], extent[2], extent[3]));
}

std::optional<Verdict> fault_of(Operation operation, const Reply& reply) {
  if (!reply.fault) return std::nullopt;
  if (reply.fault->kind == kUnsupported) throw Error(reply.fault->what);
  return faulted(
      fmt::format("{} {}: {}", name_of(operation), reply.fault->kind, reply.fault->what));
}

/// The whole cache afterwards must be as large as before.
std::optional<Verdict> not_that_cache(Operation operation, const Reply& reply, const Tensor& k,
                                      const Tensor& v) {
  if (auto fault = fault_of(operation, reply)) return fault;
  if (auto wrong = misshapen(operation, "k", reply.k, k.format, k.extent)) return wrong;
  return misshapen(operation, "v", reply.v, v.format, v.extent);
}

}  // namespace

std::optional<Verdict> refusal(const Subject& subject, Operation operation,
                               const Problem& problem) {
  if (!offers(subject, operation)) {
    return declined(fmt::format("{} is not offered", name_of(operation)));
  }
  if (!subject.declines) return std::nullopt;
  const std::optional<std::string> why = subject.declines(operation, problem);
  if (!why) return std::nullopt;
  return declined(fmt::format("{}: {}", name_of(operation), *why));
}

Operation attention_for(const Problem& problem) {
  const bool served = problem.page_size > 0 || problem.ring > 0 || problem.cache.has_value();
  return problem.num_splits > 1 || served ? Operation::decode : Operation::prefill;
}

Answer ask(const Subject& subject, Operation operation, const Problem& problem,
           const Values& values, Poison poison) {
  Answer answer;
  answer.instead = refusal(subject, operation, problem);
  if (answer.instead) return answer;
  answer.reply = subject.call(Attend{operation, problem, values}, poison);
  const Problem& p = problem;
  answer.instead = fault_of(operation, answer.reply);
  if (!answer.instead) {
    answer.instead = misshapen(operation, "o", answer.reply.o, p.output,
                               {p.batch, p.num_heads_q, p.seqlen_q, p.head_dim_v});
  }
  if (!answer.instead && wants_lse(p)) {
    answer.instead = misshapen(operation, "lse", answer.reply.lse, Format::f32,
                               {p.batch, p.num_heads_q, p.seqlen_q, 1});
  }
  return answer;
}

Answer ask_attention(const Subject& subject, const Problem& problem, const Values& values,
                     Poison poison) {
  return ask(subject, attention_for(problem), problem, values, poison);
}

Answer ask_append(const Subject& subject, const Problem& problem, const CacheUpdate& update) {
  constexpr Operation kAppend = Operation::append;
  Answer answer;
  answer.instead = refusal(subject, kAppend, problem);
  if (answer.instead) return answer;
  answer.reply = subject.call(Append{problem, update}, Poison::nan);
  answer.instead = not_that_cache(kAppend, answer.reply, update.k, update.v);
  if (problem.scales != Scales::token) return answer;
  for (const auto& [what, before, after] :
       {std::tuple{"k_scales", &update.k_scales, &answer.reply.k_scales},
        std::tuple{"v_scales", &update.v_scales, &answer.reply.v_scales}}) {
    if (answer.instead) break;
    answer.instead = misshapen(kAppend, what, *after, Format::f32, (*before)->extent);
  }
  return answer;
}

Answer ask_copy_pages(const Subject& subject, const Problem& problem, const PageCopy& copy) {
  constexpr Operation kCopy = Operation::copy_pages;
  Answer answer;
  answer.instead = refusal(subject, kCopy, problem);
  if (answer.instead) return answer;
  answer.reply = subject.call(CopyPages{problem, copy}, Poison::nan);
  answer.instead = not_that_cache(kCopy, answer.reply, copy.k, copy.v);
  return answer;
}

Answer ask_projection(const Subject& subject, const Problem& problem,
                      const Projection& projection) {
  constexpr Operation kProjection = Operation::projection;
  Answer answer;
  answer.instead = refusal(subject, kProjection, problem);
  if (answer.instead) return answer;
  answer.reply = subject.call(Project{projection}, Poison::nan);
  answer.instead = fault_of(kProjection, answer.reply);
  if (!answer.instead) {
    answer.instead =
        misshapen(kProjection, "y", answer.reply.y, projection.output,
                  {projection.x.extent[0], 1, projection.x.extent[2], projection.w.extent[3]});
  }
  return answer;
}

}  // namespace attest

// compare: the same cases on a device and on the emulator under several numeric models, bit for
// bit. Says where they part and by how much; whether either is right is the gate's business.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "properties/ask.hpp"
#include "properties/domains/domain.hpp"
#include "properties/fills.hpp"
#include "properties/rows.hpp"
#include "reference/text.hpp"
#include "reports/commands/commands.hpp"
#include "reports/commands/subjects.hpp"
#include "reports/rendering.hpp"
#include "reports/safetensors.hpp"
#include "reports/say.hpp"
#include "reports/strict_json.hpp"

namespace attest {
namespace {

constexpr std::array<const char*, 3> kModels{"f32", "sm_80", "sm_90"};
/// Whose cases are drawn, in turn: prefill, and decode over every kind of cache.
constexpr std::array<std::string_view, 2> kDomains{"oracle_agreement", "decode_agreement"};

/// An element by its place, and the bits of both.
struct Difference {
  std::string test_case, tensor;
  Extent4 where{};  // (batch, head, row, column)
  std::uint32_t device = 0, emulated = 0;
};

struct Comparison {
  std::string model;
  Subject subject;
  std::uint64_t cases = 0, declined = 0, cases_differ = 0;
  std::uint64_t elements = 0, differ = 0;
  double largest_ulp = 0;  // infinity where one is NaN and the other is not
  std::optional<Difference> first = {};
};

/// Numbers in the order of their values, so that neighbours differ by one. +0 and -0 are one apart.
std::int64_t rank_of(const Tensor& tensor, Index flat) {
  const int width = tensor.format == Format::f32 ? 32 : 16;
  const auto bits = static_cast<std::int64_t>(tensor.bits(flat));
  const std::int64_t sign = std::int64_t{1} << (width - 1);
  return bits < sign ? bits : sign - 1 - bits;
}

/// Domain: f32, f16, bf16, all bits. Error: none. Special: see Comparison::largest_ulp.
double distance_ulp(const Tensor& a, const Tensor& b, Index flat) {
  const bool nan = std::isnan(a.at(flat)), other_nan = std::isnan(b.at(flat));
  if (nan != other_nan) return std::numeric_limits<double>::infinity();
  return static_cast<double>(std::abs(rank_of(a, flat) - rank_of(b, flat)));
}

class Row {
 public:
  Row(Comparison& comparison, const Case& test_case)
      : comparison_(comparison), test_case_(test_case) {}

  void compare(const char* name, const Tensor& device, const Tensor& emulated, Index b, Index h,
               Index i) {
    for (Index c = 0; c < device.extent[3]; ++c) {
      const Index flat = device.offset(b, h, i, c);
      ++comparison_.elements;
      if (device.bits(flat) == emulated.bits(flat)) continue;
      ++comparison_.differ;
      comparison_.largest_ulp =
          std::max(comparison_.largest_ulp, distance_ulp(device, emulated, flat));
      if (comparison_.first) continue;
      comparison_.first =
          Difference{print(test_case_), name, {b, h, i, c}, device.bits(flat), emulated.bits(flat)};
    }
  }

 private:
  Comparison& comparison_;
  const Case& test_case_;
};

/// Nothing, or the reply; a fault ends the comparison.
std::optional<Reply> answer_of(const Subject& subject, const Case& test_case,
                               const Values& values) {
  Answer answer = ask_attention(subject, test_case.problem, values);
  if (!answer.instead) return std::move(answer.reply);
  if (answer.instead->outcome == Outcome::declined) return std::nullopt;
  throw Error(fmt::format("compare: {} ({}) on '{}'", answer.instead->why,
                          subject.description.numerics, print(test_case)));
}

void compare_on(const Case& test_case, const Subject& device, std::vector<Comparison>& all) {
  const Values values = make_values(test_case);
  const std::optional<Reply> theirs = answer_of(device, test_case, values);
  for (Comparison& each : all) {
    const std::optional<Reply> ours =
        theirs ? answer_of(each.subject, test_case, values) : std::nullopt;
    if (!ours) {
      ++each.declined;
      continue;
    }
    const std::uint64_t before = each.differ;
    Row row(each, test_case);
    for_each_row(test_case.problem, [&](Index b, Index h, Index i) {
      row.compare("o", theirs->o, ours->o, b, h, i);
      if (theirs->lse.count() > 0) row.compare("lse", theirs->lse, ours->lse, b, h, i);
    });
    ++each.cases;
    each.cases_differ += each.differ != before ? 1 : 0;
  }
}

std::string place_of(const Difference& d) {
  return fmt::format("{}[{},{},{},{}] {:#x} and {:#x}: {}", d.tensor, d.where[0], d.where[1],
                     d.where[2], d.where[3], d.device, d.emulated, d.test_case);
}

void print_table(const std::vector<Comparison>& all) {
  say("{:<8}{:>8}{:>10}{:>14}{:>12}{:>14}\n", "model", "cases", "differ", "elements", "differ",
      "largest, ulp");
  for (const Comparison& each : all) {
    say("{:<8}{:>8}{:>10}{:>14}{:>12}{:>14}\n", each.model, each.cases, each.cases_differ,
        each.elements, each.differ, short_number(each.largest_ulp));
  }
  for (const Comparison& each : all) {
    if (each.first) say("first under {}: {}\n", each.model, place_of(*each.first));
  }
}

nlohmann::json json_of(const CompareOptions& options, const Subject& device,
                       const std::vector<Comparison>& all) {
  nlohmann::json models = nlohmann::json::array();
  for (const Comparison& each : all) {
    nlohmann::json first;
    if (each.first) {
      first = {{"case", each.first->test_case},
               {"tensor", each.first->tensor},
               {"where", each.first->where},
               {"device_bits", each.first->device},
               {"emulated_bits", each.first->emulated}};
    }
    models.push_back({{"model", each.model},
                      {"cases", each.cases},
                      {"declined", each.declined},
                      {"cases_differ", each.cases_differ},
                      {"elements", each.elements},
                      {"elements_differ", each.differ},
                      {"largest_ulp", number_of(each.largest_ulp)},
                      {"first", first}});
  }
  return {{"version", version_text()},
          {"subject", reference_of(options.subject.subject)},
          {"device", device.description.numerics},
          {"seed", options.seed},
          {"models", models}};
}

}  // namespace

int compare(const CompareOptions& options) {
  if (options.cases == 0) throw Error("--cases: 0 cases compare nothing; give at least 1");
  if (!options.out.empty()) require_writable_file(options.out);
  const Subject device = subject_maker(options.subject)();
  std::vector<Comparison> all;
  for (const char* model : kModels) {
    SubjectOptions emulated = options.subject;
    emulated.device = "emulated";
    emulated.emulation.numerics = model;
    emulated.emulation.checks = "none";
    all.push_back({.model = model, .subject = subject_maker(emulated)()});
  }
  say("{}, seed {}: comparing '{}' on {} with the emulator, bit for bit\n", version_text(),
      options.seed, options.subject.subject, device.description.numerics);
  std::fflush(stdout);
  for (std::uint64_t i = 0; i < options.cases; ++i) {
    const std::string_view domain = kDomains[i % kDomains.size()];
    compare_on(draw_case(domain, options.seed, i / kDomains.size()), device, all);
  }
  print_table(all);
  if (!options.out.empty()) write_whole(options.out, text_of(json_of(options, device, all)));
  if (all.front().elements > 0) return 0;
  say("nothing was compared: the subject accepted none of {} cases\n", options.cases);
  return 2;
}

}  // namespace attest

// Which tier computes which row: Ziv's strategy (A. Ziv, Fast evaluation of elementary mathematical
// functions with correctly rounded last bit, ACM TOMS 17, 1991), row by row.
#include "reference/oracle/certified.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "reference/oracle/exponential.hpp"
#include "reference/oracle/radius.hpp"
#include "reference/oracle/tiers.hpp"

namespace attest {
namespace {

using namespace oracle;

constexpr double kAnyFinite = std::numeric_limits<double>::max();

/// Whether the row's radii are within what is asked.
bool meets(const Certified& result, const Demand& demand, std::size_t row) {
  const auto most = [](const std::vector<double>& asked, std::size_t at) {
    return asked.empty() ? kAnyFinite : asked[at];
  };
  if (!(result.lse_radius[row] <= most(demand.lse, row))) return false;
  const auto width = static_cast<std::size_t>(result.truth.extent[3]);
  for (std::size_t at = row * width; at < (row + 1) * width; ++at) {
    if (!(result.o_radius[at] <= most(demand.o, at))) return false;
  }
  return true;
}

}  // namespace

namespace oracle {

Enclosed in_base_of(const Problem& problem, double lse, double radius) {
  constexpr double kLog2e = std::numbers::log2e;  // nearest
  if (problem.lse_base != LogBase::two || !std::isfinite(lse)) return {lse, radius};
  const double in_base = lse * kLog2e;
  // log2 e is rounded, and the product is.
  return {in_base, (radius * kLog2e + 2 * kUnit * std::fabs(in_base)) * kRoom};
}

}  // namespace oracle

std::array<Index, kTierNames.size()> Certified::rows_of_tiers() const {
  std::array<Index, kTierNames.size()> counts{};
  for (Tier each : tier) ++counts[static_cast<std::size_t>(each)];
  return counts;
}

std::string tiers_text(const Certified& certified) {
  const auto rows = certified.rows_of_tiers();
  std::string text;
  for (std::size_t tier = 0; tier < rows.size(); ++tier) {
    if (rows[tier] == 0) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", kTierNames[tier], rows[tier]);
  }
  return text;
}

double Certified::o_off(std::size_t at) const {
  return o_radius[at] + std::fabs(truth.o_tail[at]);
}

double Certified::lse_off(std::size_t at) const {
  return lse_radius[at] + std::fabs(truth.lse_tail[at]);
}

void Certified::widen(std::vector<double>& o, std::vector<double>& lse) const {
  for (std::size_t at = 0; at < o.size(); ++at) o[at] += o_off(at);
  for (std::size_t at = 0; at < lse.size(); ++at) lse[at] += lse_off(at);
}

Demand share_of(std::vector<double> o, std::vector<double> lse) {
  for (auto* allowed : {&o, &lse}) {
    for (double& each : *allowed) each *= 0x1p-8;
  }
  return {std::move(o), std::move(lse)};
}

Certified certified_attention(const Problem& problem, const Values& values, const Demand& demand) {
  Certified result = in_double(problem, values);
  std::vector<std::size_t> special, rows;
  for (std::size_t row = 0; row < result.tier.size(); ++row) {
    if (std::isnan(result.truth.lse[row])) {
      special.push_back(row);
    } else if (!meets(result, demand, row)) {
      rows.push_back(row);
    }
  }
  redo_in_digits(problem, values, Tier::fifty, special, result);
  const auto is_done = [&](std::size_t row) { return meets(result, demand, row); };
  redo_in_pairs(problem, values, rows, result);
  std::erase_if(rows, is_done);
  for (Tier tier : {Tier::fifty, Tier::hundred, Tier::two_hundred}) {
    redo_in_digits(problem, values, tier, rows, result);
    std::erase_if(rows, is_done);
  }
  return result;
}

}  // namespace attest

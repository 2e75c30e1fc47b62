#include "fuzz/drawing.hpp"

#include "fuzz/narrowing.hpp"
#include "properties/domains/domain.hpp"
#include "properties/domains/fitted.hpp"

namespace attest {
namespace {

// Draws of one case are as far apart as indices of a campaign never are.
constexpr int kDrawShift = 40;
// An aimed case that was declined so often is drawn unaimed: its cell may be closed.
constexpr std::uint64_t kAimedDraws = 3;

}  // namespace

Case case_of(const Ticket& ticket, std::string_view property, const CampaignOptions& options,
             std::uint64_t draw, const Subject& subject, const Served& served) {
  Case drawn = draw_case(property, options.seed, ticket.draw_index + (draw << kDrawShift));
  if (ticket.aim != nullptr && draw < kAimedDraws) drawn = aimed(drawn, *ticket.aim);
  if (ticket.pair) drawn = planned(drawn, property, subject, served, *ticket.pair + draw);
  drawn = brought(drawn, property, options.where);
  return fitted(drawn, property, subject, served);
}

}  // namespace attest

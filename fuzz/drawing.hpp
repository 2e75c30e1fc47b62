// Drawing: which case the n-th draw of a number is: drawn, then aimed or planned, then moved to
// what the subject serves.
#pragma once
#include <cstdint>
#include <string_view>

#include "fuzz/campaign.hpp"
#include "fuzz/ticket.hpp"
#include "properties/domains/served.hpp"

namespace attest {

/// Not the case that the ticket holds. The same for the same ticket, options and draw.
Case case_of(const Ticket& ticket, std::string_view property, const CampaignOptions& options,
             std::uint64_t draw, const Subject& subject, const Served& served);

}  // namespace attest

// Setting of a case: which numeric model and which legal order the emulator gives it. A function of
// the campaign's seed and of the case's number alone. Knows nothing of what the case asks for.
#pragma once
#include <cstdint>

#include "fuzz/run.hpp"

namespace attest {

/// What is drawn in `asked`, drawn; the rest as asked. Models are those of today's architectures,
/// every second case errs as much as is documented; every second case runs in the strictest order.
Setting draw_setting(const EmulationOptions& asked, std::uint64_t seed, std::uint64_t number);

bool draws(const EmulationOptions& asked);

/// What is drawn in `asked`, as it is where nothing is drawn.
EmulationOptions without_drawing(EmulationOptions asked);

/// A model without its seed: "sm_90+worst". What a run counts its cases by.
std::string model_of(const Setting& setting);

}  // namespace attest

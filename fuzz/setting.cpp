// Philox keyed by the campaign's seed and counted by the case's number: see the header.
#include "fuzz/setting.hpp"

#include <array>

#include "properties/counter_random.hpp"

namespace attest {
namespace {

// From sm_80 on: older ones lack instructions that today's kernels are made of.
constexpr std::array kModels{emulator::TensorModel::sm_80, emulator::TensorModel::sm_89,
                             emulator::TensorModel::sm_90, emulator::TensorModel::sm_100,
                             emulator::TensorModel::sm_120};

}  // namespace

Setting draw_setting(const EmulationOptions& asked, std::uint64_t seed, std::uint64_t number) {
  // The number's halves are two coordinates, of 32 bits each.
  const auto bits = random_bits(seed, Stream::setting, 0, 0, static_cast<Index>(number >> 32),
                                static_cast<Index>(number & 0xffffffffU));
  Setting setting{asked.numerics, asked.schedule.value_or(0)};
  if (asked.numerics == kDrawn) {
    emulator::NumericModel model{kModels[bits[0] % kModels.size()], {}};
    if ((bits[0] >> 31) != 0) model.worst = bits[1];
    setting.numerics = print(model);
  }
  if (!asked.schedule && (bits[2] >> 31) != 0) setting.schedule = bits[3];
  return setting;
}

bool draws(const EmulationOptions& asked) {
  return asked.numerics == kDrawn || !asked.schedule;
}

EmulationOptions without_drawing(EmulationOptions asked) {
  const EmulationOptions usual;
  if (asked.numerics == kDrawn) asked.numerics = usual.numerics;
  if (!asked.schedule) asked.schedule = usual.schedule;
  return asked;
}

std::string model_of(const Setting& setting) {
  return setting.numerics.substr(0, setting.numerics.find(':'));
}

}  // namespace attest

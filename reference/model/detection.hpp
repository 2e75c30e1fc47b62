// Detection: which share of the rows of a defective kernel's output each bound refuses, and what
// the rules of other projects say of the same outputs. The page is
// reference/bound/detection.md, printed by bin/detection_page.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "reference/bound/acceptance.hpp"
#include "reference/model/model.hpp"

namespace attest {

struct Detection {
  Defect defect = Defect::none;
  Index changed = 0;  // rows in which the defect made any difference to O
  std::array<Index, kStrengthNames.size()> refused{};  // rows that a bound of this strength refuses
  std::vector<bool> accepted;                          // by each of peer_rules()
};

struct DetectionTable {
  std::string title;
  Index rows = 0;
  std::vector<Detection> lines;  // by Defect, the healthy model first
};

/// 128 rows over `keys` keys, bf16 in and out; K and V hold one more row, which no query sees.
/// N(0, 1) throughout, but with `one_sign` |V|.
struct DetectionCase {
  Problem problem;
  Values values;
  PrecisionPath path;  // as of a FlashAttention 3 kernel on H100
};
DetectionCase detection_case(Index keys, bool one_sign);

DetectionTable detect(const DetectionCase& which, std::string title);

/// All cases of the page, and the page.
std::vector<DetectionTable> detection_tables();
std::string detection_page(const std::vector<DetectionTable>& tables);

}  // namespace attest

// The oracle as a Subject: the truth, rounded to the formats asked for. No property may refuse it.
#pragma once
#include "reference/subject.hpp"

namespace attest {

/// Offers every operation, declines nothing, promises determinism and batch invariance.
Subject oracle_subject();

}  // namespace attest

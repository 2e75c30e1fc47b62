// A Subject for tests: another one, with the counters of an honest kernel. The cost properties may
// refuse it as little as any property may refuse the truth.
#pragma once
#include "reference/subject.hpp"

namespace attest {

Subject counted(Subject subject);

}  // namespace attest

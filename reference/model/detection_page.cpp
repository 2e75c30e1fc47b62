// Prints reference/bound/detection.md. To renew it:
// bin/detection_page > reference/bound/detection.md
#include <cstdio>

#include "reference/model/detection.hpp"

int main() {
  std::fputs(attest::detection_page(attest::detection_tables()).c_str(), stdout);
}

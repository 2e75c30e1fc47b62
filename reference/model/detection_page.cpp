// Prints the tables of detection as Markdown.
#include <cstdio>

#include "reference/model/detection.hpp"

int main() {
  std::fputs(attest::detection_page(attest::detection_tables()).c_str(), stdout);
}

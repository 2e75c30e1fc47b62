// Runs a fuzz target without libFuzzer: every file of a folder, then a fixed number of mutations of
// each. What a mutation is follows from its number alone, so a failure is reproducible.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr unsigned kMutationsPerFile = 2000;

std::vector<std::uint8_t> mutated(std::vector<std::uint8_t> bytes, std::mt19937& random) {
  const unsigned edits = 1 + random() % 8;
  for (unsigned edit = 0; edit < edits; ++edit) {
    const std::size_t at = bytes.empty() ? 0 : random() % bytes.size();
    switch (random() % 5) {
      case 0:
        if (!bytes.empty()) bytes[at] = static_cast<std::uint8_t>(random());
        break;
      case 1:
        if (!bytes.empty()) bytes[at] ^= static_cast<std::uint8_t>(1U << (random() % 8));
        break;
      case 2:
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                     static_cast<std::uint8_t>(random()));
        break;
      case 3:
        bytes.resize(at);
        break;
      default: {
        const std::size_t length = std::min<std::size_t>(bytes.size() - at, random() % 32);
        const std::vector<std::uint8_t> piece(
            bytes.begin() + static_cast<std::ptrdiff_t>(at),
            bytes.begin() + static_cast<std::ptrdiff_t>(at + length));
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), piece.begin(), piece.end());
      }
    }
  }
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::vector<std::uint8_t>> corpus;
  for (int i = 1; i < argc; ++i) {
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());
    for (const auto& path : paths) {
      std::ifstream file(path, std::ios::binary);
      corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
  }
  if (corpus.empty()) {
    std::fputs("no corpus: nothing was fuzzed\n", stderr);
    return 1;
  }
  for (std::size_t file = 0; file < corpus.size(); ++file) {
    LLVMFuzzerTestOneInput(corpus[file].data(), corpus[file].size());
    for (unsigned number = 0; number < kMutationsPerFile; ++number) {
      std::mt19937 random(static_cast<unsigned>(file) * kMutationsPerFile + number);
      const auto bytes = mutated(corpus[file], random);
      LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    }
  }
  std::printf("%zu files, %u mutations of each\n", corpus.size(), kMutationsPerFile);
  return 0;
}

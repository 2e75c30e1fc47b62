// Lines in files, written beside and then renamed, so that a kill leaves no half of one.
#include "fuzz/corpus.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <system_error>

#include "reference/fnv.hpp"
#include "reference/one_line.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPlaceName = "place.txt";

void write_whole(const fs::path& path, const std::string& text) {
  std::error_code failed;
  fs::create_directories(path.parent_path(), failed);
  const fs::path draft = path.string() + ".draft";
  std::ofstream file(draft, std::ios::binary | std::ios::trunc);
  file << text << std::flush;
  const bool written = file.good();
  file.close();
  if (written) fs::rename(draft, path, failed);
  if (!written || failed) {
    throw Error(
        fmt::format("cannot write '{}'; choose a folder that can be written", path.string()));
  }
}

void read_lines(const fs::path& path, std::vector<PropertyCase>& checks) {
  std::ifstream file(path);
  if (!file) throw Error(fmt::format("cannot read '{}'", path.string()));
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string::npos || line[begin] == '#') continue;
    try {
      checks.push_back(parse_check(line));
    } catch (const Error& error) {
      throw Error(fmt::format("{}:{}: {}", path.string(), number, error.what()));
    }
    if (checks.back().property.empty()) {
      throw Error(fmt::format("{}:{}: the line names no property; put one before the case",
                              path.string(), number));
    }
  }
}

}  // namespace

std::vector<PropertyCase> read_corpus(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed)) {
    if (entry.path().extension() == ".case") paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  std::vector<PropertyCase> checks;
  for (const fs::path& path : paths) read_lines(path, checks);
  return checks;
}

fs::path add_to_corpus(const fs::path& folder, const PropertyCase& check,
                       const std::string& origin) {
  const std::string line = print(check);
  const fs::path path = folder / fmt::format("{}-{:016x}.case", check.property, fnv_of(line));
  if (!fs::exists(path)) write_whole(path, fmt::format("# {}\n{}\n", one_line(origin), line));
  return path;
}

std::optional<CampaignPlace> read_place(const fs::path& folder) {
  const fs::path path = folder / kPlaceName;
  std::ifstream file(path);
  if (!file) return std::nullopt;
  CampaignPlace place;
  std::string seed, next, properties, subject;
  file >> seed >> place.seed >> next >> place.next_index >> properties >> place.properties >>
      subject;
  std::getline(file >> std::ws, place.subject);
  if (!file || seed != "seed" || next != "next" || properties != "properties" ||
      subject != "subject") {
    throw Error(fmt::format("'{}' does not say where a campaign got to; remove it to begin anew",
                            path.string()));
  }
  if (std::string where; file >> where && where == "where") {
    std::getline(file >> std::ws, place.where);
  }
  return place;
}

void write_place(const fs::path& folder, const CampaignPlace& place) {
  write_whole(folder / kPlaceName,
              fmt::format("seed {}\nnext {}\nproperties {}\nsubject {}\n{}", place.seed,
                          place.next_index, place.properties, place.subject,
                          place.where.empty() ? "" : fmt::format("where {}\n", place.where)));
}

}  // namespace attest

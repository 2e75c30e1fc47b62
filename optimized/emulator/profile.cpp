// The one list of what is counted, and profiles as text.
#include "optimized/emulator/profile.hpp"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <iterator>

namespace attest::emulator {
namespace {

constexpr TotalColumn kColumns[] = {
    {"warp_instructions", &Totals::warp_instructions},
    {"thread_instructions", &Totals::thread_instructions},
    {"f32_flops", &Totals::f32_flops},
    {"f16_flops", &Totals::f16_flops},
    {"f64_flops", &Totals::f64_flops},
    {"tensor_flops", &Totals::tensor_flops},
    {"special_operations", &Totals::special_operations},
    {"integer_operations", &Totals::integer_operations},
    {"conversions", &Totals::conversions},
    {"moves", &Totals::moves},
    {"control", &Totals::control},
    {"memory", &Totals::memory},
    {"global_read_bytes", &Totals::global_read_bytes},
    {"global_written_bytes", &Totals::global_written_bytes},
    {"global_sectors", &Totals::global_sectors},
    {"global_sectors_least", &Totals::global_sectors_least},
    {"shared_bytes", &Totals::shared_bytes},
    {"shared_passes", &Totals::shared_passes},
    {"shared_passes_least", &Totals::shared_passes_least},
    {"local_bytes", &Totals::local_bytes},
    {"barriers", &Totals::barriers},
    {"divergent_branches", &Totals::divergent_branches},
    {"idle_lanes", &Totals::idle_lanes},
};
static_assert(sizeof(Totals) == std::size(kColumns) * sizeof(std::uint64_t));

constexpr std::size_t kNames = 3;  // fields before the numbers: record, kernel, place

struct Fact {
  std::string_view name;
  std::uint64_t KernelProfile::*value;
};
constexpr Fact kFacts[] = {{"launches", &KernelProfile::launches},
                           {"blocks", &KernelProfile::blocks},
                           {"blocks_covered", &KernelProfile::blocks_covered},
                           {"grid_blocks", &KernelProfile::grid_blocks},
                           {"block_threads", &KernelProfile::block_threads},
                           {"block_shared_bytes", &KernelProfile::block_shared_bytes}};

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  for (;;) {
    const std::size_t tab = line.find('\t');
    fields.push_back(line.substr(0, tab));
    if (tab == std::string_view::npos) return fields;
    line.remove_prefix(tab + 1);
  }
}

std::string header() {
  std::string line = "record\tkernel\tplace";
  for (const Fact& fact : kFacts) line += fmt::format("\t{}", fact.name);
  for (const TotalColumn& column : kColumns) line += fmt::format("\t{}", column.name);
  return line;
}

/// Names come from the program that is run: what would end a field or a line becomes a space.
std::string clean(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '\t' || c == '\n' || c == '\r'; }, ' ');
  return name;
}

std::string record(std::string_view kind, const KernelProfile& kernel, std::string_view place,
                   const Totals& totals) {
  const bool whole = kind == "kernel";
  std::string line = fmt::format("{}\t{}\t{}", kind, clean(kernel.kernel), place);
  for (const Fact& fact : kFacts) line += fmt::format("\t{}", whole ? kernel.*fact.value : 0);
  for (const TotalColumn& column : kColumns) line += fmt::format("\t{}", totals.*column.value);
  return line + "\n";
}

bool read_number(std::string_view text, std::uint64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

/// Why the record cannot be read, or empty.
std::string add_record(const std::vector<std::string_view>& fields, Profile& profile) {
  if (fields.size() != kNames + std::size(kFacts) + std::size(kColumns)) {
    return fmt::format("{} fields", fields.size());
  }
  KernelProfile kernel{.kernel = std::string(fields[1])};
  bool numbers = true;
  std::size_t next = kNames;
  for (const Fact& fact : kFacts) {
    numbers = read_number(fields[next++], kernel.*fact.value) && numbers;
  }
  for (const TotalColumn& column : kColumns) {
    numbers = read_number(fields[next++], kernel.totals.*column.value) && numbers;
  }
  if (!numbers) return "a field that is no number";
  if (fields[0] == "kernel") {
    profile.push_back(std::move(kernel));
    return {};
  }
  if (fields[0] != "line") return fmt::format("a record '{}'", fields[0]);
  if (profile.empty() || profile.back().kernel != kernel.kernel)
    return "a line that does not follow its kernel";
  profile.back().lines.push_back({std::string(fields[2]), kernel.totals});
  return {};
}

}  // namespace

std::span<const TotalColumn> total_columns() {
  return kColumns;
}

Totals& Totals::operator+=(const Totals& other) {
  for (const TotalColumn& column : kColumns) this->*column.value += other.*column.value;
  return *this;
}

std::string readable_name(const std::string& mangled) {
  int status = 0;
  char* text = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status);
  if (status != 0 || text == nullptr) return mangled;
  std::string name = text;
  std::free(text);
  constexpr std::string_view kVoid = "void ";  // of templates, whose mangled names have it
  if (name.starts_with(kVoid)) name.erase(0, kVoid.size());
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<') ++depth;
    if (name[i] == '>') --depth;
    if (name[i] == '(' && depth == 0 && !name.substr(i).starts_with("(anonymous"))
      return name.substr(0, i);
  }
  return name;
}

std::string print(const Profile& profile) {
  std::string text = header() + "\n";
  for (const KernelProfile& kernel : profile) {
    text += record("kernel", kernel, "", kernel.totals);
    for (const LineProfile& line : kernel.lines)
      text += record("line", kernel, clean(line.place), line.totals);
  }
  return text;
}

std::optional<Profile> parse_profile(std::string_view text, std::string& problem) {
  Profile profile;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    std::string trouble;
    if (number == 1)
      trouble = line == header() ? "" : "another header than this version writes";
    else
      trouble = add_record(fields_of(line), profile);
    if (trouble.empty()) continue;
    problem = fmt::format("line {} of the profile has {}", number, trouble);
    return std::nullopt;
  }
  return profile;
}

}  // namespace attest::emulator

// The reader of a process's record: lines of tab-separated fields, as
// optimized/emulator/runtime/README.md states them.
#include "reports/program_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <span>

#include "reference/text.hpp"

namespace attest {
namespace {

using Texts = std::vector<std::string>;

[[noreturn]] void refuse(const std::string& where, const std::string& what) {
  throw Error(fmt::format("{}: {}; is it a record of the emulator?", where, what));
}

std::string unescaped(std::string_view text, const std::string& where) {
  constexpr std::string_view kLetters = "\\tnr0", kMeanings{"\\\t\n\r\0", 5};
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    const std::size_t letter = i + 1 < text.size() ? kLetters.find(text[i + 1]) : kLetters.npos;
    if (letter == kLetters.npos) refuse(where, "a backslash stands alone");
    out += kMeanings[letter];
    ++i;
  }
  return out;
}

std::string escaped(std::string_view text) {
  constexpr std::string_view kLetters = "\\tnr0", kMeanings{"\\\t\n\r\0", 5};
  std::string out;
  for (const char c : text) {
    const std::size_t meaning = kMeanings.find(c);
    if (meaning == kMeanings.npos) {
      out += c;
    } else {
      out += '\\';
      out += kLetters[meaning];
    }
  }
  return out;
}

Texts fields_of(std::string_view line, const std::string& where) {
  Texts fields;
  for (;;) {
    const std::size_t end = line.find('\t');
    fields.push_back(unescaped(line.substr(0, end), where));
    if (end == line.npos) return fields;
    line.remove_prefix(end + 1);
  }
}

template <typename Number>
Number number(std::string_view text, const std::string& where) {
  Number value{};
  const auto [stop, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || stop != text.data() + text.size() || text.empty()) {
    refuse(where, fmt::format("'{}' is no number", text));
  }
  return value;
}

std::array<std::uint32_t, 3> triple(std::string_view text, const std::string& where) {
  std::array<std::uint32_t, 3> result{};
  for (std::size_t i = 0; i < 3; ++i) {
    const std::size_t comma = i < 2 ? text.find(',') : text.size();
    if (comma == text.npos) refuse(where, "three numbers are wanted");
    result[i] = number<std::uint32_t>(text.substr(0, comma), where);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return result;
}

/// The last counts of a kernel stand: they only ever grow.
void count(std::vector<KernelCounts>& kernels, KernelCounts counts) {
  const auto known = std::ranges::find(kernels, counts.kernel, &KernelCounts::kernel);
  if (known != kernels.end()) {
    *known = std::move(counts);
  } else {
    kernels.push_back(std::move(counts));
  }
}

void take(ProcessRecord& record, const Texts& fields, const std::string& where) {
  const std::string& word = fields[0];
  const auto demand = [&](std::size_t count) {
    if (fields.size() != count)
      refuse(where, fmt::format("'{}' has {} fields, not {}", word, fields.size(), count));
  };
  if (word == "process") {
    demand(4);
    record.process = number<std::int64_t>(fields[1], where);
    record.parent = number<std::int64_t>(fields[2], where);
    record.command = fields[3];
  } else if (word == "options") {
    demand(2);
    record.options = fields[1];
  } else if (word == "finding") {
    demand(8);
    record.findings.push_back({.kind = fields[1],
                               .kernel = fields[2],
                               .file = fields[5],
                               .what = fields[7],
                               .block = triple(fields[3], where),
                               .thread = triple(fields[4], where),
                               .line = number<std::uint32_t>(fields[6], where)});
  } else if (word == "obstacle") {
    demand(3);
    record.obstacles.push_back({fields[1], fields[2]});
  } else if (word == "kernel") {
    demand(4);
    count(record.kernels, {fields[1], number<std::uint64_t>(fields[2], where),
                           number<std::uint64_t>(fields[3], where)});
  } else if (word == "profile") {
    demand(2);
    std::string problem;
    auto profile = emulator::parse_profile(fields[1], problem);
    if (!profile) refuse(where, fmt::format("the profile cannot be read: {}", problem));
    record.profile = std::move(*profile);
  } else if (word == "died") {
    demand(2);
    record.died = number<int>(fields[1], where);
  } else if (word == "end") {
    demand(1);
    record.ended = true;
  } else {
    refuse(where, fmt::format("'{}' begins no line that is known", word));
  }
}

}  // namespace

ProcessRecord read_process_record(std::string_view text, const std::string& file_name) {
  ProcessRecord record;
  std::size_t number = 0;
  for (std::size_t end; (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1)) {
    const std::string where = fmt::format("{}:{}", file_name, ++number);
    const Texts fields = fields_of(text.substr(0, end), where);
    if (number > 1) {
      take(record, fields, where);
    } else if (fields != Texts{"attest-record", "1"}) {
      refuse(where, "it does not begin with 'attest-record' and version 1");
    }
  }
  if (number == 0) refuse(file_name, "it has no line");
  return record;
}

std::string print(const ProcessRecord& record) {
  std::string text;
  const auto line = [&](const Texts& fields) {
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (i > 0) text += '\t';
      text += escaped(fields[i]);
    }
    text += '\n';
  };
  const auto index = [](const std::array<std::uint32_t, 3>& at) {
    return fmt::format("{},{},{}", at[0], at[1], at[2]);
  };
  line({"attest-record", "1"});
  line({"process", std::to_string(record.process), std::to_string(record.parent), record.command});
  line({"options", record.options});
  for (const ProgramFinding& finding : record.findings) {
    line({"finding", finding.kind, finding.kernel, index(finding.block), index(finding.thread),
          finding.file, std::to_string(finding.line), finding.what});
  }
  for (const Obstacle& obstacle : record.obstacles) {
    line({"obstacle", obstacle.kind, obstacle.what});
  }
  for (const KernelCounts& counts : record.kernels) {
    line({"kernel", counts.kernel, std::to_string(counts.launches),
          std::to_string(counts.warp_instructions)});
  }
  if (!record.profile.empty()) line({"profile", print(record.profile)});
  if (record.died != 0) line({"died", std::to_string(record.died)});
  if (record.ended) line({"end"});
  return text;
}

}  // namespace attest

// Turns a fault into a finding: who, where, what.
#include <fmt/format.h>

#include <algorithm>

#include "optimized/emulator/engine/block.hpp"
#include "optimized/emulator/engine/spelling.hpp"

namespace attest::emulator {
namespace {

const Code& code_of(const Warp& warp, const Op& op) {
  for (const auto& [index, code] : warp.block->launch->program->codes) {
    if (&op >= code->ops.data() && &op < code->ops.data() + code->ops.size()) return *code;
  }
  return *warp.block->launch->program->entry;
}

}  // namespace

bool is_known(const ptx::Module& module, const ptx::SourceLine& s) {
  return s.line != 0 && s.file < module.files.size();
}

bool ends_with_one_of(std::string_view path, std::initializer_list<std::string_view> ends) {
  return std::any_of(ends.begin(), ends.end(),
                     [&](std::string_view e) { return path.ends_with(e); });
}

/// Headers of the toolkit and of libraries installed or vendored as such, whose lines say little to
/// who included them.
bool is_library_header(std::string_view path) {
  return path.find("/include/") != path.npos || path.find("/usr/lib") != path.npos;
}
/// A file that is compiled by itself, such as the one that has the kernel.
bool is_source(std::string_view path) {
  return ends_with_one_of(path, {".cu", ".cpp", ".cc", ".cxx", ".c", ".py"});
}

/// Where the programmer's own source is. Of the chain of callers: the first in a file compiled by
/// itself; when there is none, as in kernels that are templates, the first outside of libraries;
/// the line itself when there is none either.
ptx::SourceLine own_line(const ptx::Module& module, const ptx::SourceLine& innermost) {
  for (const auto& is_own : {+[](std::string_view p) { return is_source(p); },
                             +[](std::string_view p) { return !is_library_header(p); }}) {
    for (ptx::SourceLine s = innermost; is_known(module, s); s = module.calls[s.call - 1]) {
      if (is_own(module.files[s.file])) return s;
      if (s.call == 0) break;
    }
  }
  return innermost;
}

std::string position_text(const ptx::Module& module, const ptx::SourceLine& s) {
  const std::string& path = module.files[s.file];
  const std::size_t slash = path.rfind('/');
  return fmt::format("{}:{}", slash == std::string::npos ? path : path.substr(slash + 1), s.line);
}

std::string line_text(const LoadedModuleState& module, const ptx::Instruction& instruction) {
  const ptx::SourceLine& s = instruction.source;
  if (!is_known(module.module, s)) return fmt::format("PTX line {}", instruction.text_line);
  const ptx::SourceLine own = own_line(module.module, s);
  std::string text = position_text(module.module, own);
  if (own.file != s.file) text += fmt::format(" (in {})", position_text(module.module, s));
  return text;
}

std::string line_of(const Warp& w, const Op& op) {
  return line_text(*w.block->launch->program->module, code_of(w, op).function->body[op.origin]);
}

std::string place_text(const Warp& w, const Op& op, u32 lane) {
  const Program& program = *w.block->launch->program;
  const Code& code = code_of(w, op);
  const ptx::Instruction& instruction = code.function->body[op.origin];
  std::string text =
      fmt::format("kernel {}, block ({},{},{}), thread ({},{},{}), {}, {}",
                  readable_name(program.entry->function->name), w.block->index[0],
                  w.block->index[1], w.block->index[2], w.thread[0][lane], w.thread[1][lane],
                  w.thread[2][lane], line_text(*program.module, instruction), written(instruction));
  if (&code != program.entry) text += " in " + readable_name(code.function->name);
  const LaunchState& launch = *w.block->launch;
  if (launch.options.schedule != 0)
    text += fmt::format(", launch {} under schedule {}", launch.number, launch.options.schedule);
  return text;
}

namespace {

CheckerFinding finding_at(const Warp& w, const Op& op, u32 lane, std::string_view kind,
                          std::string_view what) {
  const Program& program = *w.block->launch->program;
  const ptx::SourceLine source =
      own_line(program.module->module, code_of(w, op).function->body[op.origin].source);
  CheckerFinding finding{std::string(kind), place_text(w, op, lane) + ": " + std::string(what)};
  finding.kernel = readable_name(program.entry->function->name);
  if (is_known(program.module->module, source)) {
    finding.file = program.module->module.files[source.file];
    finding.line = source.line;
  }
  for (u32 axis = 0; axis < 3; ++axis) {
    finding.block[axis] = w.block->index[axis];
    finding.thread[axis] = w.thread[axis][lane];
  }
  return finding;
}

}  // namespace

std::string access_text(const LaunchState& launch, u32 cache) {
  if (cache == 0) return {};
  for (const auto& [index, code] : launch.program->codes) {
    for (const Op& op : code->ops) {
      const ptx::Instruction& i = code->function->body[op.origin];
      if (op.cache != cache || i.opcode == "call") continue;
      return fmt::format("{} ({})", line_text(*launch.program->module, i), written(i));
    }
  }
  return {};
}

void note(Warp& w, const Op& op, u32 lane, std::string_view kind, std::string_view what) {
  LaunchState& launch = *w.block->launch;
  const std::tuple key{std::string(kind), code_of(w, op).index, op.origin};
  const std::scoped_lock lock(launch.mutex);
  const auto known = launch.noted.find(key);
  if (known != launch.noted.end() && known->second.block <= w.block->number) return;
  CheckerFinding finding = finding_at(w, op, lane, kind, what);
  launch.noted.insert_or_assign(key, LaunchState::Noted{w.block->number, std::move(finding)});
}

std::vector<CheckerFinding> taken_findings(LaunchState& launch) {
  std::vector<LaunchState::Noted> noted;
  for (auto& [key, one] : launch.noted) {
    // Whether blocks after the one that faulted came this far depends on the host.
    if (one.block <= launch.fault_block) noted.push_back(std::move(one));
  }
  std::stable_sort(noted.begin(), noted.end(),
                   [](const auto& a, const auto& b) { return a.block < b.block; });
  std::vector<CheckerFinding> findings;
  for (LaunchState::Noted& one : noted) findings.push_back(std::move(one.finding));
  launch.noted.clear();
  return findings;
}

const Op* fault(Warp& w, const Op& op, u32 lane, std::string_view kind, std::string_view what) {
  Block& block = *w.block;
  LaunchState& launch = *block.launch;
  block.faulted = true;
  CheckerFinding finding = finding_at(w, op, lane, kind, what);
  const std::scoped_lock lock(launch.mutex);
  if (block.number < launch.fault_block) {
    launch.fault_block = block.number;
    launch.fault_block_seen.store(block.number);
    launch.fault = std::move(finding);
  }
  return nullptr;
}

}  // namespace attest::emulator

// The statements of a function body. See body.hpp.
#include "optimized/emulator/ptx/body.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "optimized/emulator/ptx/constant.hpp"

namespace attest::emulator::ptx {
namespace {

constexpr std::uint64_t kFileMax = 65535;

std::uint32_t line_number(Cursor& cursor) {
  const Position start = cursor.position();
  const std::uint64_t value = cursor.integer();
  if (value > ~0U) Cursor::fail_at(start, "a source position is too large");
  return static_cast<std::uint32_t>(value);
}

std::uint32_t file_number(Cursor& cursor) {
  const Position start = cursor.position();
  const std::uint64_t value = cursor.integer();
  if (value > kFileMax) Cursor::fail_at(start, "a file number is too large");
  return static_cast<std::uint32_t>(value);
}

}  // namespace

void parse_file(Cursor& cursor, Module& module) {
  const std::uint32_t number = file_number(cursor);
  std::string name = cursor.string();
  for (int extra = 0; extra < 2 && cursor.accept(','); ++extra) cursor.integer();
  if (module.files.size() <= number) module.files.resize(number + 1);
  module.files[number] = std::move(name);
}

void parse_module_variables(ModuleState& state, Space space, bool external) {
  const Shape shape = parse_shape(state.cursor);
  do {
    DeclaredVariable declared = parse_variable(state.cursor, shape, space, external, state.ledger);
    const auto [found, is_new] = state.symbols.try_emplace(
        declared.name, ModuleSymbol{false, state.module.variables.size()});
    if (is_new) {
      state.module.variables.push_back(std::move(declared.variable));
    } else if (!found->second.is_function &&
               (external || state.module.variables[found->second.index].external)) {
      // A declaration and its definition are one variable.
      if (!external) state.module.variables[found->second.index] = std::move(declared.variable);
    } else {
      Cursor::fail_at(declared.position, quoted(declared.name) + " is declared twice");
    }
  } while (state.cursor.accept(','));
  state.cursor.require(';');
}

void BodyParser::parse() {
  cursor_.require('{');
  while (scopes_.depth() > 0) {
    if (cursor_.at_end()) cursor_.fail("a function is not closed");
    statement();
  }
  finish();
}

void BodyParser::statement() {
  switch (cursor_.peek()) {
    case '{':
      scopes_.open(cursor_);
      cursor_.require('{');
      return;
    case '}':
      end_line_ = cursor_.position().line;
      cursor_.require('}');
      scopes_.close();
      return;
    case ';':
      cursor_.require(';');
      return;
    case '.':
      directive();
      return;
    case '@':
      guarded_instruction();
      return;
    default:
      break;
  }
  const Position position = cursor_.position();
  if (!cursor_.at_name()) cursor_.fail("wanted a statement");
  const std::string_view name = cursor_.name();
  if (cursor_.accept(':')) {
    labelled(name, position);
  } else {
    instruction(name, position);
  }
}

void BodyParser::directive() {
  const Position position = cursor_.position();
  const std::string_view word = cursor_.directive();
  if (word == "loc") {
    location();
  } else if (word == "reg") {
    registers();
  } else if (word == "param") {
    variables(Space::param, false);
  } else if (word == "local") {
    variables(Space::local, false);
  } else if (word == "shared") {
    variables(Space::shared, false);
  } else if (word == "extern" && cursor_.accept_directive("shared")) {
    variables(Space::shared, true);
  } else if (word == "global" || word == "const") {
    parse_module_variables(state_, word == "global" ? Space::global : Space::constant, false);
  } else if (word == "pragma") {
    cursor_.skip_statement();
  } else if (word == "file") {
    parse_file(cursor_, state_.module);
  } else {
    Cursor::fail_at(position, quoted(word) + " has no place in a function");
  }
}

void BodyParser::registers() {
  const Shape shape = parse_shape(cursor_);
  do {
    const Position position = cursor_.position();
    const std::string_view name = cursor_.name();
    if (cursor_.accept('<')) {
      const std::uint64_t count = cursor_.integer();
      cursor_.require('>');
      if (shape.width > 1) Cursor::fail_at(position, "vector registers are declared one by one");
      scopes_.declare_registers(name, count, shape.type, position);
    } else if (shape.width > 1) {
      scopes_.declare_vector(name, shape.width, shape.type, position);
    } else {
      scopes_.declare_register(name, shape.type, position);
    }
  } while (cursor_.accept(','));
  cursor_.require(';');
}

void BodyParser::variables(Space space, bool external) {
  const Shape shape = parse_shape(cursor_);
  do {
    DeclaredVariable declared = parse_variable(cursor_, shape, space, external, state_.ledger);
    scopes_.declare_variable(std::move(declared.variable), declared.name, declared.position);
  } while (cursor_.accept(','));
  cursor_.require(';');
}

void BodyParser::location() {
  // With inlined_at the position given first is the innermost function's.
  const auto position_in_source = [&] {
    ModuleState::SourcePosition at{};
    for (std::size_t i = 0; i < 3; ++i)
      at[i] = i == 0 ? file_number(cursor_) : line_number(cursor_);
    state_.file_max = std::max(state_.file_max, at[0]);
    return at;
  };
  const ModuleState::SourcePosition here = position_in_source();
  source_ = {here[0], here[1], 0};
  while (cursor_.accept(',')) {
    const Position position = cursor_.position();
    const std::string_view word = cursor_.name();
    if (word == "function_name") {
      cursor_.name();
      if (cursor_.accept('+')) cursor_.integer();
    } else if (word == "inlined_at") {
      source_.call = state_.call_at(position_in_source());
    } else {
      Cursor::fail_at(position, quoted(word) + " has no place in .loc");
    }
  }
  state_.calls_seen.insert_or_assign(here, source_.call);
}

std::uint32_t ModuleState::call_at(const SourcePosition& at) {
  // The caller's own position was given shortly before; if it was inlined too, that is known from
  // there. The same line of a header may have been inlined in many places, at any depth.
  const auto seen = calls_seen.find(at);
  const std::uint32_t caller = seen == calls_seen.end() ? 0 : seen->second;
  const auto [found, is_new] = call_numbers.try_emplace({at, caller}, 0);
  if (!is_new) return found->second;
  module.calls.push_back({at[0], at[1], caller});
  return found->second = static_cast<std::uint32_t>(module.calls.size());
}

void BodyParser::labelled(std::string_view name, Position position) {
  if (cursor_.accept_directive("callprototype") || cursor_.accept_directive("calltargets")) {
    scopes_.declare_prototype(name, position);
    cursor_.skip_statement();
  } else if (cursor_.accept_directive("branchtargets")) {
    branch_targets(name, position);
  } else {
    scopes_.place_label(name, position);
  }
}

void BodyParser::branch_targets(std::string_view name, Position position) {
  std::vector<Target> targets;
  do {
    Target target{.name = {}, .position = cursor_.position()};
    target.name = cursor_.name();
    targets.push_back(target);
  } while (cursor_.accept(','));
  cursor_.require(';');
  scopes_.declare_targets(name, std::move(targets), position);
}

void BodyParser::finish() {
  for (const ForwardUse& use : scopes_.unexplained()) {
    if (use.only_label) {
      Cursor::fail_at(use.position, "no label " + quoted(use.name) + " in reach");
    }
    state_.ledger.late_names.push_back({use.name, use.position});
  }
  // Whoever walks the body need never ask whether it has run off the end: a function that may fall
  // through its closing brace, or branch to it, gets the return that PTX implies there.
  constexpr std::array<std::string_view, 3> kEnds{"ret", "exit", "bra"};
  std::vector<Instruction>& body = function_.body;
  const bool ends = !body.empty() && body.back().guard == kNoRegister &&
                    std::find(kEnds.begin(), kEnds.end(), body.back().opcode) != kEnds.end();
  const bool labelled_end = !function_.leaders.empty() && function_.leaders.back() == body.size();
  if (ends && !labelled_end) return;
  Instruction end;
  end.opcode = "ret";
  end.text_line = end_line_;
  end.source = source_;
  body.push_back(std::move(end));
}

}  // namespace attest::emulator::ptx

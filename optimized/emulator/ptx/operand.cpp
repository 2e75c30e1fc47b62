// Instructions and their operands. See body.hpp.
#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "optimized/emulator/ptx/body.hpp"
#include "optimized/emulator/ptx/constant.hpp"

namespace attest::emulator::ptx {
namespace {

constexpr std::uint32_t kLabelListElementsMax = 1U << 18;
constexpr std::size_t kUsualOperands = 4;
constexpr std::int64_t kWarpSize = 32;

// Special registers by the part of their name before a digit or a component.
constexpr std::array<std::string_view, 31> kSpecials{"tid",
                                                     "ntid",
                                                     "ctaid",
                                                     "nctaid",
                                                     "laneid",
                                                     "warpid",
                                                     "nwarpid",
                                                     "smid",
                                                     "nsmid",
                                                     "gridid",
                                                     "is_explicit_cluster",
                                                     "clusterid",
                                                     "nclusterid",
                                                     "cluster_ctaid",
                                                     "cluster_nctaid",
                                                     "cluster_ctarank",
                                                     "cluster_nctarank",
                                                     "lanemask_eq",
                                                     "lanemask_le",
                                                     "lanemask_lt",
                                                     "lanemask_ge",
                                                     "lanemask_gt",
                                                     "clock",
                                                     "clock_hi",
                                                     "clock64",
                                                     "globaltimer",
                                                     "globaltimer_lo",
                                                     "globaltimer_hi",
                                                     "total_smem_size",
                                                     "aggr_smem_size",
                                                     "dynamic_smem_size"};
constexpr std::array<std::string_view, 4> kNumberedSpecials{"pm", "envreg", "reserved_smem_offset_",
                                                            "current_graph_exec"};

bool is_special(std::string_view name) {
  if (std::find(kSpecials.begin(), kSpecials.end(), name) != kSpecials.end()) return true;
  return std::any_of(kNumberedSpecials.begin(), kNumberedSpecials.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

/// Which of four a component's name is; 4: none.
std::uint32_t component_index(std::string_view name) {
  if (name.size() != 1) return 4;
  const std::size_t at = std::string_view("xyzwrgba").find(name[0]);
  return at == std::string_view::npos ? 4 : static_cast<std::uint32_t>(at % 4);
}

}  // namespace

void BodyParser::guarded_instruction() {
  cursor_.require('@');
  const bool negated = cursor_.accept('!');
  const Position position = cursor_.position();
  const Register guard = register_named(cursor_.name(), position);
  const Position start = cursor_.position();
  const std::string_view opcode = cursor_.name();
  instruction(opcode, start);
  function_.body.back().guard = guard;
  function_.body.back().guard_negated = negated;
}

void BodyParser::instruction(std::string_view opcode, Position position) {
  Instruction result;
  result.opcode = std::string(opcode);
  result.text_line = position.line;
  result.source = source_;
  for (;;) {
    const std::string_view modifier = cursor_.modifier();
    if (modifier.empty()) break;
    result.modifiers.emplace_back(modifier);
  }
  in_branch_ = opcode == "bra";
  in_call_ = opcode == "call";
  if (cursor_.peek() != ';') {
    result.operands.reserve(kUsualOperands);
    do {
      operand_index_ = static_cast<std::uint32_t>(result.operands.size());
      element_index_ = -1;
      result.operands.push_back(operand());
    } while (cursor_.accept(','));
  }
  cursor_.require(';');
  fit_float_literals(result);
  function_.body.push_back(std::move(result));
}

Operand BodyParser::operand() {
  const char c = cursor_.peek();
  if (c == '[') return address();
  if (c == '{') return list('}', Operand::Kind::vector);
  if (c == '(' && in_call_) return list(')', Operand::Kind::arguments);
  if (at_constant(cursor_)) return constant();
  if (cursor_.accept('!')) {
    if (at_constant(cursor_)) {
      Operand result = constant();
      result.immediate = result.immediate == 0;
      return result;
    }
    const Position position = cursor_.position();
    Operand result;
    result.reg = register_named(cursor_.name(), position);
    result.negated = true;
    return result;
  }
  return named();
}

Operand BodyParser::list(char close, Operand::Kind kind) {
  Operand result;
  result.kind = kind;
  if (element_index_ >= 0) cursor_.fail("a list stands within a list");
  cursor_.require(kind == Operand::Kind::vector ? '{' : '(');
  while (!cursor_.accept(close)) {
    element_index_ = static_cast<std::int32_t>(result.elements.size());
    result.elements.push_back(operand());
    if (cursor_.peek() != close) cursor_.require(',');
  }
  element_index_ = -1;
  return result;
}

Operand BodyParser::constant() {
  const Constant value = parse_constant(cursor_);
  Operand result;
  result.kind = Operand::Kind::immediate;
  result.immediate = static_cast<std::int64_t>(value.bits);
  result.float_literal = value.kind != Number::Kind::integer;
  // Which of the two widths was spelled; fit_float_literals reads it and takes it out again.
  if (value.kind == Number::Kind::f64_bits) result.name = "f64";
  return result;
}

Operand BodyParser::address() {
  if (element_index_ >= 0) cursor_.fail("an address stands within a list");
  cursor_.require('[');
  Operand result;
  result.kind = Operand::Kind::address;
  if (at_constant(cursor_)) {
    result.immediate = parse_integer_constant(cursor_);
  } else {
    const Position position = cursor_.position();
    const std::string_view name = cursor_.name();
    const Named* found = scopes_.find(name);
    if (found == nullptr) {
      if (!state_.symbols.contains(name)) state_.ledger.late_names.push_back({name, position});
      result.name = std::string(name);
    } else if (found->kind == Named::Kind::memory) {
      result.name = found->memory;
    } else if (found->kind == Named::Kind::reg) {
      result.reg = found->first;
    } else {
      Cursor::fail_at(position, quoted(name) + " is no address");
    }
    if (cursor_.accept('+') || cursor_.peek() == '-') {
      result.immediate = parse_integer_constant(cursor_);
    }
  }
  while (cursor_.accept(',')) {
    element_index_ = -1;
    Operand coordinate = operand();
    if (coordinate.kind == Operand::Kind::vector) {
      std::move(coordinate.elements.begin(), coordinate.elements.end(),
                std::back_inserter(result.elements));
    } else {
      result.elements.push_back(std::move(coordinate));
    }
  }
  cursor_.require(']');
  return result;
}

Operand BodyParser::named() {
  const Position position = cursor_.position();
  const std::string_view name = cursor_.name();
  Operand result;
  if (name == "_") {
    result.kind = Operand::Kind::sink;
    second_destination(result);
    return result;
  }
  if (!in_branch_) {
    if (const Named* found = scopes_.find(name)) return named_in_scope(name, *found);
    if (name[0] == '%') return special(name, position);
    if (name == "WARP_SZ") {
      result.kind = Operand::Kind::immediate;
      result.immediate = kWarpSize;
      return result;
    }
  }
  result.kind = Operand::Kind::symbol;
  result.name = std::string(name);
  if (in_branch_ || !state_.symbols.contains(name)) {
    scopes_.use_later({.instruction = static_cast<std::uint32_t>(function_.body.size()),
                       .operand = operand_index_,
                       .element = element_index_,
                       .name = name,
                       .position = position,
                       .only_label = in_branch_});
    return result;
  }
  if (cursor_.accept('+') || cursor_.peek() == '-') {
    result.immediate = parse_integer_constant(cursor_);
  }
  return result;
}

Operand BodyParser::named_in_scope(std::string_view name, const Named& found) {
  Operand result;
  switch (found.kind) {
    case Named::Kind::reg:
      result.reg = found.first;
      second_destination(result);
      return result;
    case Named::Kind::vector:
      return components(found);
    case Named::Kind::memory:
      result.kind = Operand::Kind::symbol;
      result.name = found.memory;
      if (cursor_.accept('+') || cursor_.peek() == '-') {
        result.immediate = parse_integer_constant(cursor_);
      }
      return result;
    case Named::Kind::prototype:
      result.kind = Operand::Kind::symbol;
      result.name = std::string(name);
      return result;
    case Named::Kind::targets:
      return label_list(found);
  }
  return result;
}

Operand BodyParser::components(const Named& found) {
  Operand result;
  if (cursor_.peek() == '.') {
    const std::uint32_t index = component_index(cursor_.modifier());
    if (index >= found.count) cursor_.fail("a vector register has no such component");
    result.reg = found.first + index;
    return result;
  }
  result.kind = Operand::Kind::vector;
  result.elements.resize(found.count);
  for (std::uint32_t i = 0; i < found.count; ++i) result.elements[i].reg = found.first + i;
  return result;
}

Operand BodyParser::label_list(const Named& found) {
  const std::vector<Target>& targets = scopes_.targets(found);
  if (element_index_ >= 0) cursor_.fail("a list stands within a list");
  label_list_elements_ += static_cast<std::uint32_t>(targets.size());
  if (label_list_elements_ > kLabelListElementsMax) {
    cursor_.fail("the function's lists of branch targets are too long");
  }
  Operand result;
  result.kind = Operand::Kind::vector;
  result.elements.resize(targets.size());
  for (std::size_t i = 0; i < targets.size(); ++i) {
    result.elements[i].kind = Operand::Kind::label;
    result.elements[i].name = std::string(targets[i].name);
    scopes_.use_later({.instruction = static_cast<std::uint32_t>(function_.body.size()),
                       .operand = operand_index_,
                       .element = static_cast<std::int32_t>(i),
                       .name = targets[i].name,
                       .position = targets[i].position,
                       .only_label = true});
  }
  return result;
}

Operand BodyParser::special(std::string_view name, Position position) {
  if (!is_special(name.substr(1))) {
    Cursor::fail_at(position, "register " + quoted(name) + " is not declared");
  }
  Operand result;
  result.kind = Operand::Kind::special;
  result.name = std::string(name.substr(1));
  if (cursor_.peek() == '.') {
    const std::string_view component = cursor_.modifier();
    if (component_index(component) > 3) cursor_.fail("wanted .x, .y, .z or .w");
    result.name.append(1, '.').append(component);
  }
  return result;
}

void BodyParser::second_destination(Operand& first) {
  if (!cursor_.accept('|')) return;
  const Position position = cursor_.position();
  const std::string_view name = cursor_.name();
  if (name != "_") first.second = register_named(name, position);
}

Register BodyParser::register_named(std::string_view name, Position position) {
  const Named* found = scopes_.find(name);
  if (found == nullptr || found->kind != Named::Kind::reg) {
    Cursor::fail_at(position, "register " + quoted(name) + " is not declared");
  }
  return found->first;
}

void BodyParser::fit_float_literals(Instruction& instruction) const {
  // A literal may be spelled wider or narrower than the instruction reads it: mov.f32 %f1, 1.5.
  // The last type of the opcode is that of its sources, and decides.
  Type type = Type::none;
  for (const std::string& modifier : instruction.modifiers) {
    if (const auto named_type = type_named(modifier)) type = *named_type;
  }
  const auto fit = [type](Operand& operand) {
    if (operand.kind != Operand::Kind::immediate || !operand.float_literal) return;
    const bool wide = operand.name == "f64";
    operand.name.clear();
    const auto bits = static_cast<std::uint64_t>(operand.immediate);
    if (wide && type == Type::f32) {
      operand.immediate =
          std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(bits)));
    } else if (!wide && type == Type::f64) {
      operand.immediate = std::bit_cast<std::int64_t>(
          static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits))));
    }
  };
  for (Operand& operand : instruction.operands) {
    fit(operand);
    for (Operand& element : operand.elements) fit(element);
  }
}

}  // namespace attest::emulator::ptx

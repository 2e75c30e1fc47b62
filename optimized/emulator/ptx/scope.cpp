// Resolution of names. See scope.hpp. Every operation takes constant time but for the depth of
// nesting, which is limited.
#include "optimized/emulator/ptx/scope.hpp"

#include <array>
#include <utility>

namespace attest::emulator::ptx {
namespace {

constexpr std::size_t kDepthMax = 64;
// Far beyond any real kernel (24,784 is the largest seen), and an index still fits a register.
constexpr std::uint64_t kRangeMax = 1U << 20;

/// The number at the end of `%r12`, when it is written as a declaration `%r<13>` would have it.
struct Numbered {
  std::string_view prefix;
  std::uint64_t number = 0;
  bool valid = false;
};
Numbered numbered(std::string_view name) {
  std::size_t begin = name.size();
  while (begin > 0 && name[begin - 1] >= '0' && name[begin - 1] <= '9') --begin;
  const std::string_view digits = name.substr(begin);
  if (digits.empty() || digits.size() > 9 || (digits.size() > 1 && digits[0] == '0')) return {};
  std::uint64_t number = 0;
  for (const char c : digits) number = number * 10 + static_cast<unsigned>(c - '0');
  return {name.substr(0, begin), number, true};
}

std::string shape_key(std::string_view name, const Variable& variable) {
  return std::string(name) + ' ' + std::to_string(variable.bytes) + ' ' +
         std::to_string(variable.alignment) + ' ' + std::to_string(static_cast<int>(variable.type));
}

}  // namespace

Scopes::Scopes(Function& function) : function_(function) {
  scopes_.emplace_back();
  block_storage_.emplace_back();
}

void Scopes::open(const Cursor& cursor) {
  if (scopes_.size() >= kDepthMax) cursor.fail("blocks are nested too deeply");
  scopes_.emplace_back();
  block_storage_.emplace_back();
}

void Scopes::close() {
  Scope& scope = scopes_.back();
  for (ForwardUse& use : scope.uses) {
    if (const auto label = scope.labels.find(use.name); label != scope.labels.end()) {
      explain(use, label->second);
    } else if (scopes_.size() > 1) {
      scopes_[scopes_.size() - 2].uses.push_back(use);
    } else {
      unexplained_.push_back(use);
    }
  }
  for (Storage* storage : block_storage_.back()) storage->live = false;
  block_storage_.pop_back();
  scopes_.pop_back();
}

void Scopes::explain(const ForwardUse& use, std::uint32_t instruction) {
  Operand* operand = &function_.body[use.instruction].operands[use.operand];
  if (use.element >= 0) operand = &operand->elements[static_cast<std::size_t>(use.element)];
  operand->kind = Operand::Kind::label;
  operand->immediate = instruction;
}

void Scopes::declare(std::string_view name, Named named, Position position) {
  if (name == "_") Cursor::fail_at(position, "'_' cannot be declared");
  if (!scopes_.back().names.emplace(name, std::move(named)).second) {
    Cursor::fail_at(position, quoted(name) + " is declared twice in one block");
  }
}

Register Scopes::add_register(std::string_view name, Type type) {
  function_.registers.push_back({std::string(name), type});
  return static_cast<Register>(function_.registers.size() - 1);
}

void Scopes::declare_register(std::string_view name, Type type, Position position) {
  declare(name, {.first = static_cast<Register>(function_.registers.size())}, position);
  add_register(name, type);
}

void Scopes::declare_registers(std::string_view prefix, std::uint64_t count, Type type,
                               Position position) {
  if (count > kRangeMax) {
    Cursor::fail_at(position, "more than " + std::to_string(kRangeMax) + " registers at once");
  }
  if (!scopes_.back().ranges.emplace(prefix, Range{type, count}).second) {
    Cursor::fail_at(position, quoted(prefix) + " is declared twice in one block");
  }
}

void Scopes::declare_vector(std::string_view name, std::uint32_t components, Type type,
                            Position position) {
  constexpr std::array<std::string_view, 4> kComponents{".x", ".y", ".z", ".w"};
  const auto first = static_cast<Register>(function_.registers.size());
  declare(name, {.kind = Named::Kind::vector, .first = first, .count = components}, position);
  for (std::uint32_t i = 0; i < components; ++i) {
    add_register(std::string(name) + std::string(kComponents[i]), type);
  }
}

void Scopes::declare_parameter(std::string_view name, Position position) {
  if (name == "_") return;
  declare(name, {.kind = Named::Kind::memory, .memory = std::string(name)}, position);
}

void Scopes::declare_variable(Variable variable, std::string_view name, Position position) {
  // References into an unordered_map stay valid while it grows.
  Storage* storage =
      variable.space == Space::param ? &storage_[shape_key(name, variable)] : nullptr;
  if (storage != nullptr && !storage->live && !storage->memory.empty()) {
    declare(name, {.kind = Named::Kind::memory, .memory = storage->memory}, position);
  } else {
    const std::uint32_t number = ++variables_[name];
    if (number > 1) variable.name.append(1, '@').append(std::to_string(number));
    declare(name, {.kind = Named::Kind::memory, .memory = variable.name}, position);
    if (storage != nullptr && !storage->live) storage->memory = variable.name;
    function_.variables.push_back(std::move(variable));
  }
  if (storage != nullptr && !storage->live) {
    storage->live = true;
    block_storage_.back().push_back(storage);
  }
}

void Scopes::declare_prototype(std::string_view name, Position position) {
  declare(name, {.kind = Named::Kind::prototype}, position);
}

void Scopes::declare_targets(std::string_view name, std::vector<Target> targets,
                             Position position) {
  declare(name, {.kind = Named::Kind::targets, .count = static_cast<std::uint32_t>(lists_.size())},
          position);
  lists_.push_back(std::move(targets));
}

const Named* Scopes::find_in_range(Scope& scope, std::string_view name) {
  const Numbered parts = numbered(name);
  if (!parts.valid) return nullptr;
  const auto range = scope.ranges.find(parts.prefix);
  if (range == scope.ranges.end() || parts.number >= range->second.count) return nullptr;
  const Register added = add_register(name, range->second.type);
  return &scope.names.emplace(name, Named{.first = added}).first->second;
}

const Named* Scopes::find(std::string_view name) {
  for (std::size_t i = scopes_.size(); i-- > 0;) {
    Scope& scope = scopes_[i];
    if (const auto found = scope.names.find(name); found != scope.names.end()) {
      return &found->second;
    }
    if (scope.ranges.empty()) continue;
    if (const Named* found = find_in_range(scope, name)) return found;
  }
  return nullptr;
}

void Scopes::place_label(std::string_view name, Position position) {
  const auto index = static_cast<std::uint32_t>(function_.body.size());
  if (!scopes_.back().labels.emplace(name, index).second) {
    Cursor::fail_at(position, "label " + quoted(name) + " is placed twice in one block");
  }
  if (function_.leaders.empty() || function_.leaders.back() != index) {
    function_.leaders.push_back(index);
  }
}

void Scopes::use_later(ForwardUse use) {
  scopes_.back().uses.push_back(use);
}

}  // namespace attest::emulator::ptx

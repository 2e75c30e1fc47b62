// The few functions of a parsed module: sizes and names of types, look-up, the text of an error.
// Knows nothing of the grammar.
#include "optimized/emulator/ptx/module.hpp"

#include <utility>

namespace attest::emulator::ptx {
namespace {

struct TypeRow {
  std::string_view name;
  Type type;
  std::size_t bytes;
};

constexpr std::array<TypeRow, 20> kTypes{{
    {"b32", Type::b32, 4},       {"f32", Type::f32, 4},     {"b64", Type::b64, 8},
    {"u64", Type::u64, 8},       {"u32", Type::u32, 4},     {"pred", Type::pred, 1},
    {"b8", Type::b8, 1},         {"b16", Type::b16, 2},     {"b128", Type::b128, 16},
    {"u8", Type::u8, 1},         {"u16", Type::u16, 2},     {"s8", Type::s8, 1},
    {"s16", Type::s16, 2},       {"s32", Type::s32, 4},     {"s64", Type::s64, 8},
    {"f16", Type::f16, 2},       {"f16x2", Type::f16x2, 4}, {"bf16", Type::bf16, 2},
    {"bf16x2", Type::bf16x2, 4}, {"f64", Type::f64, 8},
}};

}  // namespace

std::size_t size_of(Type type) {
  for (const TypeRow& row : kTypes) {
    if (row.type == type) return row.bytes;
  }
  return 0;
}

std::optional<Type> type_named(std::string_view name) {
  for (const TypeRow& row : kTypes) {
    if (row.name == name) return row.type;
  }
  return std::nullopt;
}

const Function* Module::find(std::string_view name) const {
  for (const Function& function : functions) {
    if (function.name == name) return &function;
  }
  return nullptr;
}

SyntaxError::SyntaxError(std::uint32_t at_line, std::uint32_t at_column, std::string what)
    : message("line " + std::to_string(at_line) + ", column " + std::to_string(at_column) + ": " +
              std::move(what)),
      line(at_line),
      column(at_column) {}

}  // namespace attest::emulator::ptx

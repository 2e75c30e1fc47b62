// Declarations of memory, apart from initialisers. See variable.hpp.
#include "optimized/emulator/ptx/variable.hpp"

#include <bit>
#include <utility>

namespace attest::emulator::ptx {
namespace {

constexpr std::uint64_t kAlignmentMax = 1U << 16;
constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 32;
constexpr std::size_t kDimensionsMax = 8;

std::uint32_t parse_alignment(Cursor& cursor) {
  const Position start = cursor.position();
  const std::uint64_t value = cursor.integer();
  if (!std::has_single_bit(value) || value > kAlignmentMax) {
    Cursor::fail_at(start, "an alignment is a power of two up to " + std::to_string(kAlignmentMax));
  }
  return static_cast<std::uint32_t>(value);
}

void skip_parentheses(Cursor& cursor) {
  cursor.require('(');
  while (!cursor.accept(')')) {
    if (cursor.accept('(')) cursor.fail("attributes do not nest");
    if (cursor.peek() == '.') {
      cursor.directive();
    } else if (cursor.at_name()) {
      cursor.name();
    } else if (!cursor.accept(',')) {
      cursor.integer();
    }
  }
}

/// `.ptr .global .align 8` says what a pointer parameter points at, which nobody here needs.
void skip_pointee(Cursor& cursor) {
  for (const std::string_view space : {"const", "global", "local", "shared"}) {
    if (cursor.accept_directive(space)) break;
  }
  if (cursor.accept_directive("align")) parse_alignment(cursor);
}

}  // namespace

std::uint32_t Shape::natural_alignment() const {
  return static_cast<std::uint32_t>(size_of(type)) * width;
}

Shape parse_shape(Cursor& cursor) {
  Shape shape;
  while (cursor.peek() == '.') {
    const Position start = cursor.position();
    const std::string_view word = cursor.directive();
    if (word == "align") {
      shape.alignment = parse_alignment(cursor);
    } else if (word == "v2" || word == "v4") {
      shape.width = word == "v2" ? 2 : 4;
    } else if (word == "ptr") {
      skip_pointee(cursor);
    } else if (word == "attribute") {
      skip_parentheses(cursor);
    } else if (const auto type = type_named(word)) {
      if (shape.type != Type::none) Cursor::fail_at(start, "a declaration has two types");
      shape.type = *type;
    } else if (word == "texref" || word == "samplerref" || word == "surfref") {
      Cursor::fail_at(start, "textures and surfaces are not emulated");
    } else {
      Cursor::fail_at(start, quoted(word) + " is not a type");
    }
  }
  if (shape.type == Type::none) cursor.fail("wanted a type");
  return shape;
}

std::uint64_t parse_extents(Cursor& cursor, std::vector<std::uint64_t>& extents) {
  std::uint64_t count = 1;
  while (cursor.peek() == '[') {
    const Position start = cursor.position();
    cursor.require('[');
    std::uint64_t extent = 0;
    if (cursor.peek() == ']') {
      if (!extents.empty()) cursor.fail("only the first extent may be left out");
    } else {
      extent = cursor.integer();
    }
    cursor.require(']');
    if (extents.size() == kDimensionsMax) Cursor::fail_at(start, "too many extents");
    extents.push_back(extent);
    if (extent != 0 && count > kBytesMax / extent) Cursor::fail_at(start, "an array is too large");
    count *= extent;
  }
  return count;
}

DeclaredVariable parse_variable(Cursor& cursor, const Shape& shape, Space space, bool external,
                                Ledger& ledger) {
  DeclaredVariable result{.variable = {}, .name = {}, .position = cursor.position()};
  result.name = cursor.name();
  Variable& variable = result.variable;
  variable.name = std::string(result.name);
  variable.space = space;
  variable.type = shape.type;
  variable.external = external;
  variable.alignment = shape.alignment != 0 ? shape.alignment : shape.natural_alignment();
  std::vector<std::uint64_t> extents;
  const std::uint64_t count = parse_extents(cursor, extents);
  if (shape.type == Type::pred) Cursor::fail_at(result.position, "predicates are registers only");
  const std::uint64_t element_bytes = size_of(shape.type) * shape.width;
  variable.bytes = count * element_bytes;
  if (variable.bytes > kBytesMax) Cursor::fail_at(result.position, "a variable is too large");
  if (shape.width > 1) extents.push_back(shape.width);
  if (cursor.accept('=')) {
    if (space != Space::global && space != Space::constant) {
      cursor.fail("only .global and .const variables have initialisers");
    }
    parse_initialiser(cursor, variable, extents, ledger);
  }
  return result;
}

}  // namespace attest::emulator::ptx

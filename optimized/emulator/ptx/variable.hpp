// Declarations of memory: variables with their initialisers, and parameters. Knows the layout that
// a declaration asks for; does not know where anything is placed.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "optimized/emulator/ptx/cursor.hpp"
#include "optimized/emulator/ptx/module.hpp"

namespace attest::emulator::ptx {

/// The part of a declaration before the name: alignment, vector width and type.
struct Shape {
  Type type = Type::none;
  std::uint32_t width = 1;      // 2 or 4: .v2, .v4
  std::uint32_t alignment = 0;  // 0: the natural one

  std::uint32_t natural_alignment() const;
};
/// Reads `.align 4 .v2 .f32` in any order, and what else may stand there.
Shape parse_shape(Cursor& cursor);

struct DeclaredVariable {
  Variable variable;
  std::string_view name;
  Position position;
};
/// A name that must turn out to be a function or variable of the module by its end.
struct LateName {
  std::string_view name;
  Position position;
};
/// What reading declarations adds up over a module. Initialisers are padded to the size of their
/// variable; the limit keeps a short text from taking gigabytes.
struct Ledger {
  std::vector<LateName> late_names;
  std::uint64_t initial_bytes_left = std::uint64_t{1} << 28;
};

/// One declarator: `name[3][4] = {...}`.
DeclaredVariable parse_variable(Cursor& cursor, const Shape& shape, Space space, bool external,
                                Ledger& ledger);
/// The part after the equals sign. `extents` are those of the declarator, vector width last.
void parse_initialiser(Cursor& cursor, Variable& variable,
                       const std::vector<std::uint64_t>& extents, Ledger& ledger);

/// The elements that a declarator's array suffix asks for: 1 when there is none, 0 for `[]`.
std::uint64_t parse_extents(Cursor& cursor, std::vector<std::uint64_t>& extents);

}  // namespace attest::emulator::ptx

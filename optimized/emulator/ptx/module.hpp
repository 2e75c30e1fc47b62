// A PTX module as parsed: names resolved to declarations, nothing decoded yet.
// The parser knows the grammar of PTX; it does not know what any instruction means. Which
// spellings exist is engine/opcodes.def's business.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attest::emulator::ptx {

enum class Space : std::uint8_t { none, reg, param, global, constant, shared, local };

enum class Type : std::uint8_t {
  none,
  pred,
  b8,
  b16,
  b32,
  b64,
  b128,
  u8,
  u16,
  u32,
  u64,
  s8,
  s16,
  s32,
  s64,
  f16,
  f16x2,
  bf16,
  bf16x2,
  f32,
  f64,
};
std::size_t size_of(Type type);                         // bytes; pred counts as 1
std::optional<Type> type_named(std::string_view name);  // without the dot

/// A position in the CUDA source, from .loc (nvcc -lineinfo). Line 0: unknown.
/// When the line was inlined, file and line are those of the innermost function.
struct SourceLine {
  std::uint32_t file = 0;  // index into Module::files
  std::uint32_t line = 0;
  std::uint32_t call = 0;  // where it was inlined: one more than an index into Module::calls
};

/// Index into Function::registers.
using Register = std::uint32_t;
inline constexpr Register kNoRegister = ~0U;

struct RegisterDeclaration {
  std::string name;  // with the scope's prefix removed; unique only within a scope
  Type type = Type::b32;
};

/// A named piece of memory: .global, .const, .shared, .local, .param or a device function.
struct SymbolReference {
  std::string name;
  std::int64_t addend = 0;
};

struct Operand {
  enum class Kind : std::uint8_t {
    reg,        // %r1, a predicate, possibly negated (!%p1)
    immediate,  // integer bits, or the bits of a float literal
    symbol,     // the address of a variable or function, plus addend
    address,    // [%r + n], [symbol + n], [n]
    vector,     // {a, b, c, d}
    special,    // %tid.x, %laneid, ...; `name` holds it without the percent sign
    label,      // branch target: index of the instruction it names
    sink,       // _
    arguments,  // (a, b, c) of call: `elements`
  };
  Kind kind = Kind::reg;
  bool negated = false;           // !%p
  bool float_literal = false;     // immediate was spelled 0f…, 0d… or with a decimal point
  Register reg = kNoRegister;     // reg; base register of address
  Register second = kNoRegister;  // the q of p|q (shfl, setp, match)
  std::int64_t immediate = 0;     // immediate (bits); displacement of address; label target
  std::string name;               // symbol, special, label (for messages)
  std::vector<Operand> elements;  // vector, arguments; coordinates of tensor addresses
};

struct Instruction {
  std::string opcode;                  // "fma", "mma", "cp", ... up to the first dot
  std::vector<std::string> modifiers;  // in the order written, without dots; "::" kept whole
  std::vector<Operand> operands;       // destination first
  Register guard = kNoRegister;
  bool guard_negated = false;
  std::uint32_t text_line = 0;  // line in the PTX text
  SourceLine source;
};

struct Variable {
  std::string name;
  Space space = Space::global;
  Type type = Type::b8;
  std::uint32_t alignment = 1;
  std::uint64_t bytes = 0;
  bool external = false;           // .extern: dynamic shared memory when in .shared
  std::vector<std::byte> initial;  // empty: zero
  struct Patch {
    std::uint64_t offset;
    SymbolReference target;
    std::uint32_t bytes;
  };
  std::vector<Patch> patches;  // addresses inside the initialiser
};

struct Parameter {
  std::string name;
  std::uint32_t alignment = 1;
  std::uint32_t bytes = 0;
  Type type = Type::b32;
  Register reg = kNoRegister;  // device functions may take .reg parameters
};

struct Function {
  std::string name;
  bool entry = false;
  bool declared_only = false;  // .extern or a forward declaration: vprintf, __assertfail, malloc
  std::vector<Parameter> parameters;
  std::vector<Parameter> results;
  std::vector<RegisterDeclaration> registers;
  std::vector<Variable> variables;  // .shared, .local and .param declared in the body
  std::vector<Instruction> body;
  std::vector<std::uint32_t> leaders;             // sorted indices of labelled instructions
  std::array<std::uint32_t, 3> maxntid{0, 0, 0};  // 0: not given
  std::array<std::uint32_t, 3> reqntid{0, 0, 0};
};

struct Module {
  std::string version, target;     // "9.0", "sm_80"
  std::vector<std::string> files;  // by .file number; empty string where unused
  std::vector<SourceLine> calls;   // whose bodies were inlined; each may itself have been
  std::vector<std::pair<std::string, std::string>> aliases;  // another name, of which function
  std::vector<Variable> variables;                           // module scope, order of declaration
  std::vector<Function> functions;  // order of declaration; a definition replaces a declaration
  const Function* find(std::string_view name) const;
};

/// A PTX text that cannot be read. `what()` is "line L, column C: what is wrong".
struct SyntaxError : std::exception {
  std::string message;
  std::uint32_t line = 0, column = 0;
  SyntaxError(std::uint32_t line, std::uint32_t column, std::string what);
  const char* what() const noexcept override { return message.c_str(); }
};

/// Parses a whole module. Accepts what nvcc 12 and 13 and clang 19 write, inline asm included
/// (block-scoped registers and labels, several instructions a line). Ignores debug sections.
Module parse(std::string_view text);

}  // namespace attest::emulator::ptx

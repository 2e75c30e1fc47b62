// Function bodies: statements, instructions and operands. Knows how they are written; opcodes mean
// nothing here, except that the operands of bra are labels and that call has lists in parentheses.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "optimized/emulator/ptx/cursor.hpp"
#include "optimized/emulator/ptx/module.hpp"
#include "optimized/emulator/ptx/scope.hpp"
#include "optimized/emulator/ptx/variable.hpp"

namespace attest::emulator::ptx {

/// Where a module-scope name stands in Module::functions or Module::variables.
struct ModuleSymbol {
  bool is_function = false;
  std::size_t index = 0;
};
using ModuleSymbols = std::unordered_map<std::string_view, ModuleSymbol>;

/// What bodies share with the module around them.
struct ModuleState {
  Cursor& cursor;
  Module& module;
  ModuleSymbols symbols;
  Ledger ledger;
  std::uint32_t file_max = 0;                           // the largest .loc file seen
  using SourcePosition = std::array<std::uint32_t, 3>;  // file, line, column
  std::map<std::pair<SourcePosition, std::uint32_t>, std::uint32_t> call_numbers =
      {};  // SourceLine::call of what is called there
  std::map<SourcePosition, std::uint32_t> calls_seen =
      {};  // SourceLine::call of the position itself
  std::uint32_t call_at(const SourcePosition& at);
};

/// .file 1 "name": what follows the word.
void parse_file(Cursor& cursor, Module& module);
/// The declarators of a memory variable, up to the semicolon, at module scope.
void parse_module_variables(ModuleState& state, Space space, bool external);

class BodyParser {
 public:
  BodyParser(ModuleState& state, Function& function)
      : state_(state), cursor_(state.cursor), function_(function), scopes_(function) {}

  Scopes& scopes() { return scopes_; }
  /// From the opening brace to past the closing one.
  void parse();

 private:
  // Statements, in body.cpp.
  void statement();
  void directive();
  void registers();
  void variables(Space space, bool external);
  void location();
  void labelled(std::string_view name, Position position);
  void branch_targets(std::string_view name, Position position);
  void finish();

  // Instructions and operands, in operand.cpp.
  void guarded_instruction();
  void instruction(std::string_view opcode, Position position);
  Operand operand();
  Operand list(char close, Operand::Kind kind);
  Operand address();
  Operand named();
  Operand named_in_scope(std::string_view name, const Named& found);
  Operand components(const Named& found);
  Operand label_list(const Named& found);
  Operand special(std::string_view name, Position position);
  Operand constant();
  void second_destination(Operand& first);
  Register register_named(std::string_view name, Position position);
  void fit_float_literals(Instruction& instruction) const;

  ModuleState& state_;
  Cursor& cursor_;
  Function& function_;
  Scopes scopes_;
  SourceLine source_;
  std::uint32_t end_line_ = 0;
  // The place of the operand being read, for names that are explained later.
  std::uint32_t operand_index_ = 0;
  std::int32_t element_index_ = -1;
  bool in_branch_ = false, in_call_ = false;
  std::uint32_t label_list_elements_ = 0;
};

}  // namespace attest::emulator::ptx

// Turns one function of a module into operations. Knows opcodes.def's operand patterns and which
// handlers make up the instructions that have none; asks the instruction set for everything else.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "optimized/emulator/engine/code.hpp"
#include "optimized/emulator/engine/liveness.hpp"
#include "optimized/emulator/engine/spelling.hpp"

namespace attest::emulator {

struct MmaShape;
struct MatrixPlan;

/// Why an instruction cannot be decoded; it becomes an operation that says so when executed.
struct Unsupported {
  std::string why;
};

/// Where a name of a function body lives.
struct Place {
  Space space = Space::global;
  u64 value = 0;  // address, or offset within the space
  u32 bytes = 0;
  bool in_frame = false;  // offset within the frame's local memory
  bool is_function = false;
};

/// An address operand: base + displacement.
struct Address {
  Space space = Space::generic;
  u32 base = 0;  // slot operand
  bool wide = true;
  s64 displacement = 0;
};

class Decoder {
 public:
  Decoder(const LoadedModuleState& module, Program& program, Code& code, const InstructionSet& isa);
  void decode();

 private:
  // decode.cpp: the function as a whole
  void lay_out_frame();
  void instruction(u32 index);
  void dispatch(const ptx::Instruction& i, const Spelling& s);
  void dispatch_control(const ptx::Instruction& i, const Spelling& s);
  void finish_instruction(const ptx::Instruction& i, u32 first);
  void unsupported(const ptx::Instruction& i, u32 first, const std::string& why);
  void skip_unless_guarded(const ptx::Instruction& i);

  // decode_operands.cpp: what operands become
  Op& emit(Handler handler);
  Op& emit(Plain plain) { return emit(isa_.plain[std::size_t(plain)]); }
  u32 narrow_constant(u32 value);
  u32 wide_constant(u64 value);
  u32 narrow_temporary();
  u32 wide_temporary();
  u32 predicate_temporary();
  SlotClass class_of(ptx::Register r) const;
  u32 slot_of(ptx::Register r) const;
  u32 predicate_slot(ptx::Register r) const;
  u32 source(const ptx::Operand& o, ptx::Type type);
  u32 immediate_of(u64 bits, ptx::Type type);
  u32 special(const ptx::Operand& o, bool wide);
  u32 place_value(const Place& place, s64 addend, bool wide);
  /// A predicate operand: its index; `negated` tells whether its complement is meant.
  u32 predicate(const ptx::Operand& o, bool& negated);
  u32 plain_predicate(const ptx::Operand& o);
  Place find_name(const std::string& name) const;
  Address address(const ptx::Operand& o, Space space);
  /// A slot of the width of `type` to write to; finish_destination moves it into the register.
  u32 destination(const ptx::Operand& o, ptx::Type type);
  void finish_destination(const ptx::Operand& o, ptx::Type type, u32 slot);
  u32 predicate_destination(const ptx::Operand& o);
  const u32* list(std::vector<u32> operands);
  Handler select(Opcode opcode, const Spelling& s);
  Handler select_simple(Opcode opcode, ptx::Type type);

  // decode_instructions.cpp: instructions without a pattern
  void by_pattern(const ptx::Instruction& i, const Spelling& s);
  void predicate_logic(const ptx::Instruction& i, const Spelling& s);
  void comparison(const ptx::Operand& a, const ptx::Operand& b, ptx::Type type, const Spelling& s,
                  u32 to, bool upper_half);
  void setp(const ptx::Instruction& i, const Spelling& s);
  void set(const ptx::Instruction& i, const Spelling& s);
  void combine(const Spelling& s, u32 p, const ptx::Operand& c);
  void select_by_predicate(u32 d, u32 a, u32 b, u32 p, bool negated, bool wide);
  void extended_product(const ptx::Instruction& i, const Spelling& s);
  void table_and_predicate(const ptx::Instruction& i, const Spelling& s);
  void policy(const ptx::Instruction& i);
  void composed(const ptx::Instruction& i, const Spelling& s);  // these, or by_pattern
  void mov(const ptx::Instruction& i, const Spelling& s);
  void unpack(const std::vector<ptx::Operand>& parts, const ptx::Operand& from, ptx::Type type);
  u32 pack(const std::vector<ptx::Operand>& parts, ptx::Type type);
  void cvta(const ptx::Instruction& i, const Spelling& s);

  // decode_memory.cpp: memory and warp instructions
  Space space_of(const Spelling& s, const ptx::Operand& address) const;
  bool is_compared_at(const ptx::Operand& at);
  void load(const ptx::Instruction& i, const Spelling& s);
  void store(const ptx::Instruction& i, const Spelling& s);
  void atomic(const ptx::Instruction& i, Spelling s);
  void warp_operation(const ptx::Instruction& i, const Spelling& s);
  void space_test(const ptx::Instruction& i, const Spelling& s);  // isspacep
  void barrier(const ptx::Instruction& i, const Spelling& s);
  /// What the checkers need to know of an access to memory.
  void describe_access(Op& op, const Spelling& s, Space space, u32 bytes, u8 flags);
  /// The slots, and behind them the numbers of the values that the parts carry, if any do.
  std::vector<u32> with_carried(const std::vector<u32>& slots,
                                const std::vector<ptx::Operand>& parts);

  // decode_control.cpp: branches, calls, the stack
  void stack(const ptx::Instruction& i, const Spelling& s);
  void branch(const ptx::Instruction& i);
  void branch_to_one_of(const ptx::Instruction& i);
  void call(const ptx::Instruction& i);
  Passing passing(const ptx::Operand& o);

  // decode_async.cpp: asynchronous copies and mbarriers
  void async_copy(const ptx::Instruction& i, const Spelling& s);
  void mbarrier(const ptx::Instruction& i, const Spelling& s);

  // decode_tensor.cpp: what a whole warp does with matrices
  void matrix(const ptx::Instruction& i, const Spelling& s);
  void mma(const ptx::Instruction& i, const Spelling& s);
  void wmma(const ptx::Instruction& i, const Spelling& s);
  void wmma_memory(const ptx::Instruction& i, Spelling s);
  void matrix_rows(const ptx::Instruction& i, Spelling s);
  void movmatrix(const ptx::Instruction& i, const Spelling& s);
  void emit_mma(const ptx::Instruction& i, const Spelling& s, const MmaShape& shape);
  void emit_matrix(const ptx::Instruction& i, Spelling s, MatrixPlan plan, bool store);
  std::vector<u32> fragment(const ptx::Operand& o, u32 count, ptx::Type type, bool results);
  void finish_fragment(const ptx::Operand& o, ptx::Type type, const std::vector<u32>& slots);
  template <class Plan>
  const u32* plan_and_slots(const Plan& plan, const std::vector<u32>& slots);

  const LoadedModuleState& module_;
  Program& program_;
  Code& code_;
  const ptx::Function& function_;
  const InstructionSet& isa_;
  SlotAssignment slots_;
  u32 current_ = 0;                                            // instruction being decoded
  u32 narrow_used_ = 0, wide_used_ = 0, predicates_used_ = 0;  // temporaries of this instruction
  u32 narrow_most_ = 0, wide_most_ = 0, predicates_most_ = 0;
  std::unordered_map<u32, u32> narrow_constants_;
  std::unordered_map<u64, u32> wide_constants_;
  std::unordered_map<std::string, Place> names_;                     // of this function
  std::vector<u32> first_op_;                                        // by instruction
  std::optional<std::set<std::pair<ptx::Register, s64>>> compared_;  // addresses of atom.cas
  std::vector<u32> carried_;  // by register: number of the value, or kNone
  struct Fixup {
    u32 op, instruction;
    bool past_end;  // the operation after the instruction's own
  };
  std::vector<Fixup> fixups_;
};

}  // namespace attest::emulator

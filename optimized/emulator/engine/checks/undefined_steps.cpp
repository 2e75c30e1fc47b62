// What each instruction does with undefined values, found out once per instruction.
#include <algorithm>
#include <array>
#include <string_view>

#include "optimized/emulator/engine/checks/undefined.hpp"
#include "optimized/emulator/engine/liveness.hpp"

namespace attest::emulator {

using ptx::Instruction;
using ptx::Operand;
using Role = Undefined::Role;
using Step = Undefined::Step;

namespace {

/// Results are undefined where an operand is (undefined_bits.hpp), and nothing else happens. Any
/// other instruction uses what it reads.
constexpr std::array kPasses{
    "abs",      "add",  "addc",  "and",  "bfe", "bfi",   "bfind", "bmsk", "brev",  "clz", "cnot",
    "copysign", "cos",  "cvt",   "cvta", "div", "dp2a",  "dp4a",  "ex2",  "fma",   "fns", "lg2",
    "lop3",     "mad",  "mad24", "madc", "max", "min",   "mov",   "mul",  "mul24", "neg", "not",
    "or",       "popc", "prmt",  "rcp",  "rem", "rsqrt", "sad",   "set",  "setp",  "shf", "shl",
    "shr",      "sin",  "slct",  "sqrt", "sub", "subc",  "szext", "tanh", "testp", "xor"};

bool has(const Instruction& i, std::string_view modifier) {
  return std::find(i.modifiers.begin(), i.modifiers.end(), modifier) != i.modifiers.end();
}

Role role_of(const Instruction& i) {
  const bool matrix = i.opcode == "ldmatrix" || (i.opcode == "wmma" && has(i, "load"));
  if (i.opcode == "ld" || i.opcode == "ldu" || matrix) return Role::loads;
  if (i.opcode == "st") return Role::stores;
  if (i.opcode == "shfl") return Role::shuffles;
  if (i.opcode == "vote" || i.opcode == "match" || i.opcode == "redux") return Role::combines;
  if (i.opcode == "selp") return Role::selects;
  constexpr std::array kMatrices{"mma", "wmma", "movmatrix", "stmatrix"};
  if (std::find(kMatrices.begin(), kMatrices.end(), i.opcode) != kMatrices.end())
    return Role::matrices;
  return std::find(kPasses.begin(), kPasses.end(), i.opcode) != kPasses.end() ? Role::passes
                                                                              : Role::uses;
}

/// An instruction that does nothing but compute registers from registers and parameters.
bool only_computes(const Instruction& i) {
  const Role role = role_of(i);
  return role == Role::passes || role == Role::selects || (i.opcode == "ld" && has(i, "param"));
}

/// Where the ways from a forward branch meet, if all of them only compute; or 0. Then the branch
/// is but a selection, as a compiler may have written it.
u32 meeting_of(const ptx::Function& f, u32 branch) {
  u32 end = branch + 1;
  for (u32 n = branch; n < end && n < f.body.size(); ++n) {
    const Instruction& i = f.body[n];
    if (i.opcode != "bra") {
      if (!only_computes(i)) return 0;
      continue;
    }
    if (i.operands.empty() || i.operands[0].kind != Operand::Kind::label) return 0;
    const u64 target = u64(i.operands[0].immediate);
    if (target <= n || target >= f.body.size()) return 0;
    end = std::max(end, u32(target));
  }
  return end;
}

}  // namespace

const Undefined::Step& step_of(Undefined& u, const ptx::Function& f, u32 n) {
  const Instruction& i = f.body[n];
  const auto [it, fresh] = u.steps.try_emplace(&i);
  Step& step = it->second;
  if (!fresh) return step;
  step.role = role_of(i);
  step.to_call = has(i, "param") || has(i, "param::func");
  step.spelling = spell(i).spelling;
  ptx::Function alone;  // without its guard, which is looked at apart
  alone.body.push_back(i);
  alone.body[0].guard = ptx::kNoRegister;
  const RegisterUses uses(alone);
  const auto reads = uses.reads(0), writes = uses.writes(0);
  step.reads.assign(reads.begin(), reads.end()), step.writes.assign(writes.begin(), writes.end());
  if (i.opcode == "bra") step.meeting = meeting_of(f, n);
  return step;
}

}  // namespace attest::emulator

// Live ranges and slot reuse.
#include "optimized/emulator/engine/liveness.hpp"

#include <algorithm>
#include <array>
#include <queue>
#include <string_view>

#include "optimized/emulator/engine/spelling.hpp"

namespace attest::emulator {
namespace {

using ptx::Operand;

void add_registers(const Operand& operand, std::vector<ptx::Register>& to) {
  if (operand.reg != ptx::kNoRegister) to.push_back(operand.reg);
  if (operand.second != ptx::kNoRegister) to.push_back(operand.second);
  for (const Operand& element : operand.elements) add_registers(element, to);
}

/// Opcodes whose first operand is no destination.
bool writes_nothing(std::string_view opcode) {
  static constexpr std::array kNone{"st",  "red",    "bra",  "bar",       "barrier",
                                    "ret", "exit",   "trap", "nanosleep", "prefetch",
                                    "brx", "membar", "fence"};
  return std::find(kNone.begin(), kNone.end(), opcode) != kNone.end();
}

/// bar.red is the one barrier with a result.
bool is_reducing_barrier(const ptx::Instruction& i) {
  return (i.opcode == "bar" || i.opcode == "barrier") &&
         std::find(i.modifiers.begin(), i.modifiers.end(), "red") != i.modifiers.end();
}

struct Block {
  u32 begin = 0, end = 0;
  std::vector<u32> successors;
  std::vector<u64> reads, writes, in, out;
};

bool test(const std::vector<u64>& bits, u32 i) {
  return (bits[i / 64] >> (i % 64)) & 1;
}
void set(std::vector<u64>& bits, u32 i) {
  bits[i / 64] |= u64{1} << (i % 64);
}

bool ends_block(const ptx::Instruction& i) {
  return i.opcode == "bra" || i.opcode == "brx" || i.opcode == "ret" || i.opcode == "exit";
}

std::vector<Block> blocks_of(const ptx::Function& function) {
  const u32 count = u32(function.body.size());
  std::vector<u8> leader(count + 1, 0);
  if (count) leader[0] = 1;
  for (u32 l : function.leaders) leader[std::min(l, count)] = 1;
  for (u32 i = 0; i < count; ++i) {
    if (ends_block(function.body[i])) leader[i + 1] = 1;
  }
  std::vector<Block> blocks;
  std::vector<u32> block_at(count + 1, 0);
  for (u32 i = 0; i < count; ++i) {
    if (leader[i]) blocks.emplace_back().begin = i;
    block_at[i] = u32(blocks.size()) - 1;
    blocks.back().end = i + 1;
  }
  for (u32 b = 0; b < blocks.size(); ++b) {
    const ptx::Instruction& last = function.body[blocks[b].end - 1];
    const bool conditional = last.guard != ptx::kNoRegister;
    if (last.opcode == "bra" || last.opcode == "brx") {
      const auto add_target = [&](const Operand& o) {
        if (o.kind == Operand::Kind::label && u64(o.immediate) < count)
          blocks[b].successors.push_back(block_at[std::size_t(o.immediate)]);
      };
      for (const Operand& o : last.operands) {
        add_target(o);
        for (const Operand& e : o.elements) add_target(e);
      }
    }
    const bool falls = !ends_block(last) || conditional;
    if (falls && b + 1 < blocks.size()) blocks[b].successors.push_back(b + 1);
  }
  return blocks;
}

/// Fills in and out of each block by iterating to the fixed point, last block first.
void solve(const ptx::Function& function, const std::vector<RegisterUse>& accesses,
           std::vector<Block>& blocks) {
  const std::size_t words = (function.registers.size() + 63) / 64;
  for (Block& b : blocks) {
    b.reads.assign(words, 0), b.writes.assign(words, 0), b.in.assign(words, 0),
        b.out.assign(words, 0);
    for (u32 i = b.begin; i < b.end; ++i) {
      for (ptx::Register r : accesses[i].reads) {
        if (!test(b.writes, r)) set(b.reads, r);
      }
      // A guarded write leaves the old value in the other lanes: it does not end a live range.
      if (function.body[i].guard != ptx::kNoRegister) continue;
      for (ptx::Register r : accesses[i].writes) set(b.writes, r);
    }
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t n = blocks.size(); n-- > 0;) {
      Block& b = blocks[n];
      for (u32 s : b.successors) {
        for (std::size_t w = 0; w < words; ++w) b.out[w] |= blocks[s].in[w];
      }
      for (std::size_t w = 0; w < words; ++w) {
        const u64 in = b.reads[w] | (b.out[w] & ~b.writes[w]);
        changed |= in != b.in[w];
        b.in[w] = in;
      }
    }
  }
}

struct Range {
  u32 first = ~0u, last = 0;
  void include(u32 position) { first = std::min(first, position), last = std::max(last, position); }
};

std::vector<Range> ranges_of(const ptx::Function& function) {
  std::vector<RegisterUse> accesses;
  accesses.reserve(function.body.size());
  for (const ptx::Instruction& i : function.body) accesses.push_back(access_of(i));
  std::vector<Block> blocks = blocks_of(function);
  solve(function, accesses, blocks);
  std::vector<Range> ranges(function.registers.size());
  for (const Block& b : blocks) {
    for (std::size_t w = 0; w < b.in.size(); ++w) {
      for (u64 bits = b.in[w]; bits; bits &= bits - 1)
        ranges[w * 64 + u64(__builtin_ctzll(bits))].include(2 * b.begin);
      for (u64 bits = b.out[w]; bits; bits &= bits - 1)
        ranges[w * 64 + u64(__builtin_ctzll(bits))].include(2 * b.end);
    }
    for (u32 i = b.begin; i < b.end; ++i) {
      // Reads are at even, writes at odd positions, so that a result may take the slot of an
      // operand that dies here; only where one handler does the whole instruction, though.
      const bool one_handler =
          function.body[i].operands.size() <= 4 && function.body[i].opcode != "mov" &&
          function.body[i].opcode != "setp" && function.body[i].opcode != "set" &&
          function.body[i].opcode != "shfl" && function.body[i].opcode != "call";
      for (ptx::Register r : accesses[i].reads) ranges[r].include(one_handler ? 2 * i : 2 * i + 1);
      for (ptx::Register r : accesses[i].writes) {
        ranges[r].include(2 * i + 1);
        if (!one_handler) ranges[r].include(2 * i);
      }
    }
  }
  return ranges;
}

}  // namespace

SlotClass slot_class(ptx::Type type) {
  if (type == ptx::Type::pred) return SlotClass::predicate;
  return ptx::size_of(type) == 8 ? SlotClass::wide : SlotClass::narrow;
}

RegisterUse access_of(const ptx::Instruction& instruction) {
  RegisterUse access;
  const bool none = writes_nothing(instruction.opcode) && !is_reducing_barrier(instruction);
  const bool call = instruction.opcode == "call";
  bool first = true;
  for (const Operand& operand : instruction.operands) {
    const bool results = call && first && operand.kind == Operand::Kind::arguments &&
                         instruction.operands.size() > 1;
    const bool destination = call ? results : first && !none;
    add_registers(operand, destination && operand.kind != Operand::Kind::address ? access.writes
                                                                                 : access.reads);
    first = false;
  }
  if (instruction.guard != ptx::kNoRegister) {
    access.reads.push_back(instruction.guard);
    access.reads.insert(access.reads.end(), access.writes.begin(), access.writes.end());
  }
  return access;
}

SlotAssignment assign_slots(const ptx::Function& function) {
  SlotAssignment assignment;
  assignment.slot.assign(function.registers.size(), 0);
  const std::vector<Range> ranges = ranges_of(function);
  std::vector<u32> order;
  for (u32 r = 0; r < ranges.size(); ++r) {
    if (ranges[r].first != ~0u) order.push_back(r);
  }
  std::sort(order.begin(), order.end(), [&](u32 a, u32 b) {
    return std::pair(ranges[a].first, a) < std::pair(ranges[b].first, b);
  });

  using Ending = std::pair<u32, u32>;  // last position, slot
  using Endings = std::priority_queue<Ending, std::vector<Ending>, std::greater<>>;
  using Free = std::priority_queue<u32, std::vector<u32>, std::greater<>>;
  std::array<Endings, 3> live;
  std::array<Free, 3> free;
  std::array<u32, 3> used{0, 0, 1};  // predicate 0 is the carry of extended arithmetic
  for (u32 r : order) {
    const std::size_t c = std::size_t(slot_class(function.registers[r].type));
    while (!live[c].empty() && live[c].top().first < ranges[r].first) {
      free[c].push(live[c].top().second);
      live[c].pop();
    }
    if (free[c].empty()) {
      assignment.slot[r] = used[c]++;
    } else {
      assignment.slot[r] = free[c].top();
      free[c].pop();
    }
    live[c].push({ranges[r].last, assignment.slot[r]});
  }
  assignment.narrow = used[0], assignment.wide = used[1], assignment.predicates = used[2];
  return assignment;
}

}  // namespace attest::emulator

// Values that nothing defines, on their way through registers: read from memory that nobody wrote,
// or taken by shfl from a lane that does not take part. Having them is no mistake, only using them
// is: branching on them, addressing by them, storing them where others see them. Knows how values
// pass from register to register, bit by bit; not where they came from.
#pragma once
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "optimized/emulator/engine/machine.hpp"
#include "optimized/emulator/engine/spelling.hpp"
#include "optimized/emulator/ptx/module.hpp"

namespace attest::emulator {

/// Of one block.
struct Undefined {
  struct Origin {
    const Op* op;
    u32 lane;
    std::string what;  // "reads 4 bytes ... that nothing has written"
    bool told = false;
  };
  /// The bits of a register that are undefined, by lane. One of their origins stands for all.
  struct Shadow {
    u64 bits[kLanes] = {};
    u32 lanes = 0, origin = 0;  // lanes: those with some
  };
  /// Instructions [begin, end) are ways from a branch to where its ways meet: in the lanes that
  /// took it by an undefined predicate, what they write is undefined.
  struct Doubt {
    u32 begin, end, lanes, origin;
  };
  struct Values {
    std::vector<std::unique_ptr<Shadow>> by_register;
    std::vector<Doubt> doubts;
    u32 warp = 0, count = 0;  // of registers that hold some
  };
  /// What an instruction does with values.
  enum class Role : u8 { passes, selects, loads, stores, shuffles, combines, matrices, uses };
  struct Step {
    Role role = Role::uses;
    bool to_call = false;  // stores: to a parameter of a call
    Spelling spelling;
    std::vector<ptx::Register> reads, writes;
    u32 meeting = 0;  // of a branch: where its ways meet, if they only compute; or 0
  };
  std::vector<Origin> origins;
  std::unordered_map<const Frame*, Values> frames;
  std::unordered_map<const ptx::Instruction*, Step> steps;
  // Of the store under way: bit i of a lane's says that byte i is undefined; and of a wmma.store,
  // where its undefined elements go (host addresses, bytes), in order.
  u32 stored[kLanes] = {}, stored_origin = 0;
  std::vector<std::pair<u64, u32>> stored_pieces;
};

/// Before a block starts: nothing is on its way.
void forget_undefined(Block& block);
/// Whether a finding of values from this operation would be new.
bool is_news(Block& block, const Op& op);
/// The number of the operation as an origin. `what` is said when its values are used.
u32 origin_of(const Op& op, Warp& warp, u32 lane, std::string what);
/// The store under way takes its undefined values to where others see them.
void use_stored(const Op& op, Warp& warp);

/// What instruction n of a function does (undefined_steps.cpp).
const Undefined::Step& step_of(Undefined& u, const ptx::Function& function, u32 n);

/// All bits that a register has.
u64 bits_of_register(const Warp& warp, ptx::Register r);
void drop_undefined(Undefined::Values& values, ptx::Register r);
Undefined::Values& undefined_values(Undefined& u, const Warp& warp);
/// The register's `on` lanes hold these bits.
void put_undefined(Undefined& u, const Warp& warp, ptx::Register r, u32 on, const u64* bits,
                   u32 origin);
/// After values came into registers: the warp follows them from now on.
void show_tracking(Undefined& u, Warp& warp);
/// The parts of an operand: those of a vector, or itself.
std::vector<ptx::Operand> parts_of(const ptx::Operand& operand);

/// Byte i of what lane l loads by ld is undefined when bit i of bytes[l] is set.
void load_undefined(const Op& op, Warp& warp, const u32* bytes, u32 origin);

// --- matrices (undefined_matrix.cpp) ---
/// ldmatrix: byte i of the row that lane l points to, as above.
void load_undefined_rows(const Op& op, Warp& warp, const u32* bytes, u32 origin);
/// wmma.load: elements of which some byte is not written.
void load_undefined_wmma(const Op& op, Warp& warp, u32 origin);
/// mma, wmma.mma and movmatrix move undefined elements; stmatrix and wmma.store lay them down.
void pass_matrices(const Op& op, Warp& warp, const Undefined::Step& step);
/// Of the bytes [address, address + count) of a wmma.store under way, those that are undefined.
u32 stored_by_wmma(const Undefined& u, u64 address, u32 count);
/// Whether nobody wrote the byte at a host address (initcheck.cpp).
bool is_unwritten(const Op& op, Warp& warp, u64 address);

}  // namespace attest::emulator

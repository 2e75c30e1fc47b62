// The table of costs. A floating-point addition or product is one operation, a fused multiply-add
// two; minima, negations and comparisons move bits and are no arithmetic. Instructions that work on
// a pair of halves do everything twice. What NVIDIA's profilers call FLOPs is counted the same way.
#include "optimized/emulator/engine/costs.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string_view>

namespace attest::emulator {
namespace {

using ptx::Instruction;
using ptx::Type;

enum class Kind : std::uint8_t {
  arithmetic,  // flops of its type, or integer operations
  integer,
  special,
  tensor,
  conversion,
  move,
  control,
  barrier,
  load,
  store,
  update,   // reads and writes
  storage,  // moves data between registers and shared memory, or describes such a move
};

struct Row {
  std::string_view opcode;
  Kind kind;
  std::uint32_t operations = 1;
};

constexpr Row kRows[] = {
    {"add", Kind::arithmetic},
    {"addc", Kind::arithmetic},
    {"sub", Kind::arithmetic},
    {"subc", Kind::arithmetic},
    {"mul", Kind::arithmetic},
    {"mul24", Kind::integer},
    {"mad", Kind::arithmetic, 2},
    {"madc", Kind::integer, 2},
    {"mad24", Kind::integer, 2},
    {"fma", Kind::arithmetic, 2},
    {"sad", Kind::integer, 2},
    {"dp4a", Kind::integer, 8},
    {"dp2a", Kind::integer, 4},

    {"div", Kind::special},
    {"rem", Kind::special},
    {"rcp", Kind::special},
    {"sqrt", Kind::special},
    {"rsqrt", Kind::special},
    {"ex2", Kind::special},
    {"lg2", Kind::special},
    {"sin", Kind::special},
    {"cos", Kind::special},
    {"tanh", Kind::special},

    {"abs", Kind::integer},
    {"neg", Kind::integer},
    {"min", Kind::integer},
    {"max", Kind::integer},
    {"copysign", Kind::integer},
    {"testp", Kind::integer},
    {"and", Kind::integer},
    {"or", Kind::integer},
    {"xor", Kind::integer},
    {"not", Kind::integer},
    {"cnot", Kind::integer},
    {"lop3", Kind::integer},
    {"shl", Kind::integer},
    {"shr", Kind::integer},
    {"shf", Kind::integer},
    {"bfi", Kind::integer},
    {"bfe", Kind::integer},
    {"bfind", Kind::integer},
    {"brev", Kind::integer},
    {"bmsk", Kind::integer},
    {"szext", Kind::integer},
    {"clz", Kind::integer},
    {"popc", Kind::integer},
    {"prmt", Kind::integer},
    {"fns", Kind::integer},
    {"setp", Kind::integer},
    {"set", Kind::integer},
    {"selp", Kind::integer},
    {"slct", Kind::integer},
    {"isspacep", Kind::integer},

    {"cvt", Kind::conversion},
    {"mov", Kind::move},
    {"cvta", Kind::move},
    {"mapa", Kind::move},
    {"getctarank", Kind::move},
    {"movmatrix", Kind::move},
    {"shfl", Kind::move},
    {"vote", Kind::move},
    {"match", Kind::move},
    {"redux", Kind::integer},
    {"activemask", Kind::move},
    {"elect", Kind::move},

    {"mma", Kind::tensor},
    {"wmma", Kind::tensor},

    {"ld", Kind::load},
    {"ldu", Kind::load},
    {"st", Kind::store},
    {"atom", Kind::update},
    {"red", Kind::update},
    {"cp", Kind::load},
    {"ldmatrix", Kind::storage},
    {"stmatrix", Kind::storage},
    {"prefetch", Kind::storage},
    {"prefetchu", Kind::storage},
    {"applypriority", Kind::storage},
    {"discard", Kind::storage},
    {"createpolicy", Kind::storage},
    {"mbarrier", Kind::storage},

    {"bra", Kind::control},
    {"brx", Kind::control},
    {"call", Kind::control},
    {"ret", Kind::control},
    {"exit", Kind::control},
    {"trap", Kind::control},
    {"brkpt", Kind::control},
    {"nanosleep", Kind::control},
    {"bar", Kind::barrier},
    {"barrier", Kind::barrier},
    {"membar", Kind::control},
    {"fence", Kind::control},
    {"pmevent", Kind::control},
    {"griddepcontrol", Kind::control},
    {"setmaxnreg", Kind::control},
    {"alloca", Kind::control},
    {"stacksave", Kind::control},
    {"stackrestore", Kind::control},
};

const Row* find_row(std::string_view opcode) {
  const auto* const end = std::end(kRows);
  const auto* const row =
      std::find_if(std::begin(kRows), end, [&](const Row& r) { return r.opcode == opcode; });
  return row == end ? nullptr : row;
}

bool says(const Instruction& i, std::string_view modifier) {
  return std::find(i.modifiers.begin(), i.modifiers.end(), modifier) != i.modifiers.end();
}

Type first_type(const Instruction& i) {
  for (const std::string& m : i.modifiers) {
    if (const auto type = ptx::type_named(m)) return *type;
  }
  return Type::none;
}

Cost arithmetic(const Instruction& i, std::uint32_t operations) {
  if (says(i, "f32x2")) return {.unit = &Totals::f32_flops, .per_lane = 2 * operations};
  switch (first_type(i)) {
    case Type::f32:
      return {.unit = &Totals::f32_flops, .per_lane = operations};
    case Type::f64:
      return {.unit = &Totals::f64_flops, .per_lane = operations};
    case Type::f16:
    case Type::bf16:
      return {.unit = &Totals::f16_flops, .per_lane = operations};
    case Type::f16x2:
    case Type::bf16x2:
      return {.unit = &Totals::f16_flops, .per_lane = 2 * operations};
    default:
      break;
  }
  const bool twice = says(i, "u16x2") || says(i, "s16x2");
  return {.unit = &Totals::integer_operations, .per_lane = twice ? 2 * operations : operations};
}

/// The packed halves do it twice.
std::uint32_t width(const Instruction& i) {
  const Type type = first_type(i);
  return type == Type::f16x2 || type == Type::bf16x2 ? 2 : 1;
}

/// 2 m n k of a shape such as m16n8k16; 0 when the modifier is none.
std::uint32_t products(std::string_view shape) {
  std::uint32_t product = 2;
  for (const char letter : {'m', 'n', 'k'}) {
    if (shape.empty() || shape.front() != letter) return 0;
    shape.remove_prefix(1);
    std::uint32_t side = 0;
    const auto [end, error] = std::from_chars(shape.data(), shape.data() + shape.size(), side);
    if (error != std::errc{}) return 0;
    shape.remove_prefix(std::size_t(end - shape.data()));
    product *= side;
  }
  return shape.empty() ? product : 0;
}

Cost tensor(const Instruction& i) {
  if (says(i, "load") || says(i, "store")) {  // wmma
    return {.unit = &Totals::memory,
            .per_lane = 1,
            .reads = says(i, "load"),
            .writes = says(i, "store")};
  }
  for (const std::string& m : i.modifiers) {
    if (const std::uint32_t operations = products(m))
      return {.unit = &Totals::tensor_flops, .per_warp = operations};
  }
  return {.unit = &Totals::tensor_flops};
}

}  // namespace

bool has_cost(std::string_view opcode) {
  return find_row(opcode) != nullptr;
}

Cost cost_of(const Instruction& i) {
  const Row* const row = find_row(i.opcode);
  if (row == nullptr) return {.unit = &Totals::control, .per_lane = 1};
  // Constants and parameters come from caches of their own.
  const bool elsewhere = says(i, "const") || says(i, "param") || says(i, "param::entry");
  switch (row->kind) {
    case Kind::arithmetic:
      return arithmetic(i, row->operations);
    case Kind::integer:
      return {.unit = &Totals::integer_operations, .per_lane = row->operations * width(i)};
    case Kind::special:
      return {.unit = &Totals::special_operations, .per_lane = width(i)};
    case Kind::tensor:
      return tensor(i);
    case Kind::conversion:
      return {.unit = &Totals::conversions, .per_lane = 1};
    case Kind::move:
      return {.unit = &Totals::moves, .per_lane = 1};
    case Kind::control:
      return {.unit = &Totals::control, .per_lane = 1};
    case Kind::barrier:
      return {.unit = &Totals::control,
              .per_lane = 1,
              .barrier = !says(i, "warp") && !says(i, "arrive")};
    case Kind::load:
      return {.unit = &Totals::memory, .per_lane = 1, .reads = !elsewhere};
    case Kind::store:
      return {.unit = &Totals::memory, .per_lane = 1, .writes = !elsewhere};
    case Kind::update:
      return {.unit = &Totals::memory, .per_lane = 1, .reads = true, .writes = true};
    case Kind::storage:
      return {.unit = &Totals::memory, .per_lane = 1};
  }
  return {};
}

}  // namespace attest::emulator

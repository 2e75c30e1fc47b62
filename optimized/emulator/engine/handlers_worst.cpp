// ex2, lg2, rcp, rsqrt, sqrt, sin, cos, tanh and div with an error that a hash of the seed, the
// opcode and the operands chooses within PTX's bound, often at its very ends. Compiled once, for
// the oldest instruction set, so that the bits are the same on every machine. What PTX promises
// exactly (zeros, infinities, NaN, 2^0) stays exact.
#include "optimized/emulator/engine/select.hpp"
#include "optimized/emulator/engine/semantics_approx.hpp"
#include "optimized/emulator/engine/semantics_half.hpp"
#include "optimized/emulator/engine/worst.hpp"
#include "optimized/emulator/options.hpp"

namespace attest::emulator::baseline {
namespace {

/// A number in [-1, 1], a function of its arguments alone: each end in a quarter of all cases.
double lean_of(u64 seed, Opcode opcode, u64 operands) {
  u64 h = seed * 0x9e3779b97f4a7c15u + u64(opcode) * 0xbf58476d1ce4e5b9u + operands;
  // The finaliser of splitmix64 (Steele, Lea, Flood 2014), twice: seeds that differ in one bit.
  for (int round = 0; round < 2; ++round) {
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
    h ^= h >> 31;
  }
  if ((h & 3) < 2) return h & 1 ? 1.0 : -1.0;
  return double(s64(h) >> 11) * 0x1p-52;
}

bool is_settled(float exact) {  // zero, infinite or NaN
  const u32 magnitude = bits_as<u32>(exact) & 0x7fffffffu;
  return magnitude == 0 || magnitude >= 0x7f800000u;
}
template <bool kFlush>
float kept_normal(float moved, float exact) {
  const bool fell = (bits_as<u32>(moved) & 0x7f800000u) == 0;
  return kFlush && fell ? exact : moved;
}

/// A unit in the last place of the floats around y: the smaller one where y is a power of two.
double unit_of(double y) {
  const u64 exponent = ((bits_as<u64>(y) - 1) >> 52) & 0x7ff;
  const u64 least = 1023 - 126;
  return bits_as<double>(((exponent > least ? exponent : least) - 23) << 52);
}

constexpr double kOfInexact = 1.0 - 0x1p-20;  // of a bound, where y itself errs by 2^-50 relative

/// `bound` around the value y, in absolute terms: the float next to y + lean * bound that is not
/// beyond it; the correctly rounded value when no other lies within. Never to infinity or zero.
template <bool kFlush>
float by_distance(double y, double lean, double bound, double part = kOfInexact) {
  const float exact = float(y);
  if (is_settled(exact)) return exact;
  bound *= part;
  float r = float(y + lean * bound);
  const auto beyond = [&](float x) { return __builtin_fabs(double(x) - y) > bound; };
  if (beyond(r)) {  // rounded outwards: one step back towards y
    const bool up = double(r) < y;
    const u32 b = bits_as<u32>(r);
    r = bits_as<float>(up == ((b >> 31) == 0) ? b + 1 : b - 1);
  }
  return beyond(r) || is_settled(r) ? exact : kept_normal<kFlush>(r, exact);
}

/// The same among 16-bit floats.
template <class H>
u16 by_distance16(double y, double lean, double bound) {
  const u16 exact = H::narrow(float(y));
  if ((exact & 0x7fffu) == 0 || (exact & 0x7fffu) >= H::kInfinity) return exact;
  u16 r = H::narrow(float(y + lean * bound));
  const auto beyond = [&](u16 x) { return __builtin_fabs(double(H::widen(x)) - y) > bound; };
  if (beyond(r)) {
    const bool up = double(H::widen(r)) < y;
    r = up == ((r >> 15) == 0) ? u16(r + 1) : u16(r - 1);
  }
  return beyond(r) || (r & 0x7fffu) >= H::kInfinity ? exact : r;
}

double tanh_double(double x) {
  // Below 2^-9 the series x - x^3/3 is exact to 2^-34, far inside 2^-11.
  if (__builtin_fabs(x) < 0x1p-9) return x - x * x * x / 3.0;
  const double clamped = x < -20.0 ? -20.0 : x > 20.0 ? 20.0 : x;
  return 1.0 - 2.0 / (exp2_double(clamped * 0x1.71547652b82fep+1) + 1.0);
}
double sine_double(float a, bool cosine) {
  Turn turn{0, a};
  if ((bits_as<u32>(a) & 0x7fffffffu) > 0x3f490fdau) turn = reduce(a);
  const s64 q = (turn.quadrant + (cosine ? 1 : 0)) & 3;
  const double r = q & 1 ? cos_reduced(turn.angle) : sin_reduced(turn.angle);
  return q & 2 ? -r : r;
}

// The bounds are those of PTX ISA 9.0, section by instruction.
// Of ex2 the units count from the correctly rounded value, of rcp and div from the quotient itself.
template <bool kFlush>
float worst_ex2(float a, u64 seed) {
  if (operand<kFlush>(a) == 0) return 1.0f;
  const float exact = ex2_f32<kFlush>(a);
  const double lean = lean_of(seed, Opcode::ex2, bits_as<u32>(a));
  const float near = by_distance<kFlush>(exact, lean, 2 * unit_of(exact), 1.0);
  return near < 0 ? 0.0f : near;  // a unit below the least subnormal number is no exponential
}
template <bool kFlush>
float worst_lg2(float a, u64 seed) {
  const float exact = lg2_f32<kFlush>(a);
  const float x = operand<kFlush>(a);
  if (!(x > 0) || is_settled(x) || (is_settled(exact) && exact != 0)) return exact;
  const double y = log2_double(x), lean = lean_of(seed, Opcode::lg2, bits_as<u32>(a));
  const bool near_one = x > 0.5f && x < 2.0f;
  return by_distance<kFlush>(y, lean, near_one ? 0x1p-22 : __builtin_fabs(y) * 0x1p-22);
}
template <bool kFlush>
float worst_rcp(float a, u64 seed) {
  const float exact = rcp_f32<Rounding::nearest, kFlush>(a);
  if (is_settled(exact)) return exact;
  const double y = 1.0 / double(a);
  return by_distance<kFlush>(y, lean_of(seed, Opcode::rcp, bits_as<u32>(a)), unit_of(y));
}
template <bool kFlush>
float worst_rsqrt(float a, u64 seed) {
  const float exact = rsqrt_f32<kFlush>(a), x = operand<kFlush>(a);
  if (!(x > 0) || is_settled(exact)) return exact;
  const double y = 1.0 / __builtin_sqrt(double(x));
  const double lean = lean_of(seed, Opcode::rsqrt, bits_as<u32>(a));
  return by_distance<kFlush>(y, lean, y * 0x1.125fbee250669p-23);  // 2^-22.9
}
template <bool kFlush>
float worst_sqrt(float a, u64 seed) {
  const float exact = sqrt_f32<Rounding::nearest, kFlush>(a), x = operand<kFlush>(a);
  if (!(x > 0) || is_settled(exact)) return exact;
  const double y = __builtin_sqrt(double(x));
  return by_distance<kFlush>(y, lean_of(seed, Opcode::sqrt, bits_as<u32>(a)), y * 0x1p-23);
}
/// Beyond 100 pi PTX bounds nothing; the last bound is kept. The range [-1, 1] is not left.
template <bool kCosine, bool kFlush>
float worst_sine(float a, u64 seed) {
  const float exact = sine_f32<kCosine, kFlush>(a), x = operand<kFlush>(a);
  if (is_settled(x) || is_settled(exact)) return exact;
  const double lean = lean_of(seed, kCosine ? Opcode::cos : Opcode::sin, bits_as<u32>(a));
  const bool small = __builtin_fabs(double(x)) <= 0x1.921fb54442d18p+2;        // 2 pi
  const double bound = small ? 0x1.6a09e667f3bcdp-21 : 0x1.3b2c47bff832cp-15;  // 2^-20.5, 2^-14.7
  const float r = by_distance<kFlush>(sine_double(x, kCosine), lean, bound);
  return r > 1.0f ? 1.0f : r < -1.0f ? -1.0f : r;
}
float worst_tanh(float a, u64 seed) {
  const float exact = tanh_f32(a);
  const bool passes = (bits_as<u32>(a) & 0x7f800000u) == 0;  // zeros and subnormal numbers
  if (passes || is_settled(a)) return exact;
  const double y = tanh_double(a), lean = lean_of(seed, Opcode::tanh, bits_as<u32>(a));
  const float r = by_distance<false>(y, lean, __builtin_fabs(y) * 0x1p-11);
  return r > 1.0f ? 1.0f : r < -1.0f ? -1.0f : r;
}
template <bool kApprox, bool kFlush>
float worst_div(float a, float b, u64 seed) {
  const float exact = kApprox ? div_approx<kFlush>(a, b) : div_f32<Rounding::nearest, kFlush>(a, b);
  const u32 magnitude = bits_as<u32>(b) & 0x7fffffffu;
  // div.approx is bounded for |b| in [2^-126, 2^126].
  if (kApprox && (magnitude < 0x00800000u || magnitude > 0x7e800000u)) return exact;
  if (is_settled(exact)) return exact;
  const u64 operands = u64(bits_as<u32>(a)) << 32 | bits_as<u32>(b);
  const double y = double(operand<kFlush>(a)) / double(operand<kFlush>(b));
  return by_distance<kFlush>(y, lean_of(seed, Opcode::div, operands), 2 * unit_of(y));
}
template <class H, bool kFlush>
u16 worst_ex2_16(u16 h, u64 seed) {
  const float a = H::widen(operand16<H, kFlush>(h));
  const float plain = ex2_f32<false>(a);
  if (a == 0 || is_settled(plain)) return operand16<H, kFlush>(H::narrow(plain));
  const double y = exp2_double(a);
  const double bound = kFlush ? y * 0x1p-7 : y * 0x1.125fbee250663p-10;  // 2^-9.9
  const u16 r = by_distance16<H>(y, lean_of(seed, Opcode::ex2, h), bound);
  const bool fell = (r & H::kInfinity) == 0;  // below what .ftz keeps
  return kFlush && fell ? operand16<H, true>(H::narrow(plain)) : r;
}
template <class H>
u16 worst_tanh_16(u16 h, u64 seed) {
  const float a = H::widen(h);
  if (is_settled(a)) return H::narrow(tanh_f32(a));
  constexpr double bound =
      H::kDropped == F16::kDropped ? 0x1.0251353756991p-11 : 0x1p-8;  // 2^-10.987
  const u16 r = by_distance16<H>(tanh_double(a), lean_of(seed, Opcode::tanh, h), bound);
  return (r & 0x7fffu) > H::kOne ? u16((r & 0x8000u) | H::kOne) : r;
}
template <u16 (*F)(u16, u64)>
u32 both(u32 a, u64 seed) {
  return u32(F(u16(a), seed)) | u32(F(u16(a >> 16), seed)) << 16;
}

template <class T, T (*F)(T, u64)>
const Op* erring(const Op& op, Warp& w) {
  const u8* a = slot<T>(w, op.a);
  u8* d = target<T>(op, w);
  const u64 seed = *w.numerics->worst;
  for (unsigned l = 0; l < kLanes; ++l) write<T>(d, l, F(read<T>(a, l), seed));
  commit<T>(op, w);
  return &op + 1;
}
template <float (*F)(float, float, u64)>
const Op* erring_quotient(const Op& op, Warp& w) {
  const u8* a = slot<float>(w, op.a);
  const u8* b = slot<float>(w, op.b);
  u8* d = target<float>(op, w);
  const u64 seed = *w.numerics->worst;
  for (unsigned l = 0; l < kLanes; ++l)
    write<float>(d, l, F(read<float>(a, l), read<float>(b, l), seed));
  commit<float>(op, w);
  return &op + 1;
}

#define ATTEST_WORST(F) (s.has(M::ftz) ? erring<float, F<true>> : erring<float, F<false>>)

Handler select_worst_f32(const Spelling& s) {
  switch (s.opcode) {
    case Opcode::ex2:
      return ATTEST_WORST(worst_ex2);
    case Opcode::lg2:
      return ATTEST_WORST(worst_lg2);
    case Opcode::rcp:
      return ATTEST_WORST(worst_rcp);
    case Opcode::rsqrt:
      return ATTEST_WORST(worst_rsqrt);
    case Opcode::sqrt:
      return ATTEST_WORST(worst_sqrt);
    case Opcode::sin:
      return s.has(M::ftz) ? erring<float, worst_sine<false, true>>
                           : erring<float, worst_sine<false, false>>;
    case Opcode::cos:
      return s.has(M::ftz) ? erring<float, worst_sine<true, true>>
                           : erring<float, worst_sine<true, false>>;
    case Opcode::tanh:
      return erring<float, worst_tanh>;
    default:
      return nullptr;
  }
}

Handler select_worst_half(const Spelling& s) {
  const bool ex2 = s.opcode == Opcode::ex2;
  if (!ex2 && s.opcode != Opcode::tanh) return nullptr;
  switch (s.type()) {
    case Type::f16:
      return ex2 ? erring<u16, worst_ex2_16<F16, false>> : erring<u16, worst_tanh_16<F16>>;
    case Type::f16x2:
      return ex2 ? erring<u32, both<worst_ex2_16<F16, false>>>
                 : erring<u32, both<worst_tanh_16<F16>>>;
    case Type::bf16:
      return ex2 ? erring<u16, worst_ex2_16<BF16, true>> : erring<u16, worst_tanh_16<BF16>>;
    case Type::bf16x2:
      return ex2 ? erring<u32, both<worst_ex2_16<BF16, true>>>
                 : erring<u32, both<worst_tanh_16<BF16>>>;
    default:
      return nullptr;
  }
}

}  // namespace

Handler select_worst(const Spelling& s) {
  if (s.opcode == Opcode::div && s.type() == Type::f32) {
    if (s.has(M::approx))
      return s.has(M::ftz) ? erring_quotient<worst_div<true, true>>
                           : erring_quotient<worst_div<true, false>>;
    if (s.has(M::full))
      return s.has(M::ftz) ? erring_quotient<worst_div<false, true>>
                           : erring_quotient<worst_div<false, false>>;
  }
  if (!s.has(M::approx)) return nullptr;
  return s.type() == Type::f32 ? select_worst_f32(s) : select_worst_half(s);
}

}  // namespace attest::emulator::baseline

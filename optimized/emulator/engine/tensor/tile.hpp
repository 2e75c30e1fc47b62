// The sums of dot.hpp for a whole tile, many outputs at once and with the same bits.
// Part of the code compiled once per instruction set.
//
// Why it is exact. Let F and emax be as in dot.hpp, x = 2^(F - emax), and -100 <= emax <= 120.
// - A product p = a b in f32: a and b have at most 11 significant bits each, so p is exact unless
// it
//   is subnormal, |p| < 2^-126; then it may be rounded, but |p x| < 2^(F - 26) <= 1/2, and what is
//   cut from it is all of it either way. It does not overflow, since |p| < 4 * 2^emax.
// - p x and c x are exact, x being a power of two in range, or again below 1/2 when they are
// subnormal.
// - |p x| < 4 * 2^F <= 2^27: the conversion to integers cuts towards zero and is exact. Eight of
// them stay below
//   2^30; further eights are added with a test for overflow of 32 bits.
// - The sum S becomes a float towards zero, or rounded to odd before it is rounded to f16; the
//   product with 1 / x is exact, since 2^-125 <= |S| / x < 2^128.
// Whatever breaks a condition (Inf, NaN, emax outside, an overflow) is found on the way, and the
// outputs of those lanes are then computed by the definition.
#pragma once
#include "optimized/emulator/engine/tensor/operands.hpp"

namespace attest::emulator::ATTEST_ISA {

/// Which planes make up each alignment group.
struct Groups {
  u32 count = 0, size = 0;  // size: planes in each
  u8 planes[8][8];
};

/// False when a group is less than whole registers: those tiles are left to the definition.
ATTEST_INLINE bool find_groups(const MmaShape& s, const Arithmetic& how, Groups& groups) {
  const u32 words = s.words, all = words * s.per_word;
  if (how.in_pairs) {
    groups.count = 2;
    for (u32 pair = 0; pair < 2; ++pair) {
      groups.size = 0;
      for (u32 q = 0; q < words; ++q) {
        for (u32 e = 0; e < 2; ++e)
          groups.planes[pair][groups.size++] = u8(q * s.per_word + 2 * pair + e);
      }
    }
    return s.per_word == 4;
  }
  const u32 per_group = how.group / 4;  // planes: each holds four values of k
  groups.size = per_group < all ? per_group : all;
  if (groups.size == 0 || (groups.size & (s.per_word - 1)) != 0) return false;
  for (u32 i = 0; i < all; i += groups.size, ++groups.count) {
    for (u32 j = 0; j < groups.size; ++j) groups.planes[groups.count][j] = u8(i + j);
  }
  return true;
}

/// Exponents of two sums, as c, by their upper halves, which are bf16. What is zero there may still
/// be a number below 2^-133: add_group looks again where that matters.
ATTEST_INLINE Shorts exponents_of_sums(Words low, Words high, s32 least) {
  return Shorts(exponents_of<7, 127, 0x7f80>(high_halves(low, high) & 0x7fff7fff, least));
}

ATTEST_INLINE void raise_exponents(Shorts (&most)[2], const Planes& planes, u32 plane, u32 l) {
  const Words a = load_words(planes.a_exponent[plane] + l);
  const auto raise = [&](Words at_t, u32 t) {
    for (u32 parity = 0; parity < 2; ++parity) {
      const Shorts b = Shorts(repeat(planes.b_exponent[plane][t][parity]));
      most[parity] = larger(most[parity], Shorts(at_t) + b);
    }
  };
  raise(quad<0>(a), 0), raise(quad<1>(a), 1), raise(quad<2>(a), 2), raise(quad<3>(a), 3);
}

/// Adds the four products of a plane, scaled and cut.
template <u32 kHalves>
ATTEST_INLINE void add_products(Words (&sum)[kHalves][2], const Words (&scale)[kHalves][2],
                                const Planes& planes, u32 plane, u32 l) {
  const auto add = [&](const Words(&at_t)[kHalves], u32 t) {
    const Floats even = Floats(repeat(planes.b[plane][t][0]));
    const Floats odd = Floats(repeat(planes.b[plane][t][1]));
    for (u32 half = 0; half < kHalves; ++half) {
      const Floats a = Floats(at_t[half]);
      sum[half][0] += whole((a * even) * Floats(scale[half][0]));
      sum[half][1] += whole((a * odd) * Floats(scale[half][1]));
    }
  };
  Words a[kHalves], at_t[kHalves];
  for (u32 half = 0; half < kHalves; ++half) a[half] = load_words(planes.a[plane][half] + l);
  for (u32 half = 0; half < kHalves; ++half) at_t[half] = quad<0>(a[half]);
  add(at_t, 0);
  for (u32 half = 0; half < kHalves; ++half) at_t[half] = quad<1>(a[half]);
  add(at_t, 1);
  for (u32 half = 0; half < kHalves; ++half) at_t[half] = quad<2>(a[half]);
  add(at_t, 2);
  for (u32 half = 0; half < kHalves; ++half) at_t[half] = quad<3>(a[half]);
  add(at_t, 3);
}

/// The float that an integer sum becomes, before the scale is taken out.
ATTEST_INLINE Words leave_group(Words sum, GroupResult result) {
  const Words cut = float_towards_zero(sum);
  if (result == GroupResult::e8m13) return cut & s32(0xfffffc00u);
  if (result == GroupResult::f32) return cut;
  return cut | ((whole(Floats(cut)) != sum) & 1);  // to odd
}

/// What a group multiplies its addends with, and its sums in the end; from the packed exponents.
template <u32 kHalves>
struct Scales {
  Words to[kHalves][2], back[kHalves][2];
};
template <u32 kHalves>
ATTEST_INLINE void find_scales(const Shorts (&most)[2], const Arithmetic& how, const Sums& sums,
                               u32 l, Scales<kHalves>& scales, Words& trouble) {
  for (u32 parity = 0; parity < 2; ++parity) {
    const Shorts nothing = Shorts(most[parity] < s16(kNothing));
    const Shorts e = larger(most[parity], Shorts{} + s16(how.floor)) & ~nothing;
    trouble |= Words((e < -100) | (e > 120));
    if (any(Words(nothing))) [[unlikely]] {
      // No product and no c that shows in 16 bits: then c must be zero.
      const Words low = load_words(sums.at[0][parity] + l) << 1;
      const Words high = kHalves == 2 ? load_words(sums.at[1][parity] + l) << 1 : Words{};
      trouble |= (low != 0) & (Words(nothing) << 16 != 0);
      trouble |= (high != 0) & (Words(nothing) >> 16 != 0);
    }
    // Exponent fields of floats; they are less than 256, so the shifts drop the other half.
    const Words to = Words(s16(127 + how.fraction_bits) - e);
    const Words back = Words(s16(127 - how.fraction_bits) + e);
    scales.to[0][parity] = to << 23, scales.back[0][parity] = back << 23;
    if (kHalves == 2)
      scales.to[kHalves - 1][parity] = to >> 16 << 23,
                          scales.back[kHalves - 1][parity] = back >> 16 << 23;
  }
}

/// One group for the lanes from l on. What is left in `trouble` when a condition does not hold is
/// not zero.
template <u32 kHalves>
ATTEST_INLINE void add_group(const Planes& planes, const u8* group, u32 size, const Arithmetic& how,
                             s32 least, Sums& sums, u32 l, Words& trouble) {
  Shorts most[2];
  for (u32 parity = 0; parity < 2; ++parity) {
    most[parity] = exponents_of_sums(load_words(sums.at[0][parity] + l),
                                     load_words(sums.at[kHalves - 1][parity] + l), least);
  }
  for (u32 i = 0; i < size; ++i) raise_exponents(most, planes, group[i], l);
  Scales<kHalves> scales;
  find_scales<kHalves>(most, how, sums, l, scales, trouble);
  Words sum[kHalves][2];
  for (u32 half = 0; half < kHalves; ++half) {
    for (u32 parity = 0; parity < 2; ++parity) {
      const Floats c = Floats(load_words(sums.at[half][parity] + l));
      sum[half][parity] = whole(c * Floats(scales.to[half][parity]));
    }
  }
  // c and eight products stay below 2^31.
  for (u32 i = 0; i < size && i < 2; ++i)
    add_products<kHalves>(sum, scales.to, planes, group[i], l);
  for (u32 i = 2; i < size; i += 2) {
    Words part[kHalves][2] = {};
    for (u32 j = i; j < size && j < i + 2; ++j)
      add_products<kHalves>(part, scales.to, planes, group[j], l);
    for (u32 half = 0; half < kHalves; ++half) {
      for (u32 parity = 0; parity < 2; ++parity) {
        Words& total = sum[half][parity];
        const Words further = wrapping_sum(total, part[half][parity]);
        trouble |= ((total ^ further) & (part[half][parity] ^ further)) >> 31;
        total = further;
      }
    }
  }
  for (u32 half = 0; half < kHalves; ++half) {
    for (u32 parity = 0; parity < 2; ++parity) {
      if (kRoundsUpBeforeCutting) trouble |= magnitude_of(sum[half][parity]) > 0x7fffff00;
      const Words cut = leave_group(sum[half][parity], how.result);
      Words d = Words(Floats(cut) * Floats(scales.back[half][parity]));
      if (how.result == GroupResult::f16) d = from_half(to_half(d));
      store_words(sums.at[half][parity] + l, d);
    }
  }
}

/// The lanes whose outputs the definition has to compute.
template <u32 kHalves>
ATTEST_INLINE u32 add_groups(const MmaShape& s, const Arithmetic& how, const Planes& planes,
                             Sums& sums) {
  Groups groups;
  if (!find_groups(s, how, groups)) return kAllLanes;
  alignas(64) u32 left[kLanes];
  Words any_trouble = {};
  for (u32 l = 0; l < kLanes; l += kWidth) {
    Words trouble = {};
    s32 least = s.c == Accumulator::f16 ? -14 : -126;
    for (u32 i = 0; i < groups.count; ++i) {
      add_group<kHalves>(planes, groups.planes[i], groups.size, how, least, sums, l, trouble);
      least = s.d == Accumulator::f16 ? -14 : -126;
    }
    store_words(left + l, Words(trouble != 0));
    any_trouble |= trouble;
  }
  return any(any_trouble) ? mask_of(left) : 0;
}

/// p + c rounded once, to f16. What the sum leaves over (Knuth's TwoSum) makes its last bit odd, so
/// that rounding to f16 afterwards is the only rounding.
ATTEST_INLINE Floats sum_as_half(Floats p, Floats c) {
  const Floats s = p + c, t = s - p;
  const Floats rest = (p - (s - t)) + (c - t);
  const Words inexact = Words(rest < 0) | Words(rest > 0), bits = Words(s);
  const Words step = Words((rest > 0) == (s > 0)) & 2;
  const Words odd = bits + ((inexact & ((bits & 1) - 1)) & (step - 1));
  return Floats(from_half(to_half(odd)));
}

/// Two groups from zero, and then c.
template <u32 kHalves>
ATTEST_INLINE u32 add_pairs(const MmaShape& s, const Arithmetic& how, const Planes& planes,
                            Sums& sums) {
  if (s.c != s.d) return kAllLanes;
  Sums fresh = {};
  const u32 left = add_groups<kHalves>(s, how, planes, fresh);
  for (u32 half = 0; half < kHalves; ++half) {
    for (u32 parity = 0; parity < 2; ++parity) {
      for (u32 l = 0; l < kLanes; l += kWidth) {
        const Floats x = Floats(load_words(fresh.at[half][parity] + l));
        s32* to = sums.at[half][parity] + l;
        const Floats c = Floats(load_words(to));
        store_words(to, Words(s.d == Accumulator::f16 ? sum_as_half(x, c) : x + c));
      }
    }
  }
  return left;
}

#ifdef __FMA__
/// c + a b, rounded to the accumulator's format. Products of f16 are exact in f32.
template <bool kHalf>
ATTEST_INLINE Floats add_product(Floats a, Floats b, Floats c) {
  if constexpr (kHalf)
    return sum_as_half(a * b, c);
  else
    return multiply_add(a, b, c);
}

/// The model f32, two registers of lanes side by side.
template <u32 kHalves, bool kHalf>
ATTEST_INLINE void add_fused(const MmaShape& s, const Planes& planes, Sums& sums) {
  constexpr u32 kAtOnce = 2;
  const u32 words = s.words, per_word = s.per_word;  // read once: the sums might alias them
  for (u32 l = 0; l < kLanes; l += kAtOnce * kWidth) {
    Floats sum[kAtOnce][kHalves][2];
    for (u32 n = 0; n < kAtOnce; ++n) {
      for (u32 half = 0; half < kHalves; ++half) {
        for (u32 parity = 0; parity < 2; ++parity)
          sum[n][half][parity] = Floats(load_words(sums.at[half][parity] + l + n * kWidth));
      }
    }
    const auto add = [&](auto at_t, u32 q, u32 t) {
      for (u32 e = 0; e < per_word; ++e) {
        const u32 plane = q * per_word + e;
        const Floats even = Floats(repeat(planes.b[plane][t][0]));
        const Floats odd = Floats(repeat(planes.b[plane][t][1]));
        for (u32 n = 0; n < kAtOnce; ++n) {
          for (u32 half = 0; half < kHalves; ++half) {
            const Floats a = Floats(at_t(load_words(planes.a[plane][half] + l + n * kWidth)));
            sum[n][half][0] = add_product<kHalf>(a, even, sum[n][half][0]);
            sum[n][half][1] = add_product<kHalf>(a, odd, sum[n][half][1]);
          }
        }
      }
    };
    for (u32 q = 0; q < words; ++q) {
      add([](Words v) { return quad<0>(v); }, q, 0);
      add([](Words v) { return quad<1>(v); }, q, 1);
      add([](Words v) { return quad<2>(v); }, q, 2);
      add([](Words v) { return quad<3>(v); }, q, 3);
    }
    for (u32 n = 0; n < kAtOnce; ++n) {
      for (u32 half = 0; half < kHalves; ++half) {
        for (u32 parity = 0; parity < 2; ++parity)
          store_words(sums.at[half][parity] + l + n * kWidth, Words(sum[n][half][parity]));
      }
    }
  }
}
#endif

/// A tile in the model f32. All lanes are left where the host has no fused multiply-add.
template <u32 kHalves>
ATTEST_INLINE u32 add_fused_tile(const MmaShape& s, const Planes& planes, Sums& sums) {
#ifdef __FMA__
  if (s.d == Accumulator::f16) {
    if (s.c != Accumulator::f16) return kAllLanes;
    add_fused<kHalves, true>(s, planes, sums);
  } else {
    add_fused<kHalves, false>(s, planes, sums);
  }
  return 0;
#else
  (void)s, (void)planes, (void)sums;
  return kAllLanes;
#endif
}

}  // namespace attest::emulator::ATTEST_ISA

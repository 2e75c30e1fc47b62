// Every constant of the bounds, once, with its source. bound/README.md says where each
// enters and why; it refers to the names here and repeats no number.
#pragma once

namespace attest::bound {

/// Unit roundoff of f32 to nearest: IEEE 754-2019 section 4.3.1, p = 24.
inline constexpr double kU = 0x1p-24;

/// Smallest normal f32, IEEE 754-2019 table 3.5. Flushing a result or an operand to zero (PTX ISA,
/// `.ftz`) loses less than this.
inline constexpr double kFlush = 0x1p-126;

/// An intermediate that may reach this is taken as one that may overflow: a quarter of f32's 2^128,
/// so that neither its own rounding errors nor a factor log2(e) < 2 can carry it over.
inline constexpr double kOverflow = 0x1p126;

/// What one step of a tensor core's f32 accumulation may lose, in roundings. A step aligns up to L
/// exact products and the accumulator to the largest exponent, truncates each to F bits behind it
/// (the largest loses nothing), adds exactly and truncates the sum to 24 bits. Aligning loses L
/// units of 2^-F of the largest magnitude: (L, F) is (4, 23) on V100, (8, 24) on A100 and Ada,
/// (16, 25) on H100 and B200, 8 kU on each. Truncation loses 2^-23 of the sum, 2 kU; one more for
/// an accumulator that is added in f32. Source: Khattak and Mikaitis, arXiv:2512.07004; MMA-Sim,
/// arXiv:2511.10909. README, "Tensor cores".
inline constexpr double kAlignRoundings = 8;
inline constexpr double kTruncateRoundings = 3;
inline constexpr double kTensorStepRoundings = kAlignRoundings + kTruncateRoundings;

/// The same for 8-bit operands on Ada and Hopper: L at most 32, F = 13 and a sum truncated to 14
/// bits. Newer cores are finer. The same sources.
inline constexpr double kAlignRoundings8 = 32 * 0x1p11;
inline constexpr double kTruncateRoundings8 = 0x1p11 + 1;
inline constexpr double kTensorStepRoundings8 = kAlignRoundings8 + kTruncateRoundings8;

/// Roundings of q.k besides its own sum: fl(log2 e), its product with the scale, and the product
/// with q.k or, term by term, with q. README, step S2.
inline constexpr double kScaleRoundings = 3;

/// Roundings of a scaled cache: its scale's product with k, v, a logit, a weight or O, or with the
/// scale of the logits first. README, "Scaled caches".
inline constexpr double kCacheScaleRoundings = 2;

/// A cache's scale outside of 1 / this to this may, multiplied with the others, leave what f32
/// holds.
inline constexpr double kCacheScaleMost = 0x1p60;

/// Roundings of a number on its way into a scaled cache: of the scale, of its reciprocal, and of
/// the product with that; a division has fewer. properties/append_writes_its_slots.cpp.
inline constexpr double kQuotientRoundings = 3;

/// Roundings of each of the two products that turn a key's element, with their sum.
inline constexpr double kTurnRoundings = 2;

/// Room for terms of second order, and double's own errors, where a few roundings are counted.
inline constexpr double kRoom = 1 + 0x1p-20;

/// Roundings of the exponent that scale with its distance from the reference: fl(log2 e), its
/// product with the scale, the difference, its product with that; one more for second-order terms.
/// README, step S4.
inline constexpr double kDistanceRoundings = 5;

/// Roundings of the reference of a block when its weights use fl(m c) and rescales use m. README,
/// steps S4 and "Weights at the cast".
inline constexpr double kReferenceRoundings = 1;

/// One more where weights carry a factor 2^p_scale_log2: that may have been subtracted from fl(m
/// c).
inline constexpr double kPShiftRoundings = 1;

/// Roundings in softcap relative to min(|s|, cap): the cap to f32, on both sides (2), s / cap or
/// s * fl(1 / cap) (2), the product with the cap (1), fl(log2 e) and its product when weights are
/// powers of two (2), second-order terms (1). README, step S3.
inline constexpr double kSoftcapRoundings = 8;

/// Roundings of a bias or sink by itself: fl(log2 e) and the product with it. README, step S3.
inline constexpr double kTermRoundings = 2;

/// Roundings of ALiBi's term: the distance to f32, its product with the slope, fl(log2 e), that
/// times the scale, the product with it; the quotient of slope and scale is a declared division.
inline constexpr double kAlibiRoundings = 5;

/// The exponential, logarithm and tanh of any f32 library are within one ulp, 2 u; a declared error
/// below that is taken as that. A correctly rounded one is within u.
inline constexpr double kFaithful = 2 * kU;

/// The least error of dividing by the row sum: fl(1 / l), the product with it, and one rounding for
/// a factor that brings the accumulator to its last reference.
inline constexpr double kDivision = 3 * kU;

/// Roundings of log l: fl(ln 2), its product with log2 l, and kFaithful.
inline constexpr double kLogRoundings = 4;

/// By how much the reference that is added in the LSE may differ from the one in the exponents, in
/// roundings of itself: fl(m c), and c, fl(ln 2), their product, and its product with m; one more
/// for second-order terms. README, section LSE.
inline constexpr double kShiftRoundings = 6;

/// Roundings of the LSE by itself: the addition, fl(log2 e) and its product, one for storing it.
inline constexpr double kLseRoundings = 4;

/// Where an absolute error of a weight is divided by the row sum, the computed sum is at least a
/// half of the true one; the product with 1 + kappa needs less than another 2.
inline constexpr double kUnderflowRoom = 4;

/// The bound is evaluated in double, 2^29 times finer than f32, with up to 2^15 or so terms in a
/// sum: 2^-14 relative at the worst. This is sixteen times that.
inline constexpr double kEvaluation = 0x1p-10;

}  // namespace attest::bound

// Online softmax: a row's running maximum m, its sum of weights l, and how they end as O and LSE.
// Knows nothing of where logits come from or how weights meet V.
#pragma once
#include <cmath>

#include "optimized/kernels/attention_arguments.cuh"
#include "optimized/kernels/elements.cuh"

namespace attest::kernels {

/// exp of (z - m) units. The difference is taken before it is scaled, so that the largest weight is
/// exactly 1, whatever the size of the logits.
/// Domain: z <= m, or z = -inf. Error: two roundings of the argument, and exp2f: 2 ulp (CUDA C++
/// Programming Guide, single-precision functions; one ex2.approx.f32). Special: z = -inf gives 0
/// for every m; z = m gives 1; NaN stays NaN.
__device__ inline float weight(float z, float m, float bits_per_unit) {
  const float shift = m == -INFINITY ? 0.0F : m;  // nothing seen yet: -inf minus -inf is no number
  return exp2f((z - shift) * bits_per_unit);
}

/// How a row ends: o = acc * factor / l, and lse. `empty` rows hold `without_keys` instead.
struct RowEnd {
  float factor, l, lse, without_keys;
  bool empty;
};

/// The sink joins the denominator here, once per row, like a key with its own logit and no value.
/// Error: of lse: one rounding and that of logf or log2f (1 ulp); with a sink one more weight().
__device__ inline RowEnd finish_row(const AttentionArguments& a, int h, float m, float l) {
  RowEnd end;
  end.factor = 1.0F;
  end.without_keys = a.empty_is_nan ? __uint_as_float(0x7FC00000U) : 0.0F;
  // The largest visible key has weight 1, so l is 0 only if there is none; a NaN is not 0.
  end.empty = l == 0.0F;
  if (a.sinks != nullptr) {
    const float sink = a.sinks[h];  // in nats; with sinks the unit is 1 nat
    const float joint = fmaxf(m, sink);
    end.factor = weight(m, joint, a.bits_per_unit);
    l = l * end.factor + weight(sink, joint, a.bits_per_unit);
    m = joint;
  }
  end.l = l;
  if (l == 0.0F) {
    end.lse = a.empty_lse;
  } else if (a.base_two) {
    end.lse = fmaf(m, a.bits_per_unit, log2f(l));
  } else {
    end.lse = fmaf(m, a.nats_per_unit, logf(l));
  }
  return end;
}

/// One element of O. Division is IEEE. Adding zero turns -0 into 0: keys that a row does not see
/// have weight 0 and may otherwise move the sign of a zero.
__device__ inline float output_of(const RowEnd& end, float acc) {
  return end.empty ? end.without_keys : __fadd_rn(acc * end.factor / end.l, 0.0F);
}
__device__ inline void store_output(const AttentionArguments& a, const RowEnd& end, int64_t at,
                                    float acc) {
  store_one(a.o.format, a.o.data, at, output_of(end, acc));
}

/// Nobody may have asked for it.
__device__ inline void store_lse(const AttentionArguments& a, const RowEnd& end, int64_t at) {
  if (a.lse.data != nullptr) {
    static_cast<float*>(a.lse.data)[at] = end.lse;
  }
}

}  // namespace attest::kernels

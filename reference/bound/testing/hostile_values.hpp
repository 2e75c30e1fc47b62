// What makes values hard to compute with: changes to random values that stretch logits, cancel sums
// or leave the normal range. For the tests of this folder and of the oracle; no fill of a Case.
#pragma once
#include <algorithm>
#include <cmath>
#include <random>

#include "reference/formats.hpp"
#include "reference/values.hpp"

namespace attest {

struct HostileChange {
  const char* name;
  void (*change)(const Problem&, Values&, std::mt19937_64&);
};

inline void scale_tensor(Tensor& tensor, double factor) {
  for (Index i = 0; i < tensor.count(); ++i) tensor.set(i, tensor.at(i) * factor);
}
inline void make_positive(Tensor& tensor) {
  for (Index i = 0; i < tensor.count(); ++i) tensor.set(i, std::fabs(tensor.at(i)));
}

inline const HostileChange kHostileChanges[] = {
    {"normal", [](const Problem&, Values&, std::mt19937_64&) {}},
    {"large logits", [](const Problem&, Values& v, std::mt19937_64&) { scale_tensor(v.q, 40); }},
    {"huge logits", [](const Problem&, Values& v, std::mt19937_64&) { scale_tensor(v.q, 1e5); }},
    {"enormous logits",
     [](const Problem& p, Values& v, std::mt19937_64&) {
       if (p.input == Format::f32 || p.input == Format::bf16) scale_tensor(v.q, 1e13);
     }},
    {"one sign", [](const Problem&, Values& v, std::mt19937_64&) { make_positive(v.v); }},
    {"constant V",
     [](const Problem&, Values& v, std::mt19937_64&) {
       for (Index i = 0; i < v.v.count(); ++i) v.v.set(i, 3.25);
     }},
    {"cancelling inner products",
     [](const Problem& p, Values& v, std::mt19937_64&) {
       for (Index row = 0; row < v.k.count() / p.head_dim; ++row) {
         for (Index c = 1; c < p.head_dim; c += 2) {
           v.k.set(row * p.head_dim + c, -v.k.at(row * p.head_dim + c - 1) * (1 + 0x1p-6));
         }
       }
       for (Index i = 0; i < v.q.count(); ++i) v.q.set(i, 100.0);
     }},
    {"cancelling values",
     [](const Problem& p, Values& v, std::mt19937_64&) {
       for (Index i = p.head_dim_v; i < v.v.count(); ++i) v.v.set(i, -v.v.at(i - p.head_dim_v));
       scale_tensor(v.q, 0.01);
     }},
    {"rising maxima",
     [](const Problem& p, Values& v, std::mt19937_64&) {
       for (Index i = 0; i < v.q.count(); ++i) v.q.set(i, 1.0);
       for (Index i = 0; i < v.k.count(); ++i) {
         v.k.set(i, static_cast<double>(i / p.head_dim % std::max<Index>(1, p.seqlen_kv)));
       }
     }},
    {"logits far below",
     [](const Problem&, Values& v, std::mt19937_64&) {
       make_positive(v.q);
       make_positive(v.k);
       scale_tensor(v.q, -30);
     }},
    {"huge V",
     [](const Problem& p, Values& v, std::mt19937_64&) {
       const double factor = std::min(0x1p118, facts(cache_format(p)).max_finite / 8);
       scale_tensor(v.v, factor);
     }},
    {"subnormal V", [](const Problem& p, Values& v,
                       std::mt19937_64&) { scale_tensor(v.v, 4 * ulp(cache_format(p), 0) * 8); }},
    {"small V", [](const Problem&, Values& v, std::mt19937_64&) { scale_tensor(v.v, 1e-6); }},
    {"subnormal q", [](const Problem&, Values& v, std::mt19937_64&) { scale_tensor(v.q, 1e-39); }},
    {"f16 ties",
     [](const Problem&, Values& v, std::mt19937_64& random) {
       for (Index i = 0; i < v.v.count(); ++i) {
         v.v.set(i, static_cast<double>(random() % 3) * 0x1p-11 + 1);
       }
     }},
};

}  // namespace attest

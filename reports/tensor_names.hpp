// What a tensor file may hold: the only list of names of tensors and of entries of its metadata.
// The reader, `attest list` and README.md have it from here.
#pragma once
#include <array>
#include <string_view>

namespace attest {

struct StoredName {
  std::string_view name;
  std::string_view form;  // shapes of a tensor, B H T D as in README.md; values of an entry
  std::string_view what;
};

inline constexpr std::array kTensorNames{
    StoredName{"q", "(T,D), (H,T,D) or (B,H,T,D); rows before heads with layout=bthd", "queries"},
    StoredName{"k", "as q", "keys"},
    StoredName{"v", "as q", "values"},
    StoredName{"bias", "any that broadcasts to (B,H,Tq,Tk)", "added to the logits; finite or -inf"},
    StoredName{"mask", "any that broadcasts to (B,Tq,Tk), or (B,1,Tq,Tk)", "1 is visible, 0 not"},
    StoredName{"sinks", "(H), one per query head", "logits that join the row sum"},
    StoredName{"slopes", "(H), one per query head", "of ALiBi"},
    StoredName{"k_scales", "(1,1,1,1), (1,H,1,1) or (B,H,T,1)", "of a cache, with scales= said"},
    StoredName{"v_scales", "as k_scales", "the same of v"},
    StoredName{"q_len", "(B)", "how many queries of each batch entry exist"},
    StoredName{"kv_len", "(B)", "how many keys of each batch entry exist"},
    StoredName{"o", "as q", "somebody's answer, in F64, F32, F16 or BF16"},
    StoredName{"lse", "(B,H,Tq)", "the answer's log-sum-exp"},
    StoredName{"o_truth", "as o", "of attest oracle, F64: the truth is o_truth + o_tail"},
    StoredName{"lse_truth", "as lse", "the same of lse"},
    StoredName{"o_tail", "as o", "what is to be added to o_truth"},
    StoredName{"lse_tail", "as lse", "the same of lse"},
    StoredName{"o_radius", "as o", "the formula's value is at most that far from that sum"},
    StoredName{"lse_radius", "as lse", "the same of lse"},
};

inline constexpr std::array kMetadataNames{
    StoredName{"problem", "words of a case line", "what shapes and tensors do not say"},
    StoredName{"axes", "bhtd or bthd", "of q, k, v and o; else what the problem's layout says"},
    StoredName{"precision", "a precision line", "how the kernel that wrote o and lse rounds"},
    StoredName{"tiers", "f64=ROWS ...", "of attest oracle: what rows were computed in"},
    StoredName{"digits", "a count", "of attest oracle --digits: how many are certified"},
};

}  // namespace attest

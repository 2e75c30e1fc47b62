// page_copy: pages of a cache onto other pages, as when a sequence is forked and its last page is
// written by both, or when pages are moved together.
//
// Algorithm: one block copies one KV head of one page, k and v, in words as wide as rows and
// strides allow, up to 16 bytes. Precision path: none; bits are copied.
// Launch: 128 threads; grid.x = pairs * num_heads_kv.
// Preconditions: last strides 1; no page is written twice, and none that is written is read, so
// blocks need no order among themselves.
#include <cstdint>

#include "optimized/kernels/attention_arguments.cuh"
#include "optimized/kernels/launchers.hpp"

namespace attest::kernels {
namespace {

constexpr int kThreads = 128;

struct PageCopyArguments {
  View k;      // (pages, num_heads_kv, page_size, words of a row)
  View v;      // likewise; their strides count words
  View pairs;  // (1, 1, pairs, 2) int32
  int64_t num_heads_kv, page_size, k_words, v_words;
};

template <class Word>
__device__ void copy_page(const View& view, int from, int to, int h, int64_t slots, int64_t words) {
  auto* data = static_cast<Word*>(view.data);
  for (int64_t n = threadIdx.x; n < slots * words; n += kThreads) {
    const int64_t slot = n / words;
    const int64_t word = n % words;
    data[view.offset(to, h, slot) + word] = data[view.offset(from, h, slot) + word];
  }
}

template <class Word>
__global__ void __launch_bounds__(kThreads) page_copy(const __grid_constant__ PageCopyArguments a) {
  const int h = static_cast<int>(blockIdx.x % a.num_heads_kv);
  const int64_t pair = blockIdx.x / a.num_heads_kv;
  const int32_t* from_to = static_cast<const int32_t*>(a.pairs.data) + a.pairs.offset(0, 0, pair);
  const int from = from_to[0];
  const int to = from_to[1];
  copy_page<Word>(a.k, from, to, h, a.page_size, a.k_words);
  copy_page<Word>(a.v, from, to, h, a.page_size, a.v_words);
}

/// The lowest bit set is the widest word that divides everything that a row's place is made of.
uint64_t widths_of(const DLTensor& tensor, const View& view) {
  const uint64_t bytes = tensor.dtype.bits / 8U;
  return reinterpret_cast<uintptr_t>(view.data) | static_cast<uint64_t>(view.batch) * bytes |
         static_cast<uint64_t>(view.head) * bytes | static_cast<uint64_t>(view.row) * bytes |
         static_cast<uint64_t>(tensor.shape[3]) * bytes;
}

View in_words(const DLTensor& tensor, View view, int64_t word_bytes) {
  const int64_t bytes = tensor.dtype.bits / 8;
  view.batch = view.batch * bytes / word_bytes;
  view.head = view.head * bytes / word_bytes;
  view.row = view.row * bytes / word_bytes;
  return view;
}

template <class Word>
cudaError_t launch(const AttestPageCopy& copy, const View& k, const View& v) {
  const auto word_bytes = static_cast<int64_t>(sizeof(Word));
  PageCopyArguments a{};
  a.k = in_words(copy.k, k, word_bytes);
  a.v = in_words(copy.v, v, word_bytes);
  a.pairs = view_of(copy.pairs, -1, -1, 0);
  a.num_heads_kv = copy.k.shape[1];
  a.page_size = copy.k.shape[2];
  a.k_words = copy.k.shape[3] * (copy.k.dtype.bits / 8) / word_bytes;
  a.v_words = copy.v.shape[3] * (copy.v.dtype.bits / 8) / word_bytes;
  const int64_t blocks = copy.pairs.shape[0] * a.num_heads_kv;
  if (blocks > INT32_MAX) {
    return cudaErrorInvalidConfiguration;
  }
  page_copy<Word>
      <<<static_cast<unsigned>(blocks), kThreads, 0, static_cast<cudaStream_t>(copy.stream)>>>(a);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_page_copy(const AttestPageCopy& copy) {
  if (copy.pairs.shape[0] * copy.k.shape[1] == 0) {
    return cudaSuccess;
  }
  const View k = view_of(copy.k, 0, 1, 2);
  const View v = view_of(copy.v, 0, 1, 2);
  const uint64_t widths = widths_of(copy.k, k) | widths_of(copy.v, v);
  if (widths % 16 == 0) {
    return launch<uint4>(copy, k, v);
  }
  if (widths % 4 == 0) {
    return launch<uint32_t>(copy, k, v);
  }
  return widths % 2 == 0 ? launch<uint16_t>(copy, k, v) : launch<uint8_t>(copy, k, v);
}

}  // namespace attest::kernels

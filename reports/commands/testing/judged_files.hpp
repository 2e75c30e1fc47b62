// A file as another program would write it, byte by byte, with the answer of a small kernel. Test
// code; no program includes this.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace attest {

/// To nearest even, written here anew: the test must not share its rounding with what it tests.
inline std::uint16_t bf16_bits(float number) {
  const auto bits = std::bit_cast<std::uint32_t>(number);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}
inline float bf16(float number) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bf16_bits(number)) << 16);
}

/// Tensors of (batch 1, heads, rows, columns), and causal attention over them in f32 with P in
/// bf16, as FlashAttention computes it: blocks of keys from the last to the first.
struct Written {
  static constexpr int kHeads = 2, kQueries = 5, kKeys = 9, kHeadDim = 8, kBlock = 4;
  std::vector<float> q, k, v, o, lse;
  float scale = 1 / std::sqrt(8.0F);
  bool causal = true;
  int dropped = 0;  // keys at the end of what a row sees

  Written() {
    unsigned state = 1;
    for (auto [tensor, count] : {std::pair{&q, kHeads * kQueries}, {&k, kKeys}, {&v, kKeys}}) {
      for (int n = 0; n < count * kHeadDim; ++n) {
        state = state * 1664525U + 1013904223U;
        tensor->push_back(bf16(static_cast<float>(state >> 8) * 0x1p-22F - 2));
      }
    }
    compute();
  }

  void compute() {
    o.clear();
    lse.clear();
    for (int row = 0; row < kHeads * kQueries; ++row) {
      const int seen = causal ? row % kQueries + kKeys - kQueries + 1 : kKeys;
      attend(&q[static_cast<std::size_t>(row * kHeadDim)], seen - dropped);
    }
  }

  void attend(const float* query, int seen) {
    float max = -INFINITY, sum = 0;
    std::vector<float> acc(kHeadDim);
    for (int start = (seen - 1) / kBlock * kBlock; start >= 0; start -= kBlock) {
      const int stop = std::min(seen, start + kBlock);
      std::vector<float> s;
      float top = max;
      for (int j = start; j < stop; ++j) {
        float x = 0;
        for (int c = 0; c < kHeadDim; ++c)
          x += query[c] * k[static_cast<std::size_t>(j * kHeadDim + c)];
        s.push_back(x * scale);
        top = std::max(top, s.back());
      }
      const float rescale = std::exp(max - top);
      sum *= rescale;
      for (float& a : acc) a *= rescale;
      max = top;
      for (int j = start; j < stop; ++j) {
        const float p = std::exp(s[static_cast<std::size_t>(j - start)] - max);
        sum += p;
        for (int c = 0; c < kHeadDim; ++c) {
          acc[static_cast<std::size_t>(c)] +=
              bf16(p) * v[static_cast<std::size_t>(j * kHeadDim + c)];
        }
      }
    }
    for (const float a : acc) o.push_back(bf16(a / sum));
    lse.push_back(max + std::log(sum));
  }
};

/// A safetensors file, from the format's description: a length, JSON, bytes.
class FileWriter {
 public:
  void f32(const std::string& name, const std::string& shape, const std::vector<float>& numbers) {
    std::string bytes(numbers.size() * 4, '\0');
    std::memcpy(bytes.data(), numbers.data(), bytes.size());
    add(name, "F32", shape, bytes);
  }
  void bf16(const std::string& name, const std::string& shape, const std::vector<float>& numbers) {
    std::string bytes;
    for (const float number : numbers) {
      bytes += static_cast<char>(bf16_bits(number) & 0xff);
      bytes += static_cast<char>(bf16_bits(number) >> 8);
    }
    add(name, "BF16", shape, bytes);
  }
  void add(const std::string& name, const std::string& dtype, const std::string& shape,
           const std::string& bytes) {
    if (!header_.empty()) header_ += ",";
    header_ += "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":[" + shape +
               "],\"data_offsets\":[" + std::to_string(data_.size()) + "," +
               std::to_string(data_.size() + bytes.size()) + "]}";
    data_ += bytes;
  }
  std::string metadata = R"("format":"pt")";

  void write(const std::filesystem::path& path) const {
    const std::string header = "{\"__metadata__\":{" + metadata + "}," + header_ + "}";
    std::ofstream file(path, std::ios::binary);
    for (int i = 0; i < 8; ++i)
      file.put(static_cast<char>(std::uint64_t{header.size()} >> (8 * i)));
    file << header << data_;
  }

 private:
  std::string header_, data_;
};

inline FileWriter inputs_of(const Written& it) {
  FileWriter file;
  file.bf16("q", "1,2,5,8", it.q);
  file.bf16("k", "1,1,9,8", it.k);
  file.bf16("v", "1,1,9,8", it.v);
  return file;
}

/// Inputs, and those of o and lse that are asked for.
inline void write_answer(const std::filesystem::path& path, const Written& it, bool with_o = true,
                         bool with_lse = true, const std::string& metadata = R"("format":"pt")") {
  FileWriter file = inputs_of(it);
  file.metadata = metadata;
  if (with_o) file.bf16("o", "1,2,5,8", it.o);
  if (with_lse) file.f32("lse", "1,2,5", it.lse);
  file.write(path);
}

}  // namespace attest

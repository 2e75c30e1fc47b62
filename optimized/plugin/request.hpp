// What is sent to a worker for one call, and the tensors read back from its reply. Knows extents,
// roles and reachability of every tensor of every operation; knows no process.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "optimized/plugin/protocol.hpp"
#include "reference/subject.hpp"

namespace attest {

class RequestPlan {
 public:
  /// Throw Error when a tensor has not the extent that the Problem asks for.
  static RequestPlan attention(Operation operation, const Problem& problem, const Values& values,
                               Poison poison);
  static RequestPlan append(const Problem& problem, const CacheUpdate& update, Poison poison);
  static RequestPlan projection(const Projection& projection, Poison poison);

  std::uint64_t request_bytes() const { return request_bytes_; }
  std::uint64_t reply_bytes() const { return reply_bytes_; }

  /// Into request memory of at least request_bytes(). What was planned from must still live.
  void write(std::byte* request) const;
  /// From reply memory of at least reply_bytes(), after a call without a fault.
  Reply read(const std::byte* reply) const;

 private:
  struct Piece {
    const void* source;
    std::size_t bytes;
    std::uint64_t offset;
  };
  struct Shape {
    TensorName name;
    Element element;
    Extent4 extent;
    std::uint8_t axes;  // bit a: axis a is shown
  };

  RequestPlan(Operation operation, Poison poison);
  std::uint64_t send(const void* source, std::size_t bytes);
  TensorSpec& add(const Shape& shape, Role role);
  TensorSpec& add_input(const Shape& shape, const void* source, std::size_t bytes,
                        std::int64_t rows_sent);
  TensorSpec& add_output(const Shape& shape, Format format);
  /// A tensor of int32, one per batch entry; the offset of its payload, 0 when `lengths` is empty.
  std::uint64_t add_lengths(TensorName name, const std::vector<Index>& lengths);
  void add_optional(const Problem& problem, const Values& values);
  Tensor tensor_of(TensorName name, const std::byte* reply) const;

  Request header_{};
  std::uint64_t request_bytes_ = sizeof(Request), reply_bytes_ = sizeof(ReplyHeader);
  std::vector<Piece> pieces_;
  std::deque<std::vector<std::int32_t>> lengths_;
  Format output_ = Format::f32, input_ = Format::f32;
};

}  // namespace attest

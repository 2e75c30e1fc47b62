// What is sent to a worker for one call, and the tensors read back from its reply. Knows extents,
// roles and reachability of every tensor of every operation; knows no process.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "optimized/plugin/cache_layout.hpp"
#include "optimized/plugin/protocol.hpp"
#include "reference/subject.hpp"

namespace attest {

class RequestPlan {
 public:
  /// Throws Error when a tensor has not the extent that the Problem asks for.
  RequestPlan(const Request& request, Poison poison);

  Operation operation() const { return static_cast<Operation>(header_.operation); }

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

  void plan(const Attend& asked);
  void plan(const Append& asked);
  void plan(const Project& asked);
  void plan(const CopyPages& asked);
  std::uint64_t send(const void* source, std::size_t bytes);
  TensorSpec& add(const Shape& shape, Role role);
  TensorSpec& add_input(const Shape& shape, const void* source, std::size_t bytes,
                        std::int64_t rows_sent);
  TensorSpec& add_output(const Shape& shape, Format format);
  TensorSpec& add_in_out(const Shape& shape, const Tensor& source);
  /// A tensor of int32, one per batch entry; the offset of its payload, 0 when `lengths` is empty.
  std::uint64_t add_lengths(TensorName name, const std::vector<Index>& lengths);
  /// A tensor of its own format and extent; `axes` as in Shape.
  TensorSpec& add_whole(TensorName name, const Tensor& tensor, std::uint8_t axes);
  /// Where rows of the cache go, and, with pages, the block table. `tokens`, not empty in a ring
  /// that holds rows by their number: how many of them there are per batch entry.
  void place_cache(const Problem& problem, Index capacity, const std::vector<Index>& used,
                   std::vector<Index> tokens);
  /// k, v, or scales per token: a row per slot of a batch entry.
  TensorSpec& add_cache(TensorName name, const Tensor& rows, Role role);
  void add_scales(const Problem& problem, TensorName name, const std::optional<Tensor>& scales,
                  Index rows, Role role);
  void add_optional(const Problem& problem, const Values& values);
  /// Marks the tensors that problem.strided names.
  void leave_gaps(const Problem& problem);
  Tensor tensor_of(TensorName name, const std::byte* reply) const;

  RequestHeader header_{};
  std::uint64_t request_bytes_ = sizeof(RequestHeader), reply_bytes_ = sizeof(ReplyHeader);
  std::vector<Piece> pieces_;
  std::deque<std::vector<std::int32_t>> lengths_;
  std::deque<std::vector<std::byte>> placed_;  // caches as they lie on their pages
  std::array<Format, kTensorsMax> formats_{};  // of outputs
  struct Cache {
    CacheLayout layout;
    std::uint64_t rows_reachable = 0;
    std::vector<Index> ring_tokens;
    Index capacity = 0;
  };
  std::optional<Cache> cache_;
};

}  // namespace attest

// One call of the plugin: tensors laid out, the function called, everything examined afterwards.
// A fault of the plugin is written into the reply; only a bug of attest throws.
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "optimized/plugin/attest_subject.h"
#include "optimized/plugin/cuda_runtime.hpp"
#include "optimized/plugin/device_memory.hpp"
#include "optimized/plugin/placed_tensor.hpp"
#include "optimized/plugin/protocol.hpp"

namespace attest {

class Calls {
 public:
  /// `runtime` is nullptr for a plugin of host code.
  Calls(const AttestSubject& subject, const CudaRuntime* runtime);

  void ask_declines(const RequestHeader& request, ReplyHeader& reply) const;
  /// `reply` begins with a ReplyHeader that is all zeros.
  void run(const std::byte* request, std::byte* reply);

 private:
  struct Failure {
    std::string kind, text;
  };
  using Tensors = std::vector<std::unique_ptr<PlacedTensor>>;

  std::optional<Failure> place(const RequestHeader& request, const std::byte* bytes,
                               Tensors& tensors);
  std::optional<Failure> invoke(const RequestHeader& request, const Tensors& tensors);
  std::int32_t dispatch(const RequestHeader& request, const Tensors& tensors) const;
  std::optional<Failure> examine(const Tensors& tensors, std::byte* reply);
  DLDevice device() const;

  const AttestSubject& subject_;
  const CudaRuntime* runtime_;
  std::unique_ptr<DeviceMemory> memory_;
};

}  // namespace attest

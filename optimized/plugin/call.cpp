// Order of judgement: what a checker saw explains everything else, so it comes first; then errors
// of the runtime and of the plugin itself; then damage, which needs the memory to be examined.
#include "optimized/plugin/call.hpp"

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <new>
#include <stdexcept>

#include "optimized/emulator/own_work.hpp"
#include "optimized/plugin/far_mapping.hpp"
#include "optimized/plugin/loaded_plugin.hpp"

namespace attest {
namespace {

constexpr std::int64_t kScratchBytesMax = std::int64_t{1} << 40;  // more is a miscalculation
constexpr std::int64_t kNearBytes = std::int64_t{1} << 16;        // farther is a wild pointer

DLTensor find(const std::vector<std::unique_ptr<PlacedTensor>>& tensors, TensorName name,
              DLDevice device) {
  for (const auto& tensor : tensors) {
    if (tensor->spec().name == name) return tensor->view(device);
  }
  DLTensor absent{};
  absent.device = device;
  return absent;
}

/// A checker knows addresses, not tensors: names the one that the address in its text is near to.
std::string near_tensor(const std::string& text,
                        const std::vector<std::unique_ptr<PlacedTensor>>& tensors) {
  const std::size_t at = text.find("0x");
  std::uint64_t address = 0;
  if (at == std::string::npos) return "";
  std::from_chars(text.data() + at + 2, text.data() + text.size(), address, 16);
  const PlacedTensor* nearest = nullptr;
  std::int64_t distance = kNearBytes;
  for (const auto& tensor : tensors) {
    const std::int64_t other = tensor->distance_to(address);
    if (std::abs(other) >= std::abs(distance)) continue;
    nearest = tensor.get();
    distance = other;
  }
  if (nearest == nullptr) return "";
  const std::string name(name_of(nearest->spec().name));
  if (distance == 0) return " (inside " + name + ")";
  return " (byte " + std::to_string(std::abs(distance)) +
         (distance < 0 ? " before the first of " : " behind the last of ") + name + ")";
}

}  // namespace

Calls::Calls(const AttestSubject& subject, const CudaRuntime* runtime)
    : subject_(subject), runtime_(runtime) {
  if (subject.device_type == kDLCUDA) {
    memory_ = std::make_unique<CudaMemory>(*runtime);
  } else {
    memory_ = std::make_unique<HostMemory>();
  }
}

DLDevice Calls::device() const {
  return {static_cast<DLDeviceType>(subject_.device_type), 0};
}

void Calls::ask_declines(const RequestHeader& request, ReplyHeader& reply) const {
  reply.precision = subject_.precision;
  const bool far = (request.problem.strided & ATTEST_STRIDED_FAR) != 0;
  if (far && (!has_far_memory() || (runtime_ != nullptr && !runtime_->emulated()))) {
    reply.declined = 1;
    put_text(reply.text, "attest has no memory here for strides beyond 32 bits");
    return;
  }
  const char* reason = subject_.declines != nullptr
                           ? subject_.declines(request.operation, &request.problem)
                           : nullptr;
  if (reason != nullptr) {
    reply.declined = 1;
    put_text(reply.text, reason);
    return;
  }
  if (subject_.precision_for == nullptr) return;
  subject_.precision_for(request.operation, &request.problem, &reply.precision);
  if (const auto wrong = wrong_precision(reply.precision)) {
    reply.faulted = 1;
    put_text(reply.kind, name_of(FaultKind::refused));
    put_text(reply.text, "precision_for(): " + *wrong);
  }
}

std::optional<Calls::Failure> Calls::place(const RequestHeader& request, const std::byte* bytes,
                                           Tensors& tensors) {
  for (std::uint32_t i = 0; i < request.tensor_count; ++i) {
    const emulator::OwnWork own("laid out", "the tensors");
    tensors.push_back(
        std::make_unique<PlacedTensor>(request.tensors[i], bytes, request.poison, *memory_));
  }
  const bool attends = request.operation == ATTEST_PREFILL || request.operation == ATTEST_DECODE;
  if (attends && subject_.scratch_bytes != nullptr) {
    const std::int64_t wanted = subject_.scratch_bytes(request.operation, &request.problem);
    if (wanted < 0 || wanted > kScratchBytesMax) {
      return Failure{std::string(name_of(FaultKind::refused)),
                     "scratch_bytes() asked for " + std::to_string(wanted) + " bytes"};
    }
    if (wanted > 0) {
      TensorSpec spec{};
      spec.name = TensorName::scratch;
      // Poison of f32, where the size allows: what a subject accumulates in scratch is f32.
      spec.element = wanted % 4 == 0 ? Element::f32 : Element::u8;
      spec.role = Role::output;
      spec.axes = 1U << 3;
      spec.extent[0] = spec.extent[1] = spec.extent[2] = 1;
      spec.extent[3] = wanted / static_cast<std::int64_t>(bytes_of(spec.element));
      tensors.push_back(std::make_unique<PlacedTensor>(spec, bytes, request.poison, *memory_));
    }
  }
  for (const auto& tensor : tensors) tensor->seal(*memory_);
  return std::nullopt;
}

std::int32_t Calls::dispatch(const RequestHeader& request, const Tensors& tensors) const {
  const auto view = [&](TensorName name) { return find(tensors, name, device()); };
  if (request.operation == ATTEST_APPEND) {
    AttestAppend append{};
    append.abi_version = ATTEST_ABI_VERSION;
    append.struct_bytes = sizeof(append);
    append.k = view(TensorName::k);
    append.v = view(TensorName::v);
    append.new_k = view(TensorName::new_k);
    append.new_v = view(TensorName::new_v);
    append.cache_seqlens = view(TensorName::cache_seqlens);
    append.new_seqlens = view(TensorName::new_seqlens);
    append.problem = request.problem;
    append.block_table = view(TensorName::block_table);
    append.k_scales = view(TensorName::k_scales);
    append.v_scales = view(TensorName::v_scales);
    append.rope_cos_sin = view(TensorName::rope_cos_sin);
    return subject_.append(&append);
  }
  if (request.operation == ATTEST_PROJECTION) {
    AttestProjection projection{};
    projection.abi_version = ATTEST_ABI_VERSION;
    projection.struct_bytes = sizeof(projection);
    projection.x = view(TensorName::x);
    projection.w = view(TensorName::w);
    projection.y = view(TensorName::y);
    projection.bias = view(TensorName::bias);
    return subject_.projection(&projection);
  }
  if (request.operation == ATTEST_COPY_PAGES) {
    AttestPageCopy copy{};
    copy.abi_version = ATTEST_ABI_VERSION;
    copy.struct_bytes = sizeof(copy);
    copy.k = view(TensorName::k);
    copy.v = view(TensorName::v);
    copy.pairs = view(TensorName::pairs);
    return subject_.copy_pages(&copy);
  }
  AttestAttention attention{};
  attention.abi_version = ATTEST_ABI_VERSION;
  attention.struct_bytes = sizeof(attention);
  attention.problem = request.problem;
  attention.q = view(TensorName::q);
  attention.k = view(TensorName::k);
  attention.v = view(TensorName::v);
  attention.bias = view(TensorName::bias);
  attention.alibi_slopes = view(TensorName::slopes);
  attention.sinks = view(TensorName::sinks);
  attention.mask = view(TensorName::mask);
  attention.seqlens_q = view(TensorName::seqlens_q);
  attention.seqlens_kv = view(TensorName::seqlens_kv);
  attention.o = view(TensorName::o);
  attention.lse = view(TensorName::lse);
  attention.block_table = view(TensorName::block_table);
  attention.k_scales = view(TensorName::k_scales);
  attention.v_scales = view(TensorName::v_scales);
  const DLTensor scratch = view(TensorName::scratch);
  if (scratch.data != nullptr) {
    attention.scratch = scratch.data;
    attention.scratch_bytes = scratch.shape[0] * (scratch.dtype.bits / 8);
  }
  return request.operation == ATTEST_DECODE ? subject_.decode(&attention)
                                            : subject_.prefill(&attention);
}

std::optional<Calls::Failure> Calls::invoke(const RequestHeader& request, const Tensors& tensors) {
  std::int32_t status = 0;
  std::optional<Failure> thrown;
  errno = 0;  // so that a refused allocation can be told from an ordinary failure
  try {
    status = dispatch(request, tensors);
  } catch (const std::bad_alloc&) {
    thrown = Failure{std::string(name_of(FaultKind::memory)), "std::bad_alloc left the plugin"};
  } catch (const std::exception& error) {
    thrown = Failure{std::string(name_of(FaultKind::crashed)),
                     std::string("a C++ exception left the plugin: ") + error.what()};
  } catch (...) {
    thrown = Failure{std::string(name_of(FaultKind::crashed)), "a C++ exception left the plugin"};
  }
  const bool memory_refused = errno == ENOMEM;
  std::optional<std::string> device_error;
  if (runtime_ != nullptr) device_error = runtime_->synchronize();
  if (runtime_ != nullptr) {
    if (auto finding = runtime_->finding()) {
      return Failure{finding->kind, finding->text + near_tensor(finding->text, tensors)};
    }
  }
  if (thrown) return thrown;
  if (status != 0) {
    const char* why = subject_.last_error != nullptr ? subject_.last_error() : nullptr;
    Failure failure{std::string(name_of(memory_refused ? FaultKind::memory : FaultKind::refused)),
                    "returned " + std::to_string(status)};
    if (why != nullptr && *why != '\0') failure.text += std::string(": ") + why;
    if (memory_refused) failure.text += " (an allocation was refused)";
    return failure;
  }
  if (device_error) return Failure{std::string(name_of(FaultKind::cuda)), *device_error};
  return std::nullopt;
}

std::optional<Calls::Failure> Calls::examine(const Tensors& tensors, std::byte* reply) {
  const emulator::OwnWork own("examined", "the tensors");
  std::optional<TensorFault> worst;
  for (const auto& tensor : tensors) {
    const auto fault = tensor->examine(reply, *memory_);
    if (fault && (!worst || fault->kind < worst->kind)) worst = fault;
  }
  if (!worst) return std::nullopt;
  return Failure{std::string(name_of(worst->kind)), worst->what};
}

void Calls::run(const std::byte* request_bytes, std::byte* reply_bytes) {
  const auto& request = *reinterpret_cast<const RequestHeader*>(request_bytes);
  auto& reply = *reinterpret_cast<ReplyHeader*>(reply_bytes);
  const Counters before = runtime_ != nullptr ? runtime_->counters() : Counters{};
  std::optional<Failure> failure;
  Tensors tensors;
  if (runtime_ != nullptr) runtime_->limit_instructions(request.instruction_limit);
  try {
    failure = place(request, request_bytes, tensors);
    if (!failure) failure = invoke(request, tensors);
    if (!failure) failure = examine(tensors, reply_bytes);
  } catch (const OutOfMemory& error) {
    failure = Failure{std::string(name_of(FaultKind::memory)), error.what()};
  } catch (const std::bad_alloc&) {
    failure = Failure{std::string(name_of(FaultKind::memory)), "no memory to lay out the tensors"};
  } catch (const std::runtime_error& error) {  // of a copy: the device is beyond use
    failure = Failure{std::string(name_of(FaultKind::cuda)), error.what()};
  }
  if (runtime_ != nullptr) {
    reply.counters = difference(runtime_->counters(), before);
    put_lines(reply.kernels, runtime_->launched());
    // Before memory is given back, which a device with a sticky error would refuse.
    if (failure) runtime_->reset();
  }
  tensors.clear();
  memory_->release_all();
  if (!failure) return;
  reply.faulted = 1;
  put_text(reply.kind, failure->kind);
  put_text(reply.text, failure->text);
}

}  // namespace attest

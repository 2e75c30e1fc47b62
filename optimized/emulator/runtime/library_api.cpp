// Code that a program loads by itself: libraries from PTX text or fat binaries in memory or in a
// file, their kernels and variables.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include "optimized/emulator/fatbin/fatbin.hpp"
#include "optimized/emulator/runtime/runtime.hpp"

namespace rt = attest::emulator::runtime;
using attest::emulator::Device;
using rt::Binary;
using rt::call;
using rt::Kernel;
using rt::Runtime;

extern "C" void __cudaUnregisterFatBinary(void** handle);

namespace {

namespace fatbin = attest::emulator::fatbin;

// Of nvcc's record (fatbinary_section.h), of a container, and of machine code alone.
constexpr std::uint32_t kWrapperMagic = 0x466243b1, kContainerMagic = 0xba55ed50,
                        kElfMagic = 0x464c457f;
constexpr std::size_t kContainerHeaderBytes = 16;

/// The PTX text at `code`, which the program says is there. Throws FatbinError.
std::string ptx_at(const void* code) {
  std::uint32_t magic = 0;
  const auto* text = static_cast<const char*>(code);
  const std::size_t length = strnlen(text, sizeof magic);
  if (length == sizeof magic) std::memcpy(&magic, code, sizeof magic);
  if (magic == kElfMagic) {
    throw fatbin::FatbinError(fatbin::FatbinError::Kind::no_ptx,
                              "the library is machine code only, no PTX; load PTX or a fat binary");
  }
  if (magic != kWrapperMagic && magic != kContainerMagic) return text;
  std::span<const std::byte> container;
  if (magic == kWrapperMagic) {
    container = fatbin::container_of(code);
  } else {
    const auto* bytes = static_cast<const std::byte*>(code);
    container = {bytes, fatbin::container_bytes({bytes, kContainerHeaderBytes})};
  }
  const auto images = fatbin::read_images(container);
  return fatbin::ptx_text(fatbin::choose_ptx(images, rt::kArchitecture));
}

cudaError_t load(Runtime& runtime, cudaLibrary_t* library, const void* code) {
  if (library == nullptr || code == nullptr) return cudaErrorInvalidValue;
  auto binary = std::make_unique<Binary>();
  try {
    binary->text = ptx_at(code);
  } catch (const fatbin::FatbinError& caught) {
    rt::complain(caught.what(), "load");
    return caught.kind == fatbin::FatbinError::Kind::no_ptx ? cudaErrorNoKernelImageForDevice
                                                            : cudaErrorInvalidKernelImage;
  }
  const cudaError_t error = runtime.load(*binary);
  if (error != cudaSuccess) return error;
  Binary* handle = binary.get();
  runtime.binaries[handle] = std::move(binary);
  *library = reinterpret_cast<cudaLibrary_t>(handle);
  return cudaSuccess;
}

/// Calls `body` with a library that is loaded.
template <typename Body>
cudaError_t with_library(cudaLibrary_t library, Body body,
                         const char* function = __builtin_FUNCTION()) {
  return call(
      [&](Runtime& runtime) -> cudaError_t {
        const auto found = runtime.binaries.find(library);
        if (found == runtime.binaries.end()) return cudaErrorInvalidResourceHandle;
        return body(runtime, *found->second);
      },
      rt::AfterFault::refuses, function);
}

Kernel* kernel_of(Runtime& runtime, Binary& binary, const std::string& name) {
  for (const auto& [function, kernel] : runtime.kernels) {
    if (kernel->binary == &binary && kernel->name == name) return kernel.get();
  }
  if (!Device::instance().has_kernel(*binary.module, name)) return nullptr;
  auto kernel = std::make_unique<Kernel>();
  kernel->binary = &binary;
  kernel->name = name;
  Kernel* handle = kernel.get();
  runtime.kernel_handles.insert(handle);
  runtime.kernels[handle] = std::move(kernel);
  return handle;
}

}  // namespace

extern "C" {

cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code, cudaJitOption*, void**,
                                unsigned, cudaLibraryOption*, void**, unsigned) {
  return call([&](Runtime& runtime) { return load(runtime, library, code); });
}

cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t* library, const char* file_name, cudaJitOption*,
                                    void**, unsigned, cudaLibraryOption*, void**, unsigned) {
  return call([&](Runtime& runtime) {
    if (file_name == nullptr) return cudaErrorInvalidValue;
    std::ifstream file(file_name, std::ios::binary);
    if (!file) return cudaErrorFileNotFound;
    std::string code{std::istreambuf_iterator<char>(file), {}};
    // A container says how long it is; the file must be.
    std::uint32_t magic = 0;
    if (code.size() >= kContainerHeaderBytes) std::memcpy(&magic, code.data(), sizeof magic);
    if (magic == kWrapperMagic) return cudaErrorInvalidKernelImage;  // holds addresses
    if (magic == kContainerMagic) {
      const auto bytes = std::as_bytes(std::span(code.data(), code.size()));
      if (fatbin::container_bytes(bytes) > code.size()) return cudaErrorInvalidKernelImage;
    }
    return load(runtime, library, code.c_str());
  });
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  return with_library(library, [&](Runtime&, Binary& binary) {
    if (binary.text.empty()) return cudaErrorInvalidResourceHandle;  // nvcc's: it unloads itself
    __cudaUnregisterFatBinary(reinterpret_cast<void**>(library));
    return cudaSuccess;
  });
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
  return with_library(library, [&](Runtime& runtime, Binary& binary) {
    if (kernel == nullptr || name == nullptr) return cudaErrorInvalidValue;
    Kernel* found = kernel_of(runtime, binary, name);
    if (found == nullptr) return cudaErrorSymbolNotFound;
    *kernel = reinterpret_cast<cudaKernel_t>(found);
    return cudaSuccess;
  });
}

cudaError_t cudaLibraryGetKernelCount(unsigned* count, cudaLibrary_t library) {
  return with_library(library, [&](Runtime&, Binary& binary) {
    return rt::answer(count, Device::instance().kernel_names(*binary.module).size());
  });
}

cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t* kernels, unsigned count,
                                        cudaLibrary_t library) {
  return with_library(library, [&](Runtime& runtime, Binary& binary) {
    if (kernels == nullptr) return cudaErrorInvalidValue;
    const std::vector<std::string> names = Device::instance().kernel_names(*binary.module);
    for (std::size_t i = 0; i < std::min<std::size_t>(count, names.size()); ++i) {
      kernels[i] = reinterpret_cast<cudaKernel_t>(kernel_of(runtime, binary, names[i]));
    }
    return cudaSuccess;
  });
}

cudaError_t cudaLibraryGetGlobal(void** address, std::size_t* bytes, cudaLibrary_t library,
                                 const char* name) {
  return with_library(library, [&](Runtime&, Binary& binary) {
    if (name == nullptr) return cudaErrorInvalidValue;
    const Device::Allocation found = Device::instance().find_variable(*binary.module, name);
    if (found.base == nullptr) return cudaErrorSymbolNotFound;
    if (address != nullptr) *address = found.base;
    if (bytes != nullptr) *bytes = found.bytes;
    return cudaSuccess;
  });
}
cudaError_t cudaLibraryGetManaged(void** address, std::size_t* bytes, cudaLibrary_t library,
                                  const char* name) {
  return cudaLibraryGetGlobal(address, bytes, library, name);
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute attribute,
                                            int value, int device) {
  if (device != 0) return call([](Runtime&) { return cudaErrorInvalidDevice; });
  return cudaFuncSetAttribute(kernel, attribute, value);
}

}  // extern "C"

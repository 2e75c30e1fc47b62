// Both libraries are loaded with RTLD_GLOBAL and never unloaded. Which of the two it is shows in
// the presence of the functions of attest_emulator.h.
#include "optimized/plugin/cuda_runtime.hpp"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <vector>

#include "optimized/emulator/profile.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

template <typename Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) {
    throw Error(std::string("the CUDA runtime that was loaded has no function ") + name);
  }
}

struct Driver {
  std::string device;   // name of the first one, when usable
  std::string missing;  // why not, otherwise
};

Driver probe_driver() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (driver == nullptr) return {"", "there is no CUDA driver (libcuda.so.1) on this machine"};
  int (*init)(unsigned) = nullptr;
  int (*device_count)(int*) = nullptr;
  int (*device_name)(char*, int, int) = nullptr;
  find(driver, "cuInit", init);
  find(driver, "cuDeviceGetCount", device_count);
  find(driver, "cuDeviceGetName", device_name);
  int status = init(0);
  int count = 0;
  if (status == 0) status = device_count(&count);
  if (status != 0 || count == 0) {
    return {"", "the CUDA driver finds no usable device (status " + std::to_string(status) + ")"};
  }
  std::array<char, 128> name{};
  device_name(name.data(), static_cast<int>(name.size()) - 1, 0);
  return {name.data(), ""};
}

// Where toolkits live, beside the loader's own path.
std::vector<std::filesystem::path> toolkit_folders(unsigned major) {
  std::vector<std::filesystem::path> folders;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* home = std::getenv(variable)) folders.emplace_back(home);
  }
  folders.emplace_back("/usr/local/cuda");
  folders.emplace_back("/usr/local/cuda-" + std::to_string(major));
  std::error_code ignored;
  const std::string wanted = "cuda-" + std::to_string(major) + ".";
  for (const auto& entry : std::filesystem::directory_iterator("/usr/local", ignored)) {
    if (entry.path().filename().string().starts_with(wanted)) folders.push_back(entry.path());
  }
  return folders;
}

}  // namespace

CudaRuntime::CudaRuntime(const Choice& choice) {
  if (choice.device == DeviceChoice::emulated) {
    load_emulated(choice);
  } else {
    const Driver driver = probe_driver();
    if (driver.missing.empty()) {
      load_real(choice.major);
      numerics_ = "cuda: " + driver.device;
    } else if (choice.device == DeviceChoice::cuda) {
      throw Error("device cuda: " + driver.missing +
                  "; use --device emulated, or run on a machine with an NVIDIA driver");
    } else {
      load_emulated(choice);
    }
  }
  find(library_, "cudaMalloc", malloc_);
  find(library_, "cudaFree", free_);
  find(library_, "cudaMemcpy", memcpy_);
  find(library_, "cudaDeviceSynchronize", synchronize_);
  find(library_, "cudaGetLastError", get_last_error_);
  find(library_, "cudaGetErrorString", error_string_);
}

void CudaRuntime::load_real(unsigned major) {
  const std::string name = "libcudart.so." + std::to_string(major);
  library_ = dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL);
  for (const auto& folder : toolkit_folders(major)) {
    for (const char* inner : {"lib64", "lib", "targets/x86_64-linux/lib"}) {
      if (library_ != nullptr) return;
      library_ = dlopen((folder / inner / name).c_str(), RTLD_NOW | RTLD_GLOBAL);
    }
  }
  if (library_ == nullptr) {
    throw Error("device cuda: no " + name +
                " on the loader's path or in /usr/local/cuda; install the CUDA runtime, or set "
                "CUDA_HOME or LD_LIBRARY_PATH");
  }
}

void CudaRuntime::load_emulated(const Choice& choice) {
  const std::string name = "libcudart.so." + std::to_string(choice.major);
  const auto beside = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const auto path = beside / "emulator" / name;
  library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library_ == nullptr) {
    throw Error("the emulator offers no " + name + " (" + dlerror() +
                "); build the plugin with CUDA 12 or 13");
  }
  find(library_, "attest_emulator_configure", configure_);
  find(library_, "attest_emulator_restrict", restrict_);
  find(library_, "attest_emulator_unwritten", unwritten_);
  find(library_, "cudaHostRegister", register_);
  find(library_, "cudaHostUnregister", unregister_);
  find(library_, "attest_emulator_finding_count", finding_count_);
  find(library_, "attest_emulator_finding_kind", finding_kind_);
  find(library_, "attest_emulator_finding_text", finding_text_);
  find(library_, "attest_emulator_reset", reset_);
  find(library_, "attest_emulator_counts", counts_);
  find(library_, "attest_emulator_totals", totals_);
  find(library_, "attest_emulator_profile", profile_);
  find(library_, "attest_emulator_launched", launched_);
  find(library_, "attest_emulator_limit", limit_);
  find(library_, "attest_emulator_load_error", load_error_);
  find(library_, "attest_emulator_own_fault", own_fault_);
  configure(choice.emulator);
}

void CudaRuntime::configure(const std::string& text) {
  if (const char* problem = configure_(text.c_str())) throw Error(problem);
  std::string ignored;
  const emulator::DeviceOptions options = *emulator::parse_options(text, ignored);
  numerics_ = "emulated: " + print(options.numerics);
  setting_ = "under numerics " + print(options.numerics) + ", schedule " +
             std::to_string(options.schedule) + ", checks " + print(options.checks);
}

std::optional<std::string> CudaRuntime::load_error() const {
  const char* text = load_error_ != nullptr ? load_error_() : nullptr;
  return text != nullptr ? std::optional<std::string>(text) : std::nullopt;
}

void CudaRuntime::copy(void* target, const void* source, std::size_t bytes,
                       Direction direction) const {
  const int status = memcpy_(target, source, bytes, static_cast<int>(direction));
  if (status != 0) throw std::runtime_error(std::string("cudaMemcpy: ") + error_string_(status));
}

void CudaRuntime::restrict_access(void* begin, std::size_t bytes) const {
  if (restrict_(begin, bytes) != 0 && bytes != 0) {
    throw std::runtime_error("the emulator does not know an allocation that it made");
  }
}

void CudaRuntime::register_host(void* begin, std::size_t bytes) const {
  if (const int status = register_(begin, bytes, 0)) {
    throw std::runtime_error(std::string("cudaHostRegister: ") + error_string_(status));
  }
}

std::optional<std::string> CudaRuntime::synchronize() const {
  const int finished = synchronize_();
  const int launched = get_last_error_();  // a launch that failed, which the plugin did not look at
  if (finished != 0) return std::string("cudaDeviceSynchronize: ") + error_string_(finished);
  if (launched != 0) return std::string("cudaGetLastError: ") + error_string_(launched);
  return std::nullopt;
}

std::optional<CudaRuntime::Finding> CudaRuntime::finding() const {
  const std::uint32_t count = emulated() ? finding_count_() : 0;
  if (count == 0) return std::nullopt;
  Finding finding{finding_kind_(0), finding_text_(0)};
  if (count > 1) finding.text += " (and " + std::to_string(count - 1) + " more)";
  finding.text += "; " + setting_;
  return finding;
}

void CudaRuntime::reset() const {
  if (emulated()) reset_();
}

Counters difference(const Counters& after, const Counters& before) {
  Counters d;
  for (const CounterColumn& column : kCounterColumns)
    d.*column.value = after.*column.value - before.*column.value;
  return d;
}

Counters CudaRuntime::counters() const {
  if (!emulated()) return {};
  std::uint64_t launches = 0, warp_instructions = 0;
  counts_(&launches, &warp_instructions);
  const auto columns = emulator::total_columns();
  std::vector<std::uint64_t> values(columns.size());
  totals_(values.data(), static_cast<std::uint32_t>(values.size()));
  emulator::Totals t;
  for (std::size_t i = 0; i < columns.size(); ++i) t.*columns[i].value = values[i];
  const auto number = [](std::uint64_t count) { return static_cast<std::int64_t>(count); };
  return {.launches = number(launches),
          .warp_instructions = number(warp_instructions),
          .f32_flops = number(t.f32_flops),
          .f16_flops = number(t.f16_flops),
          .f64_flops = number(t.f64_flops),
          .tensor_flops = number(t.tensor_flops),
          .special_operations = number(t.special_operations),
          .integer_operations = number(t.integer_operations),
          .global_read_bytes = number(t.global_read_bytes),
          .global_written_bytes = number(t.global_written_bytes),
          .global_sectors = number(t.global_sectors),
          .shared_bytes = number(t.shared_bytes),
          .bank_conflicts = number(t.shared_passes - t.shared_passes_least),
          .local_bytes = number(t.local_bytes),
          .barriers = number(t.barriers),
          .divergent_branches = number(t.divergent_branches)};
}

std::string CudaRuntime::launched() const {
  return emulated() ? launched_() : "";
}

void CudaRuntime::limit_instructions(std::uint64_t per_launch) const {
  if (emulated()) limit_(per_launch);
}

std::string CudaRuntime::kernel_profile() const {
  if (!emulated()) return {};
  std::string problem;
  auto profile = emulator::parse_profile(profile_(), problem);
  if (!profile) return problem;
  for (emulator::KernelProfile& kernel : *profile) kernel.lines.clear();
  return emulator::print(*profile);
}

}  // namespace attest

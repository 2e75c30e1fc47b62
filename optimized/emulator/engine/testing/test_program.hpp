// What the tests of the engine share: a program compiled from programs/programs.cu, buffers that
// tests fill and read like arrays, and launches in one line. Test code only.
#pragma once
#include <cstdlib>
#include <fstream>
#include <memory>
#include <ostream>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "optimized/emulator/device.hpp"

namespace attest::emulator {

inline std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Device memory that is freed again.
template <class T>
class Buffer {
 public:
  explicit Buffer(std::size_t count, T fill = T{})
      : size_(count), data_(static_cast<T*>(Device::instance().allocate(count * sizeof(T)))) {
    std::fill(begin(), end(), fill);
    Device::instance().mark_written(data_, count * sizeof(T));
  }
  Buffer(std::initializer_list<T> values) : Buffer(values.size()) {
    std::copy(values.begin(), values.end(), begin());
  }
  ~Buffer() { Device::instance().release(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  T& operator[](std::size_t i) { return data_[i]; }
  T* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::vector<T> values() const { return {data_, data_ + size_}; }

 private:
  std::size_t size_;
  T* data_;
};

struct Shape {
  Dim3 grid{1, 1, 1}, block{1, 1, 1};
  std::uint32_t shared = 0;
  bool cooperative = false;
};

class TestProgram {
 public:
  explicit TestProgram(std::string_view ptx) : module_(Device::instance().load(ptx)) {}

  template <class... Arguments>
  Device::Status run(const std::string& kernel, const Shape& shape, Arguments... arguments) {
    void* pointers[sizeof...(arguments) + 1] = {static_cast<void*>(&arguments)...};
    return Device::instance().launch(
        *module_, kernel, {shape.grid, shape.block, shape.shared, pointers, shape.cooperative});
  }
  /// Runs a kernel in which there is nothing to find. What was found, or empty.
  template <class... Arguments>
  std::string complaint(const std::string& kernel, const Shape& shape, Arguments... arguments) {
    const std::string fault = trouble(kernel, shape, arguments...);
    const auto& findings = Device::instance().findings();
    if (!fault.empty() || findings.empty()) return fault;
    return kernel + ": " + findings[0].kind + ": " + findings[0].what;
  }
  /// Runs a kernel that must not fault. What went wrong, or empty.
  template <class... Arguments>
  std::string trouble(const std::string& kernel, const Shape& shape, Arguments... arguments) {
    if (run(kernel, shape, arguments...) == Device::Status::ok) return {};
    const auto& findings = Device::instance().findings();
    return kernel + ": " +
           (findings.empty() ? "refused" : findings[0].kind + ": " + findings[0].what);
  }
  LoadedModule& module() { return *module_; }

 private:
  std::shared_ptr<LoadedModule> module_;
};

/// One way in which the engine executes an instruction: an instruction set of the host, and what
/// looks at its accesses.
struct Way {
  const char* isa;
  const char* watched;  // bare, initcheck, racecheck, checked, counted
};

/// Every instruction behaves the same in each of them.
inline const std::vector<Way>& every_way() {
  static const std::vector<Way> all = [] {
    std::vector<Way> ways;
    for (const char* isa : {"baseline", "avx2", "avx512"}) {
      for (const char* watched : {"bare", "initcheck", "racecheck", "checked", "counted"})
        ways.push_back({isa, watched});
    }
    return ways;
  }();
  return all;
}
inline std::string print(const Way& way) {
  return std::string(way.isa) + "_" + way.watched;
}
inline void PrintTo(const Way& way, std::ostream* to) {
  *to << print(way);
}

/// From now on launches go that way.
inline void choose(const Way& way, DeviceOptions options = {}) {
  const std::string_view watched = way.watched;
  const bool checked = watched == "checked";
  options.checks = {checked, checked || watched == "initcheck", checked || watched == "racecheck"};
  options.counters = watched == "counted";
  setenv("ATTEST_ISA", way.isa, 1);
  Device::instance().reset_findings();
  Device::instance().configure(options);
}

/// Runs each test body for every instruction set of the host.
inline void choose(const char* isa, unsigned threads = 1) {
  setenv("ATTEST_ISA", isa, 1);
  Device::instance().reset_findings();
  Device::instance().configure({.threads = threads});
}

}  // namespace attest::emulator

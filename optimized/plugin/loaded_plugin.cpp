// Every field of the table that attest relies on is checked here, once.
#include "optimized/plugin/loaded_plugin.hpp"

#include <dlfcn.h>

#include <string>

#include "optimized/plugin/abi.hpp"
#include "reference/precision_text.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

std::string in(const std::filesystem::path& path) {
  return "plugin " + path.string() + ": ";
}

const std::string kRebuild =
    "; rebuild it with this attest_subject.h (version 3 renamed fields: depth is head_dim, keys is "
    "seqlen_kv, block is kv_block; README.md of optimized/plugin/ lists them)";

void check_table(const AttestSubject& subject, const std::filesystem::path& path,
                 const CudaRuntime* runtime) {
  if (subject.abi_version != ATTEST_ABI_VERSION) {
    throw Error(in(path) + "its table has ABI version " + std::to_string(subject.abi_version) +
                ", this attest serves " + std::to_string(ATTEST_ABI_VERSION) + kRebuild);
  }
  if (subject.struct_bytes < sizeof(AttestSubject)) {
    throw Error(in(path) + "its table says struct_bytes = " + std::to_string(subject.struct_bytes) +
                ", less than the " + std::to_string(sizeof(AttestSubject)) +
                " of this version; set it to sizeof(AttestSubject)");
  }
  if (subject.device_type != kDLCPU && subject.device_type != kDLCUDA) {
    throw Error(in(path) + "device_type " + std::to_string(subject.device_type) +
                " is neither kDLCPU nor kDLCUDA");
  }
  if (subject.device_type == kDLCUDA && runtime == nullptr) {
    throw Error(in(path) +
                "device_type is kDLCUDA, but the library needs no libcudart.so; link "
                "with nvcc -cudart shared");
  }
  if (subject.prefill == nullptr && subject.decode == nullptr && subject.append == nullptr &&
      subject.projection == nullptr && subject.copy_pages == nullptr) {
    throw Error(in(path) + "its table offers no operation");
  }
  if (const auto wrong = wrong_precision(subject.precision)) throw Error(in(path) + *wrong);
}

}  // namespace

std::optional<std::string> wrong_precision(const AttestPrecision& precision) {
  if (precision.struct_bytes < sizeof(AttestPrecision)) {
    return "precision.struct_bytes is " + std::to_string(precision.struct_bytes) +
           ", less than the " + std::to_string(sizeof(AttestPrecision)) + " of this version";
  }
  if (precision.p_format > ATTEST_E5M2) {
    return "precision.p_format " + std::to_string(precision.p_format) +
           " is no format; use ATTEST_F32 to ATTEST_E5M2";
  }
  if (precision.interleaved_accumulators < 0 || precision.partial_row_sums < 0) {
    return "precision.interleaved_accumulators or partial_row_sums is negative; 0 is 1";
  }
  const std::string wrong = precision_invalidity(precision_path(precision));
  if (!wrong.empty()) return "precision." + wrong;
  return std::nullopt;
}

const AttestSubject& load_plugin(const std::filesystem::path& path, const CudaRuntime* runtime) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    throw Error(in(path) + "the loader refused it: " + (why != nullptr ? why : "no reason given"));
  }
  const auto subject_of =
      reinterpret_cast<AttestSubjectFunction>(dlsym(library, ATTEST_SUBJECT_SYMBOL));
  if (subject_of == nullptr) {
    throw Error(in(path) + "it exports no attest_subject(); declare it extern \"C\" and visible");
  }
  if (runtime != nullptr) {
    if (const auto why = runtime->load_error()) throw Error(in(path) + *why);
  }
  const AttestSubject* subject = subject_of(ATTEST_ABI_VERSION);
  if (subject == nullptr) {
    throw Error(in(path) + "attest_subject(" + std::to_string(ATTEST_ABI_VERSION) +
                ") returned NULL: it does not serve this ABI version" + kRebuild);
  }
  check_table(*subject, path, runtime);
  return *subject;
}

void describe(const AttestSubject& subject, const CudaRuntime* runtime, ReplyHeader& reply) {
  put_text(reply.name, subject.name != nullptr ? subject.name : "");
  put_text(reply.numerics, subject.device_type == kDLCPU ? "host" : runtime->numerics());
  reply.promises = subject.promises;
  reply.offers = (subject.prefill != nullptr ? 1U << ATTEST_PREFILL : 0) |
                 (subject.decode != nullptr ? 1U << ATTEST_DECODE : 0) |
                 (subject.append != nullptr ? 1U << ATTEST_APPEND : 0) |
                 (subject.projection != nullptr ? 1U << ATTEST_PROJECTION : 0) |
                 (subject.copy_pages != nullptr ? 1U << ATTEST_COPY_PAGES : 0);
  reply.counts = subject.device_type == kDLCUDA && runtime->emulated() ? 1 : 0;
  reply.on_gpu = subject.device_type == kDLCUDA && !runtime->emulated() ? 1 : 0;
  reply.precision = subject.precision;
}

}  // namespace attest

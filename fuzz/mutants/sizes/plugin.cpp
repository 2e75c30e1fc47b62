// A plugin that is our kernels but for one mistake at one size: host code only, which hands each
// request on to attest_kernels.so. Which mutant of the table it is follows from the name of its own
// file, so that one library, copied, is all of them.
#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "fuzz/mutants/sizes/table.hpp"

namespace attest::sizes {
namespace {

/// The file that this code lies in.
std::filesystem::path own_file() {
  Dl_info info{};
  dladdr(reinterpret_cast<const void*>(&own_file), &info);
  return info.dli_fname;
}

/// Null: it was not built, or not beside us.
const AttestSubject* our_kernels() {
  static const AttestSubject* const subject = []() -> const AttestSubject* {
    const auto path = own_file().parent_path() / "../../plugins/attest_kernels.so";
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return nullptr;
    const auto found =
        reinterpret_cast<AttestSubjectFunction>(dlsym(library, ATTEST_SUBJECT_SYMBOL));
    return found(ATTEST_ABI_VERSION);
  }();
  return subject;
}

const Mutant* this_mutant() {
  static const Mutant* const mutant = [] {
    const auto at = std::ranges::find(kMutants, own_file().stem().string(), &Mutant::name);
    return at == std::end(kMutants) ? nullptr : &*at;
  }();
  return mutant;
}

bool is_16_bit(uint32_t format) {
  return format == ATTEST_F16 || format == ATTEST_BF16;
}

Sizes sizes_of(const AttestProblem& p) {
  Sizes s;
  s.batch = p.batch;
  s.num_heads_kv = p.num_heads_kv;
  s.group = p.num_heads_q / p.num_heads_kv;
  s.head_dim = p.head_dim;
  s.head_dim_v = p.head_dim_v;
  s.page_size = p.page_size;
  s.seqlen_q = p.seqlen_q;
  s.seqlen_kv = p.seqlen_kv;
  s.rows = p.batch * p.num_heads_q * p.seqlen_q;
  s.capacity = p.capacity;
  return s;
}

/// Which of our kernels serves is decided by optimized/kernels/launchers.hpp, here by the Problem
/// alone: where rows are not aligned the other one does.
Sizes sizes_of(const AttestAttention& a, bool decode) {
  const AttestProblem& p = a.problem;
  Sizes s = sizes_of(p);
  s.full = a.seqlens_kv.data == nullptr;
  const bool eights = is_16_bit(p.input) && p.head_dim % 8 == 0 && p.head_dim_v % 8 == 0;
  const bool cached = p.cache == p.input || p.cache >= ATTEST_E4M3;
  s.simt = !eights || (decode && (s.group < 4 || !cached));
  return s;
}

Sizes sizes_of(const AttestAppend& append) {
  Sizes s = sizes_of(append.problem);
  s.rows = append.new_k.shape[2];
  return s;
}

Sizes sizes_of(const AttestPageCopy& copy) {
  Sizes s;
  s.num_heads_kv = copy.k.shape[1];
  s.page_size = copy.k.shape[2];
  s.head_dim = copy.k.shape[3];
  s.head_dim_v = copy.v.shape[3];
  return s;
}

Sizes sizes_of(const AttestProjection& projection) {
  Sizes s;
  s.batch = projection.x.shape[0];
  s.seqlen_q = projection.x.shape[1];
  s.head_dim = projection.x.shape[2];
  s.seqlen_kv = projection.w.shape[1];
  return s;
}

template <class Request>
int32_t done(uint32_t operation, const Request& request, const Sizes& sizes,
             Operation<Request> run) {
  const Mutant& mutant = *this_mutant();
  if (mutant.operation != operation || !mutant.at(sizes)) return run(&request);
  return std::get<Mistake<Request>>(mutant.mistake)(request, run);
}

int32_t prefill(const AttestAttention* a) {
  return done(ATTEST_PREFILL, *a, sizes_of(*a, false), our_kernels()->prefill);
}
int32_t decode(const AttestAttention* a) {
  return done(ATTEST_DECODE, *a, sizes_of(*a, true), our_kernels()->decode);
}
int32_t append(const AttestAppend* a) {
  return done(ATTEST_APPEND, *a, sizes_of(*a), our_kernels()->append);
}
int32_t copy_pages(const AttestPageCopy* a) {
  return done(ATTEST_COPY_PAGES, *a, sizes_of(*a), our_kernels()->copy_pages);
}
int32_t project(const AttestProjection* a) {
  return done(ATTEST_PROJECTION, *a, sizes_of(*a), our_kernels()->projection);
}

}  // namespace
}  // namespace attest::sizes

extern "C" __attribute__((visibility("default"))) const AttestSubject* attest_subject(
    uint32_t abi_version) {
  namespace sizes = attest::sizes;
  if (abi_version != ATTEST_ABI_VERSION || sizes::our_kernels() == nullptr ||
      sizes::this_mutant() == nullptr) {
    return nullptr;
  }
  static const AttestSubject subject = [] {
    AttestSubject made = *sizes::our_kernels();
    made.name = sizes::this_mutant()->name.data();
    made.prefill = sizes::prefill;
    made.decode = sizes::decode;
    made.append = sizes::append;
    made.projection = sizes::project;
    made.copy_pages = sizes::copy_pages;
    return made;
  }();
  return &subject;
}

// One function per operation, in the order of the structs of attest_subject.h.
#include "optimized/plugin/request.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "optimized/plugin/abi.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

// Which of the four axes a plugin sees.
constexpr std::uint8_t kAllAxes = 0b1111;
constexpr std::uint8_t kWithoutHead = 0b1101;    // (batch, row, column)
constexpr std::uint8_t kWithoutColumn = 0b0111;  // (batch, head, row)
constexpr std::uint8_t kMatrix = 0b1100;         // (row, column)
constexpr std::uint8_t kBatchOnly = 0b0001;
constexpr std::uint8_t kHeadOnly = 0b0010;
constexpr std::uint8_t kBatchAndColumn = 0b1001;
constexpr std::uint8_t kColumnOnly = 0b1000;

std::string print(const Extent4& extent) {
  std::string text;
  for (const Index length : extent) {
    if (!text.empty()) text += 'x';
    text += std::to_string(length);
  }
  return text;
}

void demand(const Tensor& tensor, const Extent4& extent, TensorName name) {
  const std::size_t bytes =
      static_cast<std::size_t>(tensor.count()) * bytes_of(element_of(tensor.format));
  if (tensor.extent == extent && tensor.bytes.size() == bytes) return;
  throw Error("tensor " + std::string(name_of(name)) + " has extent " + print(tensor.extent) +
              ", the problem asks for " + print(extent));
}

std::size_t bytes_of_extent(const Extent4& extent, Element element) {
  std::size_t bytes = bytes_of(element);
  for (const Index length : extent) bytes *= static_cast<std::size_t>(length);
  return bytes;
}

}  // namespace

RequestPlan::RequestPlan(const Request& request, Poison poison) {
  header_.operation = static_cast<std::uint32_t>(operation_of(request));
  header_.poison = poison;
  std::visit([this](const auto& asked) { plan(asked); }, request);
}

std::uint64_t RequestPlan::send(const void* source, std::size_t bytes) {
  const std::uint64_t offset =
      (request_bytes_ + kPayloadAlignment - 1) / kPayloadAlignment * kPayloadAlignment;
  pieces_.push_back({source, bytes, offset});
  request_bytes_ = offset + bytes;
  return offset;
}

TensorSpec& RequestPlan::add(const Shape& shape, Role role) {
  TensorSpec& spec = header_.tensors[header_.tensor_count++];
  spec.name = shape.name;
  spec.element = shape.element;
  spec.role = role;
  spec.axes = shape.axes;
  for (std::size_t axis = 0; axis < 4; ++axis) spec.extent[axis] = shape.extent[axis];
  spec.rows_sent = shape.extent[2];
  return spec;
}

TensorSpec& RequestPlan::add_input(const Shape& shape, const void* source, std::size_t bytes,
                                   std::int64_t rows_sent) {
  TensorSpec& spec = add(shape, Role::input);
  spec.rows_sent = rows_sent;
  spec.payload = send(source, bytes);
  return spec;
}

TensorSpec& RequestPlan::add_output(const Shape& shape, Format format) {
  formats_[header_.tensor_count] = format;
  TensorSpec& spec = add(shape, Role::output);
  spec.answer = (reply_bytes_ + kPayloadAlignment - 1) / kPayloadAlignment * kPayloadAlignment;
  reply_bytes_ = spec.answer + bytes_of_extent(shape.extent, element_of(format));
  return spec;
}

TensorSpec& RequestPlan::add_in_out(const Shape& shape, const Tensor& source) {
  TensorSpec& spec = add_output(shape, source.format);
  spec.role = Role::in_out;
  spec.payload = send(source.bytes.data(), source.bytes.size());
  return spec;
}

TensorSpec& RequestPlan::add_whole(TensorName name, const Tensor& tensor, std::uint8_t axes) {
  demand(tensor, tensor.extent, name);
  return add_input({name, element_of(tensor.format), tensor.extent, axes}, tensor.bytes.data(),
                   tensor.bytes.size(), tensor.extent[2]);
}

std::uint64_t RequestPlan::add_lengths(TensorName name, const std::vector<Index>& lengths) {
  if (lengths.empty()) return 0;
  std::vector<std::int32_t>& numbers = lengths_.emplace_back();
  for (const Index length : lengths) numbers.push_back(static_cast<std::int32_t>(length));
  const Extent4 extent{static_cast<Index>(numbers.size()), 1, 1, 1};
  return add_input({name, Element::i32, extent, kBatchOnly}, numbers.data(),
                   numbers.size() * sizeof(std::int32_t), 1)
      .payload;
}

void RequestPlan::add_optional(const Problem& problem, const Values& values) {
  const Extent4 scores{problem.batch, problem.num_heads_q, problem.seqlen_q, problem.seqlen_kv};
  const Extent4 per_head{1, 1, 1, problem.num_heads_q};
  const auto send_f32 = [this](TensorName name, const std::optional<Tensor>& tensor,
                               const Extent4& extent, std::uint8_t axes) -> TensorSpec& {
    if (!tensor) {
      throw Error("the problem asks for " + std::string(name_of(name)) + ", the values have none");
    }
    demand(*tensor, extent, name);
    return add_input({name, element_of(tensor->format), extent, axes}, tensor->bytes.data(),
                     tensor->bytes.size(), extent[2]);
  };
  if (problem.bias) send_f32(TensorName::bias, values.bias, scores, kAllAxes);
  if (problem.alibi) send_f32(TensorName::slopes, values.alibi_slopes, per_head, kColumnOnly);
  if (problem.sinks) send_f32(TensorName::sinks, values.sinks, per_head, kColumnOnly);
  if (!problem.mask) return;
  const Extent4 extent{problem.batch, 1, problem.seqlen_q, problem.seqlen_kv};
  const std::size_t bytes = bytes_of_extent(extent, Element::u8);
  if (!values.mask || values.mask->visible.size() != bytes) {
    throw Error("the problem asks for a mask, and the values hold none of its extent");
  }
  add_input({TensorName::mask, Element::u8, extent, kWithoutHead}, values.mask->visible.data(),
            bytes, problem.seqlen_q);
}

void RequestPlan::place_cache(const Problem& problem, Index capacity,
                              const std::vector<Index>& used, std::vector<Index> tokens) {
  Cache& cache = cache_.emplace();
  cache.layout = cache_layout(problem, capacity, used);
  cache.capacity = capacity;
  cache.ring_tokens = std::move(tokens);
  const CacheLayout& layout = cache.layout;
  const auto send_limits = [this](const std::vector<std::int32_t>& limits) {
    const auto& kept = lengths_.emplace_back(limits);
    return send(kept.data(), kept.size() * sizeof(std::int32_t));
  };
  cache.rows_reachable = send_limits(layout.rows);
  if (layout.page_size == 0) return;
  const auto& table = lengths_.emplace_back(layout.table);
  const Extent4 extent{layout.entries, 1, 1, layout.table_width};
  TensorSpec& spec = add_input({TensorName::block_table, Element::i32, extent, kBatchAndColumn},
                               table.data(), table.size() * sizeof(std::int32_t), 1);
  spec.columns_reachable = send_limits(layout.pages);
}

TensorSpec& RequestPlan::add_cache(TensorName name, const Tensor& rows, Role role) {
  demand(rows, rows.extent, name);
  const CacheLayout& layout = cache_->layout;
  const Index heads = rows.extent[1], tokens = rows.extent[2], width = rows.extent[3];
  const std::size_t row_bytes = bytes_of_extent({1, 1, 1, width}, element_of(rows.format));
  const bool scales = name == TensorName::k_scales || name == TensorName::v_scales;
  const Shape shape{name,
                    element_of(rows.format),
                    {layout.blocks, heads, layout.slots, width},
                    scales ? kWithoutColumn : kAllAxes};
  TensorSpec& spec = role == Role::input ? add(shape, role) : add_output(shape, rows.format);
  spec.role = role;
  spec.rows_reachable = cache_->rows_reachable;
  const bool ring = !cache_->ring_tokens.empty();
  if (layout.page_size == 0 && !ring) {
    spec.rows_sent = tokens;
    spec.payload = send(rows.bytes.data(), rows.bytes.size());
    return spec;
  }
  placed_.push_back(ring ? onto_ring(layout.slots, cache_->ring_tokens, heads, tokens, row_bytes,
                                     rows.bytes.data())
                         : onto_pages(layout, heads, tokens, row_bytes, rows.bytes.data()));
  spec.rows_sent = layout.slots;
  spec.payload = send(placed_.back().data(), placed_.back().size());
  return spec;
}

void RequestPlan::add_scales(const Problem& problem, TensorName name,
                             const std::optional<Tensor>& scales, Index rows, Role role) {
  if (problem.scales == Scales::none) return;
  if (!scales) {
    throw Error("the problem asks for " + std::string(name_of(name)) + ", none were given");
  }
  demand(*scales, scales_extent(problem, rows), name);
  if (problem.scales == Scales::token) {
    add_cache(name, *scales, role);
  } else {
    add_whole(name, *scales, problem.scales == Scales::head ? kHeadOnly : kColumnOnly);
  }
}

void RequestPlan::plan(const Attend& asked) {
  const Problem& problem = asked.problem;
  const Values& values = asked.values;
  header_.problem = abi_problem(problem);
  const Index capacity = header_.problem.capacity;
  const Extent4 q{problem.batch, problem.num_heads_q, problem.seqlen_q, problem.head_dim};
  demand(values.q, q, TensorName::q);
  demand(values.k, {problem.batch, problem.num_heads_kv, problem.seqlen_kv, problem.head_dim},
         TensorName::k);
  demand(values.v, {problem.batch, problem.num_heads_kv, problem.seqlen_kv, problem.head_dim_v},
         TensorName::v);
  std::vector<Index> tokens = problem.seqlens_kv;
  if (tokens.empty()) tokens.assign(static_cast<std::size_t>(problem.batch), problem.seqlen_kv);
  std::vector<Index> used = tokens;
  for (Index& rows : used) rows = std::min(rows, capacity);
  place_cache(problem, capacity, used, problem.ring > 0 ? tokens : std::vector<Index>{});
  add_whole(TensorName::q, values.q, kAllAxes);
  add_cache(TensorName::k, values.k, Role::input);
  add_cache(TensorName::v, values.v, Role::input);
  add_scales(problem, TensorName::k_scales, values.k_scales, problem.seqlen_kv, Role::input);
  add_scales(problem, TensorName::v_scales, values.v_scales, problem.seqlen_kv, Role::input);
  add_optional(problem, values);
  const std::uint64_t queries = add_lengths(TensorName::seqlens_q, problem.seqlens_q);
  const std::uint64_t keys = add_lengths(TensorName::seqlens_kv, problem.seqlens_kv);
  add_output({TensorName::o,
              element_of(problem.output),
              {problem.batch, problem.num_heads_q, problem.seqlen_q, problem.head_dim_v},
              kAllAxes},
             problem.output);
  if (wants_lse(problem)) {
    add_output({TensorName::lse,
                Element::f32,
                {problem.batch, problem.num_heads_q, problem.seqlen_q, 1},
                kWithoutColumn},
               Format::f32);
  }
  for (std::uint32_t i = 0; i < header_.tensor_count; ++i) {
    TensorSpec& spec = header_.tensors[i];
    const bool scores = spec.name == TensorName::bias || spec.name == TensorName::mask;
    const bool queried = scores || spec.name == TensorName::q || spec.name == TensorName::o ||
                         spec.name == TensorName::lse;
    const bool cached = spec.name == TensorName::k || spec.name == TensorName::v;
    if (queried) spec.rows_reachable = queries;
    if (scores) spec.columns_reachable = keys;
    spec.heads_inside_rows = problem.layout == Layout::bthd &&
                             (cached || spec.name == TensorName::q || spec.name == TensorName::o);
  }
  leave_gaps(problem);
}

void RequestPlan::plan(const Append& asked) {
  const Problem& problem = asked.problem;
  const CacheUpdate& update = asked.update;
  header_.problem = abi_problem(problem);
  const Index capacity = update.k.extent[2];
  header_.problem.capacity = capacity;
  const auto batch = static_cast<std::size_t>(update.k.extent[0]);
  if (update.cache_seqlens.size() != batch || update.new_seqlens.size() != batch) {
    throw Error("append needs one length and one new length per batch entry");
  }
  place_cache(problem, capacity, std::vector<Index>(batch, capacity), {});
  add_lengths(TensorName::cache_seqlens, update.cache_seqlens);
  const std::uint64_t rows = add_lengths(TensorName::new_seqlens, update.new_seqlens);
  const bool heads_inside_rows = problem.layout == Layout::bthd;
  // What of the cache may be written, of all that an entry has room for, is for a property to
  // judge.
  for (const auto& [name, tensor] :
       {std::pair(TensorName::k, &update.k), std::pair(TensorName::v, &update.v)}) {
    add_cache(name, *tensor, Role::in_out).heads_inside_rows = heads_inside_rows;
  }
  for (const auto& [name, tensor] :
       {std::pair(TensorName::new_k, &update.new_k), std::pair(TensorName::new_v, &update.new_v)}) {
    TensorSpec& spec = add_whole(name, *tensor, kAllAxes);
    spec.rows_reachable = rows;
    spec.heads_inside_rows = heads_inside_rows;
  }
  add_scales(problem, TensorName::k_scales, update.k_scales, capacity, Role::in_out);
  add_scales(problem, TensorName::v_scales, update.v_scales, capacity, Role::in_out);
  leave_gaps(problem);
  if (problem.rope == Rope::none) return;
  if (!update.rope_cos_sin)
    throw Error("the problem asks for rope, and no rope_cos_sin were given");
  add_whole(TensorName::rope_cos_sin, *update.rope_cos_sin, kMatrix);
}

void RequestPlan::plan(const CopyPages& asked) {
  const Problem& problem = asked.problem;
  const PageCopy& copy = asked.copy;
  header_.problem = abi_problem(problem);
  for (const auto& [name, tensor] :
       {std::pair(TensorName::k, &copy.k), std::pair(TensorName::v, &copy.v)}) {
    demand(*tensor, tensor->extent, name);
    const Shape shape{name, element_of(tensor->format), tensor->extent, kAllAxes};
    add_in_out(shape, *tensor).heads_inside_rows = problem.layout == Layout::bthd;
  }
  std::vector<std::int32_t>& numbers = lengths_.emplace_back();
  for (const PageCopy::Pair& pair : copy.pairs) {
    numbers.push_back(static_cast<std::int32_t>(pair.from));
    numbers.push_back(static_cast<std::int32_t>(pair.to));
  }
  const auto pairs = static_cast<Index>(copy.pairs.size());
  add_input({TensorName::pairs, Element::i32, {1, 1, pairs, 2}, kMatrix}, numbers.data(),
            numbers.size() * sizeof(std::int32_t), pairs);
  leave_gaps(problem);
}

void RequestPlan::plan(const Project& asked) {
  const Projection& projection = asked.projection;
  const Tensor& x = projection.x;
  const Tensor& w = projection.w;
  demand(x, {x.extent[0], 1, x.extent[2], x.extent[3]}, TensorName::x);
  demand(w, {1, 1, x.extent[3], w.extent[3]}, TensorName::w);
  Problem problem;
  problem.batch = x.extent[0];
  problem.input = x.format;
  problem.output = projection.output;
  problem.bias = projection.bias.has_value();
  header_.problem = abi_problem(problem);
  add_whole(TensorName::x, x, kWithoutHead);
  add_whole(TensorName::w, w, kMatrix);
  if (projection.bias) {
    demand(*projection.bias, {1, 1, 1, w.extent[3]}, TensorName::bias);
    add_whole(TensorName::bias, *projection.bias, kColumnOnly);
  }
  add_output({TensorName::y,
              element_of(projection.output),
              {x.extent[0], 1, x.extent[2], w.extent[3]},
              kWithoutHead},
             projection.output);
}

void RequestPlan::write(std::byte* request) const {
  std::memcpy(request, &header_, sizeof(header_));
  for (const Piece& piece : pieces_) {
    if (piece.bytes != 0) std::memcpy(request + piece.offset, piece.source, piece.bytes);
  }
}

Tensor RequestPlan::tensor_of(TensorName name, const std::byte* reply) const {
  for (std::uint32_t i = 0; i < header_.tensor_count; ++i) {
    const TensorSpec& spec = header_.tensors[i];
    if (spec.name != name || spec.role == Role::input) continue;
    Extent4 extent{spec.extent[0], spec.extent[1], spec.extent[2], spec.extent[3]};
    const bool pages = cache_ && cache_->layout.page_size > 0 && spec.role == Role::in_out;
    if (pages) {
      extent[0] = cache_->layout.entries;
      extent[2] = cache_->capacity;
    }
    Tensor tensor(formats_[i], extent);
    if (tensor.bytes.empty()) return tensor;
    if (pages) {
      const std::size_t row_bytes = bytes_of_extent({1, 1, 1, extent[3]}, spec.element);
      from_pages(cache_->layout, extent[1], extent[2], row_bytes, reply + spec.answer,
                 tensor.bytes.data());
    } else {
      std::memcpy(tensor.bytes.data(), reply + spec.answer, tensor.bytes.size());
    }
    return tensor;
  }
  return {};
}

Reply RequestPlan::read(const std::byte* reply) const {
  Reply result;
  switch (static_cast<Operation>(header_.operation)) {
    case Operation::prefill:
    case Operation::decode:
      result.o = tensor_of(TensorName::o, reply);
      result.lse = tensor_of(TensorName::lse, reply);
      break;
    case Operation::append:
    case Operation::copy_pages:
      result.k = tensor_of(TensorName::k, reply);
      result.v = tensor_of(TensorName::v, reply);
      result.k_scales = tensor_of(TensorName::k_scales, reply);
      result.v_scales = tensor_of(TensorName::v_scales, reply);
      break;
    case Operation::projection:
      result.y = tensor_of(TensorName::y, reply);
      break;
  }
  return result;
}

}  // namespace attest

// One function per operation, in the order of the structs of attest_subject.h.
#include "optimized/plugin/request.hpp"

#include <cstring>
#include <string>

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

RequestPlan::RequestPlan(Operation operation, Poison poison) {
  header_.operation = static_cast<std::uint32_t>(operation);
  header_.poison = poison;
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
  TensorSpec& spec = add(shape, Role::output);
  spec.answer = (reply_bytes_ + kPayloadAlignment - 1) / kPayloadAlignment * kPayloadAlignment;
  reply_bytes_ = spec.answer + bytes_of_extent(shape.extent, element_of(format));
  return spec;
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
  const Extent4 scores{problem.batch, problem.query_heads, problem.queries, problem.keys};
  const Extent4 per_head{1, 1, 1, problem.query_heads};
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
  if (problem.alibi) send_f32(TensorName::slopes, values.slopes, per_head, kColumnOnly);
  if (problem.sinks) send_f32(TensorName::sinks, values.sinks, per_head, kColumnOnly);
  if (!problem.mask) return;
  const Extent4 extent{problem.batch, 1, problem.queries, problem.keys};
  const std::size_t bytes = bytes_of_extent(extent, Element::u8);
  if (!values.mask || values.mask->visible.size() != bytes) {
    throw Error("the problem asks for a mask, and the values hold none of its extent");
  }
  add_input({TensorName::mask, Element::u8, extent, kWithoutHead}, values.mask->visible.data(),
            bytes, problem.queries);
}

RequestPlan RequestPlan::attention(Operation operation, const Problem& problem,
                                   const Values& values, Poison poison) {
  RequestPlan plan(operation, poison);
  plan.header_.problem = abi_problem(problem);
  plan.input_ = problem.input;
  plan.output_ = problem.output;
  const Index capacity = problem.keys + problem.spare_slots;
  const Element element = element_of(problem.input);
  const Extent4 q{problem.batch, problem.query_heads, problem.queries, problem.depth};
  demand(values.q, q, TensorName::q);
  demand(values.k, {problem.batch, problem.kv_heads, problem.keys, problem.depth}, TensorName::k);
  demand(values.v, {problem.batch, problem.kv_heads, problem.keys, problem.v_depth}, TensorName::v);
  plan.add_input({TensorName::q, element, q, kAllAxes}, values.q.bytes.data(),
                 values.q.bytes.size(), problem.queries);
  plan.add_input({TensorName::k,
                  element,
                  {problem.batch, problem.kv_heads, capacity, problem.depth},
                  kAllAxes},
                 values.k.bytes.data(), values.k.bytes.size(), problem.keys);
  plan.add_input({TensorName::v,
                  element,
                  {problem.batch, problem.kv_heads, capacity, problem.v_depth},
                  kAllAxes},
                 values.v.bytes.data(), values.v.bytes.size(), problem.keys);
  plan.add_optional(problem, values);
  const std::uint64_t queries = plan.add_lengths(TensorName::query_lengths, problem.query_lengths);
  const std::uint64_t keys = plan.add_lengths(TensorName::key_lengths, problem.key_lengths);
  plan.add_output({TensorName::o,
                   element_of(problem.output),
                   {problem.batch, problem.query_heads, problem.queries, problem.v_depth},
                   kAllAxes},
                  problem.output);
  plan.add_output({TensorName::lse,
                   Element::f32,
                   {problem.batch, problem.query_heads, problem.queries, 1},
                   kWithoutColumn},
                  Format::f32);
  for (std::uint32_t i = 0; i < plan.header_.tensor_count; ++i) {
    TensorSpec& spec = plan.header_.tensors[i];
    const bool scores = spec.name == TensorName::bias || spec.name == TensorName::mask;
    const bool queried = scores || spec.name == TensorName::q || spec.name == TensorName::o ||
                         spec.name == TensorName::lse;
    const bool cached = spec.name == TensorName::k || spec.name == TensorName::v;
    if (queried) spec.rows_reachable = queries;
    if (cached) spec.rows_reachable = keys;
    if (scores) spec.columns_reachable = keys;
    spec.heads_inside_rows = problem.layout == Layout::bthd &&
                             (cached || spec.name == TensorName::q || spec.name == TensorName::o);
  }
  return plan;
}

RequestPlan RequestPlan::append(const Problem& problem, const CacheUpdate& update, Poison poison) {
  RequestPlan plan(Operation::append, poison);
  plan.header_.problem = abi_problem(problem);
  plan.input_ = update.k.format;
  const auto batch = static_cast<std::size_t>(update.k.extent[0]);
  if (update.lengths.size() != batch || update.new_lengths.size() != batch) {
    throw Error("append needs one length and one new length per batch entry");
  }
  const std::uint64_t lengths = plan.add_lengths(TensorName::lengths, update.lengths);
  const std::uint64_t rows = plan.add_lengths(TensorName::new_lengths, update.new_lengths);
  (void)lengths;  // what of the cache may be written is for a property to judge
  struct Source {
    TensorName name;
    const Tensor& tensor;
    bool cache;
  };
  for (const Source& source :
       {Source{TensorName::k, update.k, true}, Source{TensorName::v, update.v, true},
        Source{TensorName::new_k, update.new_k, false},
        Source{TensorName::new_v, update.new_v, false}}) {
    const Tensor& tensor = source.tensor;
    demand(tensor, tensor.extent, source.name);
    const Shape shape{source.name, element_of(tensor.format), tensor.extent, kAllAxes};
    TensorSpec* spec = nullptr;
    if (source.cache) {
      spec = &plan.add_output(shape, tensor.format);
      spec->role = Role::in_out;
      spec->payload = plan.send(tensor.bytes.data(), tensor.bytes.size());
    } else {
      spec = &plan.add_input(shape, tensor.bytes.data(), tensor.bytes.size(), tensor.extent[2]);
      spec->rows_reachable = rows;
    }
    spec->heads_inside_rows = problem.layout == Layout::bthd;
  }
  return plan;
}

RequestPlan RequestPlan::projection(const Projection& projection, Poison poison) {
  RequestPlan plan(Operation::projection, poison);
  const Tensor& x = projection.x;
  const Tensor& w = projection.w;
  demand(x, {x.extent[0], 1, x.extent[2], x.extent[3]}, TensorName::x);
  demand(w, {1, 1, x.extent[3], w.extent[3]}, TensorName::w);
  Problem problem;
  problem.batch = x.extent[0];
  problem.input = x.format;
  problem.output = projection.output;
  plan.header_.problem = abi_problem(problem);
  plan.output_ = projection.output;
  plan.add_input({TensorName::x, element_of(x.format), x.extent, kWithoutHead}, x.bytes.data(),
                 x.bytes.size(), x.extent[2]);
  plan.add_input({TensorName::w, element_of(w.format), w.extent, kMatrix}, w.bytes.data(),
                 w.bytes.size(), w.extent[2]);
  plan.add_output({TensorName::y,
                   element_of(projection.output),
                   {x.extent[0], 1, x.extent[2], w.extent[3]},
                   kWithoutHead},
                  projection.output);
  return plan;
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
    if (spec.name != name) continue;
    const bool cache = spec.role == Role::in_out;
    const Format format = name == TensorName::lse ? Format::f32 : cache ? input_ : output_;
    Tensor tensor(format, {spec.extent[0], spec.extent[1], spec.extent[2], spec.extent[3]});
    if (!tensor.bytes.empty()) {
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
      break;
    case Operation::projection:
      result.y = tensor_of(TensorName::y, reply);
      break;
  }
  return result;
}

}  // namespace attest

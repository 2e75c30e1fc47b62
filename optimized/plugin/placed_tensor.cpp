// Layout, filling and examination. A block is filled with its pattern first and the reachable rows
// are copied over it, so nothing can be forgotten: what is not a value is poison.
#include "optimized/plugin/placed_tensor.hpp"

#include <algorithm>
#include <cstring>

namespace attest {
namespace {

// Rows of the bthd layout are this much wider than their heads, and whatever a strided tensor holds
// than what it holds of the next axis, so that a subject which computes strides instead of reading
// them is found out. A multiple of what vector loads need.
constexpr std::size_t kRowGapBytes = 16;
constexpr std::size_t kTensorAlignment = 16;
constexpr std::size_t kScratchAlignment = 256;  // attest_subject.h promises it

std::array<std::int64_t, 4> strides_of(const TensorSpec& spec) {
  const std::int64_t heads = spec.extent[1], rows = spec.extent[2], columns = spec.extent[3];
  const auto gap = static_cast<std::int64_t>(kRowGapBytes / bytes_of(spec.element));
  if (!spec.heads_inside_rows) {
    // The last stride that is shown stays 1.
    const bool shows_columns = (spec.axes >> 3 & 1U) != 0;
    const std::int64_t outside = spec.strided ? gap : 0, inside = shows_columns ? outside : 0;
    const std::int64_t row = columns + inside;
    const std::int64_t head = rows * row + outside;
    return {heads * head + outside, head, row, 1};
  }
  const std::int64_t row = heads * columns + gap;
  return {rows * row, columns, row, 1};
}

// Of the last element: wraps to a negative number of 32 bits, and to another one without a sign.
constexpr std::int64_t kFarElements = std::int64_t{3} << 31;

bool is_last_shown(const TensorSpec& spec, std::size_t axis) {
  return (spec.axes >> (axis + 1)) == 0;
}

/// The axis whose elements lie far from each other: the outermost that has two. Not the last one
/// shown, whose stride is 1.
std::optional<std::size_t> far_axis_of(const TensorSpec& spec) {
  if (!spec.far) return std::nullopt;
  const std::size_t inner = spec.heads_inside_rows ? 1 : 2, outer = 3 - inner;
  for (const std::size_t axis : {std::size_t{0}, outer, inner}) {
    if (spec.extent[axis] > 1 && !is_last_shown(spec, axis)) return axis;
  }
  return std::nullopt;
}

/// Whatever is outside of the far axis has one element, so its strides only have to be as large.
std::array<std::int64_t, 4> far_strides(const TensorSpec& spec, std::size_t far,
                                        std::array<std::int64_t, 4> strides) {
  constexpr auto kUnit = static_cast<std::int64_t>(kFarAlignment);
  const std::int64_t apart = kFarElements / (spec.extent[far] - 1) + 2 * kUnit;
  const std::int64_t pitch =
      (std::max(apart, strides[far] + kUnit * 16) + kUnit - 1) / kUnit * kUnit;
  for (std::int64_t& stride : strides) {
    if (stride > strides[far]) stride = pitch * spec.extent[far];
  }
  strides[far] = pitch;
  return strides;
}

std::int64_t span_of(const TensorSpec& spec, const std::array<std::int64_t, 4>& strides) {
  std::int64_t last = 0;
  for (std::size_t axis = 0; axis < 4; ++axis) {
    if (spec.extent[axis] == 0) return 0;
    last += (spec.extent[axis] - 1) * strides[axis];
  }
  return last + 1;
}

const std::int32_t* limits_at(const std::byte* request, std::uint64_t offset) {
  return offset == 0 ? nullptr : reinterpret_cast<const std::int32_t*>(request + offset);
}

}  // namespace

PlacedTensor::PlacedTensor(const TensorSpec& spec, const std::byte* request, Poison poison,
                           DeviceMemory& memory)
    : spec_(spec),
      width_(bytes_of(spec.element)),
      row_limits_(limits_at(request, spec.rows_reachable)),
      column_limits_(limits_at(request, spec.columns_reachable)),
      far_axis_(far_axis_of(spec)),
      strides_(strides_of(spec)) {
  block_ = far_axis_ ? acquire_far(memory) : acquire(memory);
  image_.resize(block_.total());
  fill(request + spec_.payload, poison);
  memory.upload(block_, image_.data());
}

Block PlacedTensor::acquire(DeviceMemory& memory) const {
  const auto bytes = static_cast<std::size_t>(span_of(spec_, strides_)) * width_;
  const bool scratch = spec_.name == TensorName::scratch;
  return memory.acquire(bytes, scratch ? kScratchAlignment : kTensorAlignment, spec_.name);
}

Block PlacedTensor::acquire_far(DeviceMemory& memory) {
  strides_ = far_strides(spec_, *far_axis_, strides_);
  TensorSpec piece = spec_;
  piece.extent[*far_axis_] = 1;
  return memory.acquire_far(static_cast<std::size_t>(span_of(piece, strides_)) * width_,
                            static_cast<std::size_t>(spec_.extent[*far_axis_]),
                            static_cast<std::size_t>(strides_[*far_axis_]) * width_, spec_.name);
}

std::int64_t PlacedTensor::distance_to(std::uint64_t address) const {
  const auto offset =
      static_cast<std::int64_t>(address - reinterpret_cast<std::uint64_t>(block_.data));
  const auto bytes = static_cast<std::int64_t>(block_.span());
  if (offset < 0) return offset;
  return offset < bytes ? 0 : offset - bytes + 1;
}

std::size_t PlacedTensor::offset_of(const Place& place) const {
  std::int64_t element = 0;
  for (std::size_t axis = 0; axis < 4; ++axis) {
    if (axis != far_axis_) element += place[axis] * strides_[axis];
  }
  const std::size_t piece = far_axis_ ? static_cast<std::size_t>(place[*far_axis_]) : 0;
  return piece * block_.piece() + block_.front + static_cast<std::size_t>(element) * width_;
}

std::int64_t PlacedTensor::rows_reachable(std::int64_t batch) const {
  return row_limits_ == nullptr ? spec_.rows_sent : row_limits_[batch];
}

std::int64_t PlacedTensor::columns_reachable(std::int64_t batch) const {
  return column_limits_ == nullptr ? spec_.extent[3] : column_limits_[batch];
}

void PlacedTensor::fill(const std::byte* payload, Poison poison) {
  const std::uint32_t pattern = spec_.role == Role::output && spec_.name != TensorName::scratch
                                    ? sentinel_pattern(spec_.element)
                                    : poison_pattern(spec_.element, poison);
  // The tensor begins on an element's boundary of the image, so one pass fills the guards as well.
  fill_with(image_, spec_.element, pattern);
  if (spec_.role == Role::output) return;
  const std::int64_t columns = spec_.extent[3];
  for (std::int64_t b = 0; b < spec_.extent[0]; ++b) {
    const auto row_bytes = static_cast<std::size_t>(columns_reachable(b)) * width_;
    for (std::int64_t h = 0; h < spec_.extent[1]; ++h) {
      const std::byte* head =
          payload +
          static_cast<std::size_t>((b * spec_.extent[1] + h) * spec_.rows_sent * columns) * width_;
      for (std::int64_t row = 0; row < rows_reachable(b); ++row) {
        std::memcpy(image_.data() + offset_of({b, h, row, 0}),
                    head + static_cast<std::size_t>(row * columns) * width_, row_bytes);
      }
    }
  }
}

DLTensor PlacedTensor::view(DLDevice device) {
  int axes = 0;
  for (std::size_t axis = 0; axis < 4; ++axis) {
    if ((spec_.axes >> axis & 1U) == 0) continue;
    shown_extent_[static_cast<std::size_t>(axes)] = spec_.extent[axis];
    shown_strides_[static_cast<std::size_t>(axes)] = strides_[axis];
    ++axes;
  }
  DLTensor tensor{};
  tensor.data = block_.data;
  tensor.device = device;
  tensor.ndim = axes;
  tensor.dtype = dlpack_type(spec_.element);
  tensor.shape = shown_extent_.data();
  tensor.strides = shown_strides_.data();
  return tensor;
}

std::string PlacedTensor::print(const Place& place) const {
  std::string text(name_of(spec_.name));
  text += '[';
  bool first = true;
  for (std::size_t axis = 0; axis < 4; ++axis) {
    if ((spec_.axes >> axis & 1U) == 0) continue;
    if (!first) text += ',';
    text += std::to_string(place[axis]);
    first = false;
  }
  return text + ']';
}

std::optional<TensorFault> PlacedTensor::first_damage(const std::byte* found) const {
  if (std::memcmp(image_.data(), found, image_.size()) == 0) return std::nullopt;
  const auto [want, got] = std::mismatch(image_.begin(), image_.end(), found);
  const auto place_in_image = static_cast<std::size_t>(want - image_.begin());
  const std::size_t piece = place_in_image / block_.piece(), at = place_in_image % block_.piece();
  const std::string name(name_of(spec_.name));
  if (at < block_.front) {
    return TensorFault{FaultKind::guard, "a byte " + std::to_string(block_.front - at) +
                                             " before the first of " + name + " was written"};
  }
  if (at >= block_.front + block_.bytes) {
    return TensorFault{FaultKind::guard, "a byte " +
                                             std::to_string(at - block_.front - block_.bytes + 1) +
                                             " behind the last of " + name + " was written"};
  }
  // Which element is it? Peel off the axes from the widest stride to the narrowest.
  std::array<std::size_t, 4> order{0, 1, 2, 3};
  std::sort(order.begin(), order.end(),
            [this](std::size_t a, std::size_t b) { return strides_[a] > strides_[b]; });
  auto rest = static_cast<std::int64_t>((at - block_.front + piece * block_.pitch) / width_);
  Place place{};
  for (const std::size_t axis : order) {
    if (spec_.extent[axis] == 1) continue;
    place[axis] = rest / strides_[axis];
    rest %= strides_[axis];
    if (place[axis] >= spec_.extent[axis]) {
      return TensorFault{FaultKind::guard, "a gap between two rows of " + name + " was written"};
    }
  }
  if (rest != 0) {
    return TensorFault{FaultKind::guard, "a gap between two rows of " + name + " was written"};
  }
  const bool reachable =
      place[2] < rows_reachable(place[0]) && place[3] < columns_reachable(place[0]);
  if (spec_.role == Role::input && reachable) {
    return TensorFault{FaultKind::inputs_changed, print(place) + " is an input and was written"};
  }
  return TensorFault{FaultKind::guard,
                     print(place) + " lies behind what is in use and was written"};
}

std::optional<TensorFault> PlacedTensor::collect(std::byte* answer, std::byte* found) const {
  std::optional<TensorFault> unwritten;
  const std::uint32_t sentinel = sentinel_pattern(spec_.element);
  const std::int64_t rows = spec_.extent[2], columns = spec_.extent[3];
  const auto row_bytes = static_cast<std::size_t>(columns) * width_;
  for (std::int64_t b = 0; b < spec_.extent[0]; ++b) {
    const std::int64_t limit = rows_reachable(b);
    for (std::int64_t h = 0; h < spec_.extent[1]; ++h) {
      for (std::int64_t row = 0; row < rows; ++row, answer += row_bytes) {
        if (row >= limit) {
          std::memset(answer, 0, row_bytes);
          continue;
        }
        const std::size_t offset = offset_of({b, h, row, 0});
        std::memcpy(answer, found + offset, row_bytes);
        for (std::int64_t column = 0; column < columns && !unwritten && spec_.role == Role::output;
             ++column) {
          const std::byte* element = answer + static_cast<std::size_t>(column) * width_;
          if (pattern_at(element, spec_.element) != sentinel) continue;
          unwritten =
              TensorFault{FaultKind::unwritten, print({b, h, row, column}) + " was never written"};
        }
        std::memcpy(found + offset, image_.data() + offset, row_bytes);
      }
    }
  }
  return unwritten;
}

std::optional<TensorFault> PlacedTensor::examine(std::byte* reply, DeviceMemory& memory) {
  std::vector<std::byte> found(image_.size());
  memory.download(block_, found.data());
  std::optional<TensorFault> unwritten;
  if (spec_.name == TensorName::scratch) {
    std::memcpy(found.data() + block_.front, image_.data() + block_.front, block_.bytes);
  } else if (spec_.role != Role::input) {
    unwritten = collect(reply + spec_.answer, found.data());
  }
  if (auto damage = first_damage(found.data())) return damage;
  return unwritten;
}

}  // namespace attest

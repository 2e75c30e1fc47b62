// Tensor files: which names mean what, and how shapes and words become a Problem.
// What a file may hold is documented, for people, in README.md.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "reference/text.hpp"
#include "reports/conversion.hpp"
#include "reports/formats.hpp"
#include "reports/safetensors.hpp"
#include "reports/tensor_names.hpp"

namespace attest {
namespace {

std::vector<std::string_view> known_names() {
  std::vector<std::string_view> names;
  for (const StoredName& known : kTensorNames) names.push_back(known.name);
  return names;
}

/// One file while it is read.
class Reader {
 public:
  Reader(const Safetensors& content, std::string file_name, std::string_view problem_line)
      : content_(content), file_name_(std::move(file_name)), line_(problem_line) {}

  TensorsFile read() {
    TensorsFile file;
    require_known_names();
    for (const StoredTensor& tensor : content_.tensors) file.names.push_back(tensor.name);
    collect_words();
    order_.rows_before_heads = file.rows_before_heads = rows_before_heads();
    file.axes_said = says("layout") || from_metadata_ || content_.metadata.contains("axes") ||
                     needed("k", "the keys").shape.size() < 4;
    file.problem = read_problem();
    read_values(file);
    if (const auto said = content_.metadata.find("precision"); said != content_.metadata.end()) {
      file.precision = said->second;
    }
    if (const auto* o = content_.find("o")) file.o = answer(*o, file.problem);
    if (const auto* lse = content_.find("lse")) file.lse = answer_lse(*lse, file.problem);
    return file;
  }

 private:
  std::string where(std::string_view tensor) const {
    return fmt::format("{}: {}", file_name_, tensor);
  }

  const StoredTensor& needed(std::string_view name, std::string_view why) const {
    const StoredTensor* tensor = content_.find(name);
    if (tensor == nullptr) {
      throw Error(fmt::format("{}: holds no tensor {}, {}", file_name_, name, why));
    }
    return *tensor;
  }

  // A tensor that would be ignored silently, say `sink`, would make this another Problem.
  void require_known_names() const {
    const std::vector<std::string_view> known = known_names();
    for (const StoredTensor& tensor : content_.tensors) {
      if (std::ranges::find(known, tensor.name) != known.end()) continue;
      std::string lower = tensor.name;  // Q, K, V are called so elsewhere
      for (char& letter : lower) {
        if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
      }
      const std::string near =
          std::ranges::find(known, lower) != known.end() ? lower : nearest(tensor.name, known);
      throw Error(fmt::format("{}: the tensor {} means nothing here{}; known are {}", file_name_,
                              tensor.name, near.empty() ? "" : ", did you mean " + near + "?",
                              fmt::join(known, ", ")));
    }
  }

  /// The keys of the command line and of the metadata; what the first says wins.
  void collect_words() {
    add_words(line_, words_);
    const auto stored = content_.metadata.find("problem");
    from_metadata_ = stored != content_.metadata.end();
    if (!from_metadata_) return;
    std::map<std::string, std::string> added;
    add_words(stored->second, added);
    for (const auto& [key, word] : added) {
      if (words_.emplace(key, word).second) line_ += " " + word;
    }
  }

  static void add_words(std::string_view text, std::map<std::string, std::string>& words) {
    for (std::size_t start = 0; start < text.size();) {
      const std::size_t stop = std::min(text.find_first_of(" \t\r\n", start), text.size());
      const std::string_view word = text.substr(start, stop - start);
      if (!word.empty()) words.emplace(word.substr(0, word.find('=')), word);
      start = stop + 1;
    }
  }

  bool says(const std::string& key) const { return words_.contains(key); }
  void append(const std::string& key, const std::string& word) {
    if (!says(key)) line_ += " " + word;
  }

  bool rows_before_heads() const {
    const auto axes = content_.metadata.find("axes");
    if (axes == content_.metadata.end()) {
      const auto layout = words_.find("layout");
      return layout != words_.end() && layout->second == "layout=bthd";
    }
    if (axes->second != "bhtd" && axes->second != "bthd") {
      throw Error(
          fmt::format("{}: axes is \"{}\"; legal are bhtd and bthd", file_name_, axes->second));
    }
    return axes->second == "bthd";
  }

  /// Whole numbers are nobody's floating point: what they were scaled by, or meant, is not said.
  void refuse_integers(std::string_view name) const {
    const StoredTensor* tensor = content_.find(name);
    if (tensor == nullptr || tensor->dtype == Dtype::F64 || format_of(tensor->dtype)) return;
    throw Error(
        fmt::format("{} is stored as {}, whole numbers; store what the kernel read or "
                    "wrote, in floating point",
                    where(name), name_of(tensor->dtype)));
  }

  /// That of q, k and v; f32 for what is in F64. Where they differ it decides how products round,
  /// so it must be said.
  Format input_format() const {
    const auto stored = [&](std::string_view name) {
      return format_of(content_.find(name)->dtype).value_or(Format::f32);
    };
    const Format format = stored("q");
    if (says("cache")) return format;  // then that of q alone
    if (stored("k") == format && stored("v") == format) return format;
    if (says("in")) return Format::f32;
    throw Error(
        fmt::format("{}: q, k and v are stored as {}, {} and {}: say in=f32 if a kernel of "
                    "f32 read them, or cache=FORMAT if k and v are a cache",
                    file_name_, name_of(content_.find("q")->dtype),
                    name_of(content_.find("k")->dtype), name_of(content_.find("v")->dtype)));
  }

  // The words given come first, so that the column in an error is the column that was typed.
  Problem read_problem() {
    const Extent4 q = extents_of(needed("q", "the queries"), order_, where("q"));
    const Extent4 k = extents_of(needed("k", "the keys"), order_, where("k"));
    const Extent4 v = extents_of(needed("v", "the values"), order_, where("v"));
    for (const char* name : {"q", "k", "v", "o", "lse"}) refuse_integers(name);
    if (k[3] != q[3] && k[2] == q[3]) refuse_transposed("k", k, "rows as q has columns");
    if (v[2] != k[2] && v[3] == k[2]) refuse_transposed("v", v, "columns as k has rows");
    append("q", fmt::format("q={}x{}x{}x{}", q[0], q[1], q[2], q[3]));
    append("kv", fmt::format("kv={}x{}x{}", k[1], k[2], v[3]));
    // A line from metadata is complete, what it leaves out is the default; but of formats that are
    // there to be seen no default is needed, and another program's line may leave them out.
    const Format input = input_format();
    append("in", fmt::format("in={}", name_of(input)));
    if (!from_metadata_ || content_.find("o") != nullptr) {
      append("out", fmt::format("out={}", name_of(output_format(input))));
    }
    for (const auto& [tensor, word] : kOptional) {
      if (content_.find(tensor) != nullptr) append(word, word);
    }
    for (const char* scales : {"k_scales", "v_scales"}) append_scales(scales, k);
    for (const char* lengths : {"q_len", "kv_len"}) append_lengths(lengths);
    try {
      return parse_problem(line_);
    } catch (const Error& error) {
      const bool fits_otherwise = k[1] > 0 && q[1] % k[1] != 0 && k[2] > 0 && q[2] % k[2] == 0;
      throw Error(fmt::format("{}: in \"{}\": {}{}", file_name_, line_, error.what(),
                              fits_otherwise && !order_.rows_before_heads
                                  ? "; if the file has rows before heads, say layout=bthd"
                                  : ""));
    }
  }

  /// Scales that are there are in force, as their shape says: left out they would make this another
  /// Problem.
  void append_scales(const char* name, const Extent4& k) {
    const StoredTensor* tensor = content_.find(name);
    if (tensor == nullptr) return;
    if (const auto said = words_.find("scales"); said != words_.end()) {
      if (said->second != "scales=none") return;
      throw Error(fmt::format("{} is given, but the problem says scales=none", where(name)));
    }
    const Extent4 extent = extents_of(*tensor, {}, where(name));
    const bool one = tensor->count() == 1, heads = extent == Extent4{1, k[1], 1, 1};
    if (!one && !heads && extent != Extent4{k[0], k[1], k[2], 1}) {
      throw Error(fmt::format(
          "{} is given, but its shape {} is none of [1,1,1,1], [1,{},1,1] and [{},{},{},1]",
          where(name), shape_text(tensor->shape), k[1], k[0], k[1], k[2]));
    }
    const std::string word = one ? "scales=tensor" : heads ? "scales=head" : "scales=token";
    line_ += " " + word;
    words_.emplace("scales", word);
    // Only a cache has scales.
    const auto format = format_of(content_.find("k")->dtype);
    if (format && bytes_of(content_.find("k")->dtype) == 1) {
      append("cache", fmt::format("cache={}", name_of(*format)));
    }
  }

  /// The word of a line that says the same as a tensor of lengths.
  void append_lengths(const char* name) {
    const StoredTensor* tensor = content_.find(name);
    if (tensor == nullptr || says(name)) return;
    std::string word;
    for (Index n = 0; n < tensor->count(); ++n) {
      word += fmt::format("{}{}", n == 0 ? "=" : ",", number_at(*tensor, n, where(name)));
    }
    append(name, name + word);
  }

  [[noreturn]] void refuse_transposed(std::string_view name, const Extent4& extent,
                                      std::string_view what) const {
    throw Error(
        fmt::format("{}: shape {} is transposed: it has as many {}; store it as (batch, head, row, "
                    "column)",
                    where(name), shape_text({extent.begin(), extent.end()}), what));
  }

  Format output_format(Format input) const {
    const StoredTensor* o = content_.find("o");
    if (o != nullptr && bytes_of(o->dtype) == 1) {
      throw Error(fmt::format("{} is stored as {}; outputs are F64, F32, F16 or BF16", where("o"),
                              name_of(o->dtype)));
    }
    const Format format = o == nullptr ? input : format_of(o->dtype).value_or(Format::f32);
    return format == Format::f16 || format == Format::bf16 ? format : Format::f32;
  }

  /// What may have been meant by a shape that does not fit.
  std::string axes_hint(const StoredTensor& stored, const Extent4& extent) const {
    const Extent4 has = extents_of(stored, order_, where(stored.name));
    if (Extent4{has[0], has[2], has[1], has[3]} == extent) {
      return order_.rows_before_heads
                 ? "; it seems to have heads before rows, but the file says rows before heads"
                 : "; it seems to have rows before heads: then say layout=bthd, and store all so";
    }
    if (Extent4{has[0], has[1], has[3], has[2]} == extent) return "; its last two axes are swapped";
    return "";
  }

  Tensor shaped(std::string_view name, const Extent4& extent, Format format) const {
    const StoredTensor& stored = needed(name, "which the Problem says is there");
    if (extents_of(stored, order_, where(name)) != extent) {
      throw Error(
          fmt::format("{}: shape {} does not fit the Problem, which needs (batch, head, row, "
                      "column) = {}{}",
                      where(name), shape_text(stored.shape),
                      shape_text({extent.begin(), extent.end()}), axes_hint(stored, extent)));
    }
    return tensor_of(stored, order_, format, where(name));
  }

  void read_values(TensorsFile& file) const {
    const Problem& p = file.problem;
    Values& values = file.values;
    values.q = shaped("q", {p.batch, p.num_heads_q, p.seqlen_q, p.head_dim}, p.input);
    values.k = shaped("k", {p.batch, p.num_heads_kv, p.seqlen_kv, p.head_dim}, cache_format(p));
    values.v = shaped("v", {p.batch, p.num_heads_kv, p.seqlen_kv, p.head_dim_v}, cache_format(p));
    if (p.scales != Scales::none) {
      values.k_scales = read_scales("k_scales", p);
      values.v_scales = read_scales("v_scales", p);
    }
    if (p.bias) values.bias = read_bias({p.batch, p.num_heads_q, p.seqlen_q, p.seqlen_kv});
    if (p.alibi) values.alibi_slopes = per_head("slopes", p.num_heads_q);
    if (p.sinks) values.sinks = per_head("sinks", p.num_heads_q);
    if (p.mask) values.mask = read_mask(p);
  }

  /// (1, 1, 1, 1), (1, H, 1, 1) or (B, H, T, 1), as `scales` says.
  Tensor read_scales(std::string_view name, const Problem& p) const {
    const StoredTensor& stored = needed(name, "which the Problem says is there");
    const Extent4 extent = scales_extent(p, p.seqlen_kv);
    if (extents_of(stored, {}, where(name)) != extent) {
      throw Error(fmt::format("{}: shape {} does not fit scales={}, which needs {}", where(name),
                              shape_text(stored.shape), name_of(p.scales),
                              shape_text({extent.begin(), extent.end()})));
    }
    Tensor scales = tensor_of(stored, {}, Format::f32, where(name));
    for (Index flat = 0; flat < scales.count(); ++flat) {
      if (!std::isfinite(scales.at(flat)) || !(scales.at(flat) > 0)) {
        throw Error(fmt::format("{}: element {} is {}; legal are positive finite numbers",
                                where(name), flat, scales.at(flat)));
      }
    }
    return scales;
  }

  Tensor read_bias(const Extent4& extent) const {
    Tensor bias =
        broadcast_of(needed("bias", "which the Problem says is there"), extent, where("bias"));
    for (Index flat = 0; flat < bias.count(); ++flat) {
      const double number = bias.at(flat);
      if (std::isnan(number) || number == INFINITY) {
        throw Error(fmt::format("{}: element {} is {}; legal are finite numbers and -inf",
                                where("bias"), flat, number));
      }
    }
    return bias;
  }

  Tensor per_head(std::string_view name, Index heads) const {
    Tensor tensor = broadcast_of(needed(name, "which the Problem says is there"), {1, 1, 1, heads},
                                 where(name));
    for (Index flat = 0; flat < heads; ++flat) {
      if (!std::isfinite(tensor.at(flat))) {
        throw Error(fmt::format("{}: element {} is not finite", where(name), flat));
      }
    }
    return tensor;
  }

  VisibilityMask read_mask(const Problem& p) const {
    StoredTensor stored = needed("mask", "which the Problem says is there");
    // (Tq, Tk), (B, Tq, Tk) or (B, 1, Tq, Tk): the heads share it.
    if (stored.shape.size() == 3) stored.shape.insert(stored.shape.begin() + 1, 1);
    if (stored.shape.size() == 4 && stored.shape[1] != 1) {
      throw Error(
          fmt::format("{}: shape {} has a mask per head; all heads share one here: write it "
                      "as a bias of 0 and -inf instead",
                      where("mask"), shape_text(stored.shape)));
    }
    const Tensor numbers =
        broadcast_of(stored, {p.batch, 1, p.seqlen_q, p.seqlen_kv}, where("mask"));
    VisibilityMask mask{p.batch, p.seqlen_q, p.seqlen_kv, {}};
    mask.visible.resize(static_cast<std::size_t>(numbers.count()));
    for (Index flat = 0; flat < numbers.count(); ++flat) {
      const double number = numbers.at(flat);
      if (number != 0 && number != 1) {
        throw Error(fmt::format("{}: element {} is {}; legal are 1 (visible) and 0", where("mask"),
                                flat, number));
      }
      mask.visible[static_cast<std::size_t>(flat)] = number == 1 ? 1 : 0;
    }
    return mask;
  }

  std::vector<double> answer(const StoredTensor& o, const Problem& p) const {
    const Extent4 extent{p.batch, p.num_heads_q, p.seqlen_q, p.head_dim_v};
    if (extents_of(o, order_, where("o")) != extent) {
      throw Error(fmt::format(
          "{}: shape {} is not that of the output, (batch, head, row, column) = {}{}", where("o"),
          shape_text(o.shape), shape_text({extent.begin(), extent.end()}), axes_hint(o, extent)));
    }
    return numbers_of(o, order_, where("o"));
  }

  // (T), (H, T) or (B, H, T), with or without a last axis of 1; heads before rows always.
  std::vector<double> answer_lse(StoredTensor lse, const Problem& p) const {
    const std::string text = shape_text(lse.shape);
    const bool trailing = lse.shape.size() == 4 && lse.shape[3] == 1;
    if (!trailing) lse.shape.push_back(1);
    if (lse.shape.size() > 4 ||
        extents_of(lse, {}, where("lse")) != Extent4{p.batch, p.num_heads_q, p.seqlen_q, 1}) {
      const bool swapped =
          lse.shape.size() <= 4 &&
          extents_of(lse, {}, where("lse")) == Extent4{p.batch, p.seqlen_q, p.num_heads_q, 1};
      throw Error(fmt::format("{}: shape {} is not (batch, head, query){}", where("lse"), text,
                              !swapped                   ? ""
                              : order_.rows_before_heads ? "; lse has heads before rows always"
                                                         : "; if q, k, v and o have rows before "
                                                           "heads, say layout=bthd"));
    }
    return numbers_of(lse, {}, where("lse"));
  }

  // Which word of a line announces which optional tensor.
  static constexpr std::pair<const char*, const char*> kOptional[] = {
      {"bias", "bias"}, {"slopes", "alibi"}, {"sinks", "sinks"}, {"mask", "mask"}};

  const Safetensors& content_;
  std::string file_name_, line_;
  std::map<std::string, std::string> words_;
  bool from_metadata_ = false;
  AxisOrder order_;
};

}  // namespace

TensorsFile read_tensors(std::span<const std::byte> bytes, const std::string& file_name,
                         std::string_view problem_line) {
  const Safetensors content = parse_safetensors(bytes, file_name);
  return Reader(content, file_name, problem_line).read();
}

TensorsFile read_tensors_file(const std::filesystem::path& path, std::string_view problem_line) {
  const MappedFile file(path);
  return read_tensors(file.bytes(), path.string(), problem_line);
}

}  // namespace attest

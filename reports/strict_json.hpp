// JSON from files nobody vouches for: bounded nesting, no name twice, and errors that say which
// field of which file is wrong. The only header that shows the JSON library.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "reference/text.hpp"

namespace attest {

/// Throws Error with file, byte offset and what was found.
nlohmann::json parse_strictly(std::string_view text, std::string_view file_name);

/// One object of a file, read field by field. `where` is its place, e.g. "run.json: findings[2]".
class Fields {
 public:
  Fields(const nlohmann::json& object, std::string where);
  const nlohmann::json& at(std::string_view name) const;
  bool has(std::string_view name) const;
  std::string text(std::string_view name) const;
  bool flag(std::string_view name) const;
  std::uint64_t count(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;
  /// A number, or one of the strings that number_of writes for what JSON cannot spell.
  double number(std::string_view name) const;
  Fields object(std::string_view name) const;
  /// Checks that it is an array and returns it.
  const nlohmann::json& list(std::string_view name) const;
  /// The place of one of its elements, for messages.
  std::string place(std::string_view name) const;
  [[noreturn]] void refuse(std::string_view name, const std::string& problem) const;
  const nlohmann::json& raw() const { return *object_; }

 private:
  const nlohmann::json* object_;
  std::string where_;
};

/// JSON has no NaN and no infinities: they are written as the strings "nan", "inf" and "-inf".
/// Every other double is written with the digits that read back to the same bits.
nlohmann::json number_of(double number);

/// 64 bits as 16 hexadecimal digits, and back; 0 when the field is absent.
std::string hexadecimal(std::uint64_t bits);
std::uint64_t read_hexadecimal(const Fields& fields, std::string_view name);

/// Two-space indentation and a final line feed. Bytes that are not UTF-8 become U+FFFD; what a
/// terminal would obey is escaped, never raw.
std::string text_of(const nlohmann::json& json);

}  // namespace attest

// Text that somebody else wrote (a plugin's name, a kernel's message, a file's metadata), made fit
// for a terminal, a log and every report. It knows of characters only, not of what they say.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace attest {

/// Length in bytes of the well-formed UTF-8 sequence at the front of `text`, which is not empty; 0:
/// there is none. No overlong forms, no surrogates, nothing beyond U+10FFFF, no U+FFFE or U+FFFF.
std::size_t utf8_length(std::string_view text);

/// Well-formed UTF-8 without anything that a terminal would obey: what is no UTF-8 becomes U+FFFD,
/// line breaks and tabs a space, control characters and those that turn the direction of writing
/// are spelled out (\x1b, \u202e).
std::string one_line(std::string_view text);

}  // namespace attest

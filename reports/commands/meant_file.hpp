// Whether a word of a command line that may be a case line or a file is a file. Opens none.
#pragma once
#include <string>

namespace attest {

/// Yes for what is there, and for what can only be a path: no blank and no '=', as every case line
/// has, and a slash or a dot, as none has. So a file that is missing is said to be missing, rather
/// than to be no case line.
bool is_meant_as_file(const std::string& word);

}  // namespace attest

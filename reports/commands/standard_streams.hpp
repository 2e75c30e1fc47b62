// The streams that every process is given, whatever whoever starts us made of them, and what is
// left of an exit code when they or a disk take no more.
#pragma once
#include <functional>
#include <string_view>

namespace attest {

/// Before anything else. A stream that was closed is opened on nothing, so that no file of ours
/// gets its number; and a pipe without a reader or a file beyond its limit is an error, not a
/// signal that ends us before the reports are written.
void prepare_standard_streams();

/// Says what went wrong, on stderr. A subject that is wrong stays wrong (1); whatever else was
/// concluded could not be told (2), since it is not where it was asked for.
int despite(int exit_code, std::string_view trouble);
/// The same, when `write` throws Error.
int despite_trouble(int exit_code, const std::function<void()>& write);

/// The exit code after all that was printed has reached standard output.
int printed(int exit_code);

}  // namespace attest

// Files that appear whole or not at all, wherever their name leads: a regular file is replaced in
// one step, links stay and are followed, and what is no regular file (a pipe, a terminal, a device)
// is written to. Nothing here knows what the bytes mean.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "reference/text.hpp"
#include "reports/safetensors.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStandardOutput = "-";
constexpr mode_t kModeOfNew = 0666;  // less what the user's umask takes away

[[noreturn]] void refuse(const fs::path& named, const std::string& why) {
  throw Error(fmt::format("{}: cannot be written: {}", named.string(), why));
}
[[noreturn]] void refuse(const fs::path& named, int error) {
  refuse(named, std::strerror(error));
}

class Descriptor {
 public:
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  int get() const { return descriptor_; }
  /// Some file systems say only now that the disk is full. 0, or what went wrong.
  int close() { return ::close(std::exchange(descriptor_, -1)) == 0 ? 0 : errno; }

 private:
  int descriptor_;
};

/// 0, or what went wrong.
int put(int descriptor, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return 0;
}

/// Standard output, for the file alone: what is printed goes to standard error from now on, so that
/// whoever reads the file reads nothing else.
int standard_output() {
  static const int kept = [] {
    std::fflush(stdout);
    const int copy = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
    return copy;
  }();
  return kept;
}

/// Where a name leads.
struct Destination {
  enum class Way : std::uint8_t { descriptor, written_to, replaced } way = Way::replaced;
  int descriptor = -1;
  fs::path path;        // without links, where the file is replaced
  bool exists = false;  // with this mode
  mode_t mode = kModeOfNew;
};

bool may_write(int descriptor) {
  const int flags = ::fcntl(descriptor, F_GETFL);
  return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/// The end of a chain of links that leads to nothing yet.
fs::path absent_target(fs::path path, const fs::path& named) {
  constexpr int kLinksMost = 40;  // as many as the system follows
  for (int links = 0; links < kLinksMost; ++links) {
    std::error_code none;
    const fs::path next = fs::read_symlink(path, none);
    if (none) return path;
    path = next.is_absolute() ? next : path.parent_path() / next;
  }
  refuse(named, ELOOP);
}

Destination destination_of(const fs::path& named) {
  using Way = Destination::Way;
  if (named.empty()) throw Error("a file is wanted, but its name is empty");
  if (named == kStandardOutput) {
    return {.way = Way::descriptor, .descriptor = standard_output(), .path = named};
  }
  struct stat facts {};
  if (::stat(named.c_str(), &facts) != 0) {
    if (errno != ENOENT) refuse(named, errno);
    return {.path = absent_target(named, named)};
  }
  if (S_ISDIR(facts.st_mode)) refuse(named, "it is a folder");
  // Where our own output goes: a socket could not be opened anew, and a file that is replaced would
  // lose what is printed after.
  for (const int ours : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat open {};
    if (::fstat(ours, &open) == 0 && same_file(open, facts) && may_write(ours)) {
      return {.way = Way::descriptor, .descriptor = ours, .path = named};
    }
  }
  if (S_ISSOCK(facts.st_mode)) refuse(named, "it is a socket");
  Destination there{.way = Way::written_to, .path = named, .exists = true, .mode = facts.st_mode};
  if (!S_ISREG(facts.st_mode)) return there;
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(named.c_str(), nullptr),
                                                         &std::free);
  struct stat again {};
  if (!real || ::stat(real.get(), &again) != 0 || !same_file(again, facts)) return there;
  there.way = Way::replaced;  // unless it has no name any more, as an open file may
  there.path = real.get();
  return there;
}

int write_in_place(const fs::path& path, std::span<const std::byte> bytes) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY));
  if (file.get() < 0) return errno;
  if (const int problem = put(file.get(), bytes); problem != 0) return problem;
  return file.close();
}

/// A name in the same folder that nobody else uses.
fs::path beside(const fs::path& path) {
  static std::atomic<unsigned> number = 0;
  return path.parent_path() / fmt::format(".attest.{}.{}.part", ::getpid(), ++number);
}

int open_new(const fs::path& path) {
  ::unlink(path.c_str());  // what a process of the same number left when it was killed
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kModeOfNew);
}

int write_and_rename(const Destination& there, std::span<const std::byte> bytes) {
  const fs::path draft = beside(there.path);
  Descriptor file(open_new(draft));
  if (file.get() < 0) return errno;
  int problem = put(file.get(), bytes);
  if (problem == 0 && there.exists) ::fchmod(file.get(), there.mode & 07777U);
  if (problem == 0) problem = file.close();
  if (problem == 0 && ::rename(draft.c_str(), there.path.c_str()) != 0) problem = errno;
  if (problem != 0) ::unlink(draft.c_str());
  return problem;
}

/// A file that may be written in a folder that may not, or that is a mount of its own.
bool may_be_written_in_place(int problem) {
  return problem == EACCES || problem == EPERM || problem == EROFS || problem == EBUSY ||
         problem == EXDEV || problem == ENAMETOOLONG;
}

int write_to(const Destination& there, std::span<const std::byte> bytes) {
  std::fflush(stdout);  // what was printed before comes before, should both be the same
  switch (there.way) {
    case Destination::Way::descriptor:
      return put(there.descriptor, bytes);
    case Destination::Way::written_to:
      return write_in_place(there.path, bytes);
    case Destination::Way::replaced:
      break;
  }
  const int problem = write_and_rename(there, bytes);
  if (!there.exists || !may_be_written_in_place(problem)) return problem;
  return write_in_place(there.path, bytes);
}

/// 0, or why not. Nothing is opened that waits for a reader, and nothing is changed.
int obstacle_to(const Destination& there) {
  if (there.way == Destination::Way::descriptor) return may_write(there.descriptor) ? 0 : EBADF;
  const auto writable = [&] { return ::access(there.path.c_str(), W_OK) == 0 ? 0 : errno; };
  if (there.way == Destination::Way::written_to) return writable();
  const fs::path draft = beside(there.path);
  const Descriptor file(open_new(draft));
  if (file.get() >= 0) {
    ::unlink(draft.c_str());
    return 0;
  }
  const int problem = errno;
  return there.exists && may_be_written_in_place(problem) ? writable() : problem;
}

}  // namespace

void write_whole(const fs::path& named, std::span<const std::byte> bytes) {
  if (const int problem = write_to(destination_of(named), bytes); problem != 0) {
    refuse(named, problem);
  }
}

void write_whole(const fs::path& path, std::string_view text) {
  write_whole(path, std::as_bytes(std::span(text.data(), text.size())));
}

void require_writable_file(const fs::path& named) {
  if (const int problem = obstacle_to(destination_of(named)); problem != 0) refuse(named, problem);
}

}  // namespace attest

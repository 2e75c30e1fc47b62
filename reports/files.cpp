// Files as bytes: mapped for reading, and written so that no reader ever sees half of one.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include "reference/text.hpp"
#include "reports/formats.hpp"
#include "reports/safetensors.hpp"

namespace attest {

MappedFile::MappedFile(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    throw Error(fmt::format("{}: cannot be opened: {}", path.string(), std::strerror(errno)));
  }
  struct stat facts {};
  const bool regular = ::fstat(descriptor, &facts) == 0 && S_ISREG(facts.st_mode);
  if (!regular) {
    ::close(descriptor);
    throw Error(fmt::format("{}: is not a regular file", path.string()));
  }
  size_ = static_cast<std::size_t>(facts.st_size);
  if (size_ > 0) {
    void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
    const int problem = errno;
    if (mapped == MAP_FAILED) {
      ::close(descriptor);
      throw Error(fmt::format("{}: cannot be read: {}", path.string(), std::strerror(problem)));
    }
    data_ = static_cast<const std::byte*>(mapped);
  }
  ::close(descriptor);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

namespace {

/// `named` is what the user called it.
void put(const std::filesystem::path& path, std::span<const std::byte> bytes,
         const std::filesystem::path& named) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  file.flush();
  if (!file) {
    throw Error(fmt::format("{}: cannot be written: {}", named.string(), std::strerror(errno)));
  }
}

}  // namespace

void write_whole(const std::filesystem::path& named, std::span<const std::byte> bytes) {
  // A device or a pipe is written to, not replaced; of a link, what it leads to is replaced.
  std::error_code absent;
  const std::filesystem::path there = std::filesystem::canonical(named, absent);
  const std::filesystem::path& path = absent ? named : there;
  if (!absent && !std::filesystem::is_regular_file(path)) return put(path, bytes, named);
  std::filesystem::path beside = path;
  beside += fmt::format(".{}.part", ::getpid());
  try {
    put(beside, bytes, named);
  } catch (const Error&) {
    std::error_code ignored;
    std::filesystem::remove(beside, ignored);
    throw;
  }
  std::error_code problem;
  std::filesystem::rename(beside, path, problem);
  if (problem) {
    std::error_code ignored;
    std::filesystem::remove(beside, ignored);
    throw Error(fmt::format("{}: cannot be written: {}", path.string(), problem.message()));
  }
}

void write_whole(const std::filesystem::path& path, std::string_view text) {
  write_whole(path, std::as_bytes(std::span(text.data(), text.size())));
}

void require_writable_folder(const std::filesystem::path& folder) {
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  if (problem && !std::filesystem::is_directory(folder)) {
    throw Error(fmt::format("{}: this report folder cannot be made: {}", folder.string(),
                            problem.message()));
  }
  const auto probe = folder / fmt::format(".attest.{}", ::getpid());
  write_whole(probe, std::string_view());
  std::filesystem::remove(probe, problem);
}

void require_writable_file(const std::filesystem::path& path) {
  std::error_code absent;
  const std::filesystem::path there = std::filesystem::canonical(path, absent);
  if (!absent && !std::filesystem::is_regular_file(there)) return;  // a pipe waits for its reader
  std::filesystem::path probe = absent ? path : there;
  probe += fmt::format(".{}.part", ::getpid());
  put(probe, {}, path);
  std::filesystem::remove(probe, absent);
}

FolderLock::FolderLock(const std::filesystem::path& folder)
    : descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (descriptor_ < 0) {
    throw Error(fmt::format("{}: cannot be opened: {}", folder.string(), std::strerror(errno)));
  }
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  ::close(descriptor_);
  throw Error(
      fmt::format("{}: another attest writes its report here; wait for it, or choose another "
                  "--report",
                  folder.string()));
}

FolderLock::~FolderLock() {
  ::close(descriptor_);
}

void write_reports(const std::filesystem::path& folder, const Run& run) {
  require_writable_folder(folder);
  const auto [json, junit, summary] = kReportFiles;
  write_run_json(folder / json, run);
  write_junit(folder / junit, run);
  write_summary(folder / summary, run);
}

}  // namespace attest

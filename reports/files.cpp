// Files that are mapped for reading, and the folders that reports go to.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "reference/fnv.hpp"
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

void require_writable_folder(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  const auto refuse = [&](std::string_view why) {
    throw Error(fmt::format("{}: this report folder cannot be made: {}", folder.string(), why));
  };
  if (folder.empty()) throw Error("a folder for the reports is wanted, but its name is empty");
  std::error_code problem;
  fs::create_directories(folder, problem);
  if (!fs::is_directory(folder, problem)) {
    // What is in the way may be any part of the path.
    for (fs::path part = folder;; part = part.parent_path()) {
      std::error_code absent;
      const fs::file_status itself = fs::symlink_status(part, absent);
      if (fs::exists(itself) && !fs::is_directory(part, absent)) {
        const bool dangling = fs::is_symlink(itself) && !fs::exists(part, absent);
        refuse(
            fmt::format("{} is {}", part.string(), dangling ? "a link to nothing" : "no folder"));
      }
      if (part == part.parent_path() || part.empty()) break;
    }
    fs::create_directories(folder, problem);
    refuse(problem.message());
  }
  const auto probe = folder / fmt::format(".attest.{}", ::getpid());
  write_whole(probe, std::string_view());
  fs::remove(probe, problem);
}

std::uint64_t subject_hash_of(const std::filesystem::path& plugin) {
  try {
    return fnv_of(MappedFile(plugin).bytes());
  } catch (const Error&) {
    return 0;
  }
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
  // Each for itself: where one does not fit any more, another may.
  std::string trouble;
  for (const auto& [name, write] :
       {std::pair(json, &write_run_json), {junit, &write_junit}, {summary, &write_summary}}) {
    try {
      write(folder / name, run);
    } catch (const Error& error) {
      if (trouble.empty()) trouble = error.what();
    }
  }
  if (!trouble.empty()) throw Error(trouble);
}

}  // namespace attest

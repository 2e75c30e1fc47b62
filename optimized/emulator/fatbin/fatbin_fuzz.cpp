// Any bytes are a container or a FatbinError, and the text of its images is had or refused.
#include <cstddef>
#include <cstdint>

#include "optimized/emulator/fatbin/fatbin.hpp"

using namespace attest::emulator::fatbin;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto images = read_images({reinterpret_cast<const std::byte*>(data), size});
    for (const Image& image : images) {
      try {
        if (image.kind == Image::Kind::ptx) ptx_text(image);
      } catch (const FatbinError&) {
      }
    }
    choose_ptx(images, 80);
  } catch (const FatbinError&) {
  }
  return 0;
}

// What `attest --help` teaches: a line for each thing one comes to the program for.
#include "reports/commands/commands.hpp"

namespace attest {

std::string examples_text() {
  return R"(
Examples:
  attest gate                                  our kernels, on the emulator or a GPU
  attest gate --subject ./my_kernel.so         anybody's plugin (optimized/plugin/attest_subject.h)
  attest fuzz --subject ./my_kernel.so         until Ctrl-C; goes on where it was killed
  attest run -- ./my_program --its-options     any CUDA program, with the emulator's checkers
  attest replay 'q=1x2x3x8 kv=1x5x8 causal' --property causality
  attest replay attest-report/findings/NAME    a finding, with the very tensors it was found on
  attest oracle mine.safetensors -o truth.safetensors --problem causal
  attest oracle 'q=1x8x128x64 kv=2x128x64 causal' -o case.safetensors    a case for any framework
  attest judge out.safetensors --problem causal --path 'fa2 kv_block=128'    a GPU's output, with its inputs
  attest measure --json base.json              how large errors are, and where they come from
  attest measure --compare base.json           which grew since then
  attest list case                             the words of a case line
  attest footprint --layers 32 --num-heads-kv 8 --head-dim 128 --tokens 8192 --format bf16

Exit code 0: nothing violated and enough was proven. 1: the subject is wrong. 2: could not tell.)";
}

}  // namespace attest

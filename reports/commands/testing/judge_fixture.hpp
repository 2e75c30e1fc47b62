// judge on a file in a folder of its own, and what it wrote of it. Test code; no program includes
// this.
#pragma once
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "reports/commands/testing/judged_files.hpp"
#include "reports/commands/testing/ran.hpp"

namespace attest {

class JudgeFixture : public CommandLine {
 protected:
  static constexpr const char* kWords = " --problem causal --path 'fa2 kv_block=4'";

  void write(const Written& it, bool with_o = true, bool with_lse = true,
             const std::string& metadata = R"("format":"pt")") const {
    write_answer(folder_ / "out.safetensors", it, with_o, with_lse, metadata);
  }
  Ran judged(const std::string& words = kWords) const {
    return run("judge out.safetensors --json v.json" + words);
  }
  nlohmann::json verdict() const { return nlohmann::json::parse(text_of(folder_ / "v.json")); }
};

}  // namespace attest

// Every word that a command line of attest may hold, and what `--help` says of it.
#include "reports/commands/command_words.hpp"

#include <fmt/format.h>

#include <charconv>

namespace attest {
namespace {

constexpr unsigned kThreadsMax = 1024;

std::string threads_error(const std::string& word) {
  unsigned number = 0;
  const auto [stop, failed] = std::from_chars(word.data(), word.data() + word.size(), number);
  const bool good = failed == std::errc() && stop == word.data() + word.size();
  return good && number >= 1 && number <= kThreadsMax
             ? std::string()
             : fmt::format("'{}' is not between 1 and {}", word, kThreadsMax);
}

void add(std::vector<OptionWord>& words, std::vector<OptionWord> more) {
  for (OptionWord& word : more) words.push_back(std::move(word));
}

OptionWord checks(EmulationOptions& options) {
  return {.name = "--checks",
          .what = "of the emulator: names of `attest list checks`, separated by commas",
          .place = &options.checks};
}

std::vector<OptionWord> device(std::string& name, double& seconds) {
  return {{.name = "--device", .what = "auto, cuda or emulated", .place = &name},
          {.name = "--case-seconds",
           .what = "then a call that waits is hung, and of one at work nobody can tell",
           .place = &seconds}};
}

std::vector<OptionWord> campaign(CampaignCommand& options) {
  std::vector<OptionWord> words{
      {.name = "--subject",
       .what = "path of a plugin, or a name of `attest list subjects` or `mutants`",
       .place = &options.subject.subject}};
  add(words, device(options.subject.device, options.subject.case_seconds));
  add(words,
      {{.name = "--numerics",
        .what = "of the emulator: a name of `attest list numerics`, two joined by +, or drawn per "
                "case",
        .place = &options.subject.emulation.numerics},
       checks(options.subject.emulation),
       {.name = "--schedule",
        .what = "seed of a legal order of warps, blocks and arrivals; 0: the strictest; or drawn",
        .place = &options.schedule,
        .problem = schedule_error}});
  add(words, {{.name = "--budget", .what = "time, as 45s, 10m or 1h", .place = &options.budget},
              {.name = "--cases",
               .what = "number of cases to draw",
               .place = &options.cases,
               .problem = count_error},
              {.name = "--seed",
               .what = "decides every case",
               .place = &options.seed,
               .problem = count_error},
              {.name = "--threads",
               .what = "cases at once",
               .place = &options.threads,
               .problem = threads_error},
              {.name = "--properties",
               .what = "only these, separated by commas",
               .place = &options.properties,
               .separator = ','},
              {.name = "--where",
               .what = "only problems that have these attributes, separated by blanks: 'in=bf16 "
                       "head_dim=64,128 seqlen_kv=1..4096 causal no-mask' (`attest list where`)",
               .place = &options.where},
              {.name = "--report",
               .what = "folder for run.json, junit.xml, summary.md, cases.log and findings",
               .place = &options.report}});
  return words;
}

CommandWord replay_words(ReplayOptions& options) {
  CommandWord command{.name = "replay",
                      .what = "run one case again, bit for bit",
                      .example = "attest replay 'q=1x2x3x8 kv=1x5x8 causal' --property causality",
                      .act = [&options] { return replay(options); },
                      .options = {}};
  command.options = {{.name = "what",
                      .what = "case line (`attest list case`), safetensors file (`attest list "
                              "tensors`) or finding's folder",
                      .place = &options.what,
                      .required = true},
                     {.name = "--property",
                      .what = "else what the finding says, or all",
                      .place = &options.property},
                     {.name = "--problem",
                      .what = "words of a case line (`attest list case`), for a safetensors file",
                      .place = &options.problem},
                     {.name = "--subject",
                      .what = "as for gate; else what the finding says",
                      .place = &options.subject},
                     {.name = "--numerics",
                      .what = "as for gate; else what the finding says",
                      .place = &options.numerics},
                     {.name = "--checks",
                      .what = "as for gate; else what the finding says",
                      .place = &options.checks},
                     {.name = "--schedule",
                      .what = "as for gate; else what the finding says",
                      .place = &options.schedule,
                      .problem = count_error}};
  add(command.options, device(options.device, options.case_seconds));
  return command;
}

CommandWord compare_words(CompareOptions& options) {
  CommandWord command{.name = "compare",
                      .what = "a device's bits against the emulator's, per numeric model",
                      .example = "attest compare --device cuda --cases 300 --out compare.json",
                      .act = [&options] { return compare(options); },
                      .options = {}};
  command.options = {
      {.name = "--subject", .what = "as for gate", .place = &options.subject.subject}};
  add(command.options, device(options.subject.device, options.subject.case_seconds));
  add(command.options,
      {{.name = "--numerics",
        .what = "of the device, where that is the emulator too",
        .place = &options.subject.emulation.numerics},
       {.name = "--cases",
        .what = "number of cases to draw",
        .place = &options.cases,
        .problem = count_error},
       {.name = "--seed",
        .what = "decides every case",
        .place = &options.seed,
        .problem = count_error},
       {.name = "--out", .what = "file for the table as JSON", .place = &options.out}});
  return command;
}

CommandWord oracle_words(OracleOptions& options) {
  return {.name = "oracle",
          .what = "the certified truth for a case or for anybody's tensors",
          .example = "attest oracle mine.safetensors -o truth.safetensors --problem causal",
          .act = [&options] { return oracle(options); },
          .options = {{.name = "what",
                       .what = "case line (`attest list case`) or safetensors file (`attest list "
                               "tensors`)",
                       .place = &options.what,
                       .required = true},
                      {.name = "-o,--out",
                       .what = "safetensors file: inputs, o and lse as `attest judge` takes them, "
                               "and the truth in F64",
                       .place = &options.out},
                      {.name = "--problem",
                       .what = "words of a case line (`attest list case`), for a safetensors file",
                       .place = &options.problem},
                      {.name = "--digits",
                       .what = "50 or 100 in every row, not a proven radius; 0: the radius",
                       .place = &options.digits}}};
}

std::vector<OptionWord> grid_words(MeasureCommand& options) {
  const auto list = [](const char* name, const char* what, std::vector<std::string>& place) {
    return OptionWord{.name = name, .what = what, .place = &place, .separator = ','};
  };
  return {list("--lengths", "keys of a cell, separated by commas", options.lengths),
          list("--widths", "of q, k and v", options.widths),
          list("--formats", "of q, k and v: names of `attest list formats`", options.formats),
          list("--outputs", "formats of o; else each as its input", options.outputs),
          list("--fills", "names of `attest list fills`", options.fills),
          {.name = "--operation",
           .what = "prefill or decode; else prefill, or what a case asks for",
           .place = &options.operation},
          {.name = "--rows",
           .what = "query rows of a cell, about: the last of a sequence",
           .place = &options.rows,
           .problem = count_error},
          {.name = "--problem",
           .what = "words of a case line (`attest list case`) that every cell has",
           .place = &options.problem},
          {.name = "--case",
           .what = "a case line (`attest list case`), prefill or decode before it or not, to "
                   "measure instead of a grid; may be given more than once",
           .place = &options.cases}};
}

CommandWord judge_words(JudgeOptions& options) {
  return {
      .name = "judge",
      .what = "anybody's output, from any machine or framework, element by element",
      .example = "attest judge out.safetensors --problem causal --path 'fa2 kv_block=128'",
      .act = [&options] { return judge(options); },
      .options = {{.name = "what",
                   .what = "safetensors file: q, k, v, what else went in, and o or lse or both: "
                           "`attest list tensors` and `metadata`",
                   .place = &options.what,
                   .required = true},
                  {.name = "--problem",
                   .what = "words of a case line (`attest list case`): causal, scale=, lse=two, "
                           "...",
                   .place = &options.problem},
                  {.name = "--path",
                   .what = "how the kernel rounds: a name of `attest list paths`, fields of "
                           "`attest list precision`, or both; else the file's entry precision",
                   .place = &options.path},
                  {.name = "--rows",
                   .what = "query rows to judge of every head, drawn by --seed; else all",
                   .place = &options.rows,
                   .problem = positive_error},
                  {.name = "--heads",
                   .what = "query heads to judge, of all batch entries together; else all",
                   .place = &options.heads,
                   .problem = positive_error},
                  {.name = "--seed",
                   .what = "which rows and heads are drawn",
                   .place = &options.seed,
                   .problem = count_error},
                  {.name = "--json", .what = "file for the verdict", .place = &options.json},
                  {.name = "-o,--out",
                   .what = "safetensors file for margins and accepted ranges of all elements",
                   .place = &options.out}}};
}

CommandWord measure_words(MeasureCommand& options) {
  CommandWord command{
      .name = "measure",
      .what = "how large a subject's errors are, over a grid; or what its kernels cost",
      .example =
          "attest measure --subject ./mine.so --lengths 64,1024 --json now.json\n"
          "  attest measure --cost --call 'decode q=1x8x1x128 kv=1x512x128 in=bf16'",
      .act = [&options] { return measure(options); },
      .options = {{.name = "--subject", .what = "as for gate", .place = &options.subject.subject}}};
  add(command.options, grid_words(options));
  add(command.options, device(options.subject.device, options.subject.case_seconds));
  add(command.options,
      {{.name = "--numerics",
        .what = "of the emulator: a name of `attest list numerics`, or two joined by +",
        .place = &options.subject.emulation.numerics},
       {.name = "--schedule",
        .what = "seed of a legal order of warps, blocks and arrivals; 0: the strictest",
        .place = &options.schedule,
        .problem = count_error},
       {.name = "--seed",
        .what = "decides every value",
        .place = &options.seed,
        .problem = count_error},
       {.name = "--threads",
        .what = "cells at once; changes no result",
        .place = &options.threads,
        .problem = threads_error},
       {.name = "--json",
        .what = "file for all figures; bounds, directions, biases, stages and tiers: `attest list` "
                "says what they are",
        .place = &options.json},
       {.name = "--compare",
        .what = "file that an earlier --json wrote: is any cell worse than there?",
        .place = &options.compare},
       {.name = "--cost",
        .what = "instead: counters, registers and roofline, kernel by kernel",
        .place = &options.cost},
       {.name = "--call",
        .what = "with --cost: an operation and a case line; may be given more than once",
        .place = &options.calls}});
  return command;
}

CommandWord footprint_words(FootprintOptions& options) {
  return {.name = "footprint",
          .what = "bytes of a KV cache, exactly, with the formula",
          .example = "attest footprint --layers 32 --num-heads-kv 8 --head-dim 128 --tokens 8192",
          .act = [&options] { return footprint(options); },
          .options = {{.name = "--layers", .what = "", .place = &options.layers, .required = true},
                      {.name = "--num-heads-kv,--kv-heads",
                       .what = "",
                       .place = &options.num_heads_kv,
                       .required = true},
                      {.name = "--head-dim,--depth",
                       .what = "width of K, and of V",
                       .place = &options.head_dim,
                       .required = true},
                      {.name = "--head-dim-v,--v-depth",
                       .what = "width of V when it differs",
                       .place = &options.head_dim_v},
                      {.name = "--tokens", .what = "", .place = &options.tokens, .required = true},
                      {.name = "--batch", .what = "", .place = &options.batch},
                      {.name = "--format", .what = "of the cache", .place = &options.format}}};
}

CommandWord run_words(RunCommand& options) {
  CommandWord command{
      .name = "run",
      .what = "run any CUDA program on the emulator, with its checkers",
      .example = "attest run --numerics sm_90 --report found -- ./my_program --its-options",
      .act = [&options] { return run(options); },
      .options = {}};
  add(command.options,
      {{.name = "--numerics",
        .what = "of the emulator: a name of `attest list numerics`, or two joined by +",
        .place = &options.emulation.numerics},
       checks(options.emulation),
       {.name = "--schedule",
        .what = "seed of a legal order of warps, blocks and arrivals; 0: the strictest",
        .place = &options.schedule,
        .problem = count_error},
       {.name = "--schedules",
        .what = "run it this often, under one seed after another, until something is found",
        .place = &options.schedules,
        .problem = count_error},
       {.name = "--threads",
        .what = "host threads that run blocks; changes no result",
        .place = &options.threads,
        .problem = threads_error},
       {.name = "--limit",
        .what = "warp instructions per launch before a loop counts as endless; 0: none",
        .place = &options.limit,
        .problem = count_error},
       {.name = "--counters",
        .what = "count per kernel and source line what was executed",
        .place = &options.counters},
       {.name = "--json", .what = "file for what was found", .place = &options.json},
       {.name = "--report",
        .what = "folder for program.json and program.txt",
        .place = &options.report},
       {.name = "program",
        .what = "behind --: a program or script, and its arguments",
        .place = &options.program,
        .required = true}});
  return command;
}

}  // namespace

std::vector<CommandWord> command_words(AllOptions& options) {
  std::vector<CommandWord> commands;
  commands.push_back({.name = "gate",
                      .what = "judge a subject: may this change go in?",
                      .example = "attest gate --subject ./mine.so --budget 60s",
                      .act = [&options] { return gate(options.gate); },
                      .options = campaign(options.gate)});
  commands.push_back({.name = "fuzz",
                      .what = "gate without an end; findings join a corpus",
                      .example = "attest fuzz --subject ./mine.so --corpus found",
                      .act = [&options] { return fuzz(options.fuzz); },
                      .options = campaign(options.fuzz)});
  commands.back().options.push_back({.name = "--corpus",
                                     .what = "folder of findings, and of where to go on",
                                     .place = &options.fuzz.corpus});
  commands.push_back(run_words(options.run));
  commands.push_back(replay_words(options.replay));
  commands.push_back(compare_words(options.compare));
  commands.push_back(oracle_words(options.oracle));
  commands.push_back(judge_words(options.judge));
  commands.push_back(measure_words(options.measure));
  commands.push_back(footprint_words(options.footprint));
  commands.push_back(
      {.name = "list",
       .what = "every name there is",
       .example = "attest list properties",
       .act = [&options] { return list(options.list); },
       .options = {{.name = "what",
                    .what =
                        "properties, fills, formats, numerics, checks, subjects, mutants, paths, "
                        "precision, case (words of a case line), where (attributes), tensors and "
                        "metadata (of files), "
                        "bounds, directions, biases, stages and tiers (of measure), ...; else all",
                    .place = &options.list}}});
  return commands;
}

}  // namespace attest

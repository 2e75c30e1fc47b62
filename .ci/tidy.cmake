# The rules of the tree that a compiler does not check. Run as a test: cmake -DROOT=... -P tidy.cmake
# Prints one line per breach, with file and rule, and fails when there is one. Each rule is proven to
# bite by tidy_test.cmake. Knows text only: it neither compiles nor formats.
cmake_minimum_required(VERSION 3.25)

# --- the rules, as data ---------------------------------------------------------------------------

# A folder may include itself and only folders to its left; a property speaks of any subject, so
# properties/ never includes optimized/.
set(folders reference optimized properties fuzz reports)
set(may_include_reference reference)
set(may_include_optimized reference optimized)
set(may_include_properties reference properties)
set(may_include_fuzz reference optimized properties fuzz)
set(may_include_reports reference optimized properties fuzz reports)

# Third-party headers, and where alone they may appear (a regular expression over paths).
set(third_party
    "<(unsupported/)?Eigen/" "^reference/"
    "<boost/" "^reference/"
    "<(cuda|cuda_[a-z0-9_]+|device_[a-z_]+|vector_types|driver_types|cooperative_groups)[.]h>" "^(optimized|fuzz/strangers)/"
    "<(zstd|lz4|lz4hc)[.]h>" "^optimized/"
    "<dlpack/" "^optimized/"
    "<rapidcheck" "^properties/"
    "<Random123/" "^properties/"
    "<nlohmann/" "^reports/"
    "<CLI/" "^main[.]cpp$"
    "<g(test|mock)/" "(_test[.]cpp|[.]hpp)$"  # a header may, if only tests include it: see below
    "<benchmark/" "_benchmark[.]cpp$")

set(lines_max 400)           # for anything but tables, kernels and data
set(function_lines_max 70)
set(names_forbidden "utils?|helpers?|common|misc|golden|gold|expected|actual|tolerance|epsilon|fast|new")
set(words_forbidden "expected|actual|golden|tolerance|epsilon|utils|helpers|misc|rtol|atol|fast|optimized")
# Fields that have the field's names now; older spellings live on as strings that are read.
string(APPEND words_forbidden "|query_heads|v_depth|query_lengths|key_lengths|sums_cast|scales_in_p|p_shift|sum_lanes|key_block")
# The standard library's and our own folder's name are no names of ours.
set(words_allowed "numeric_limits<[a-z_ ]+>::epsilon|int_fast[0-9]+_t")

# --- machinery ------------------------------------------------------------------------------------

set(breaches 0)
macro(breach rule path text)
  message(NOTICE "${path}: ${rule}: ${text}")
  math(EXPR breaches "${breaches} + 1")
endmacro()

# Every file of the tree, tracked or about to be; ignored files are nobody's concern.
find_program(git git)
if(git AND EXISTS "${ROOT}/.git")
  execute_process(COMMAND ${git} -C "${ROOT}" ls-files -co --exclude-standard
                  OUTPUT_VARIABLE listing OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" files "${listing}")
else()
  file(GLOB_RECURSE files RELATIVE "${ROOT}" "${ROOT}/*")
  list(FILTER files EXCLUDE REGEX "^[.](build|cache|git)/")
endif()
list(REMOVE_DUPLICATES files)
if(NOT files)
  message(FATAL_ERROR "no files under ROOT=${ROOT}: nothing was checked")
endif()

function(check_includes path)
  file(STRINGS "${ROOT}/${path}" includes REGEX "^[ \t]*#[ \t]*include")
  string(REGEX MATCH "^[a-z]+" from "${path}")
  foreach(line IN LISTS includes)
    if(line MATCHES "\"([^\"/]+)/" AND from IN_LIST folders)
      set(to "${CMAKE_MATCH_1}")
      if(NOT to IN_LIST may_include_${from})
        breach(include-rule "${path}" "${from}/ may not include ${to}/ (${line})")
      endif()
    endif()
    if(line MATCHES "/testing/" AND NOT path MATCHES "/testing/|_(test|benchmark|fuzz)[.]cpp$")
      breach(testing "${path}" "what lies in testing/ is for tests alone (${line})")
    endif()
    if(line MATCHES "<g(test|mock)/" AND path MATCHES "[.]hpp$")
      set_property(GLOBAL APPEND PROPERTY test_headers "${path}")
    endif()
    if(NOT path MATCHES "_test[.]cpp$" AND line MATCHES "\"([^\"]+)\"")
      set_property(GLOBAL APPEND PROPERTY included_by_code "${CMAKE_MATCH_1} in ${path}")
    endif()
    set(rules "${third_party}")
    while(rules)
      list(POP_FRONT rules header place)
      if(line MATCHES "${header}" AND NOT path MATCHES "${place}")
        breach(third-party "${path}" "${line} belongs only into ${place}")
      endif()
    endwhile()
  endforeach()
  set(breaches ${breaches} PARENT_SCOPE)
endfunction()

function(check_name path)
  get_filename_component(name "${path}" NAME)
  set(upper_case "^(CMakeLists[.]txt|CMakePresets[.]json|README[.]md|CONTRIBUTING[.]md|LICENSE)$")
  if(NOT name MATCHES "^[.]?[a-z0-9][a-z0-9_]*([.-][a-z0-9_]+)*$" AND NOT name MATCHES "${upper_case}")
    breach(file-name "${path}" "names are snake_case")
  endif()
  if(name MATCHES "(^|_)(${names_forbidden})([_.]|$)")
    breach(file-name "${path}" "'${CMAKE_MATCH_2}' says nothing about what lives here")
  endif()
  set(breaches ${breaches} PARENT_SCOPE)
endfunction()

function(check_words path)
  file(READ "${ROOT}/${path}" text)
  if(text MATCHES "(TODO|FIXME|XXX|HACK)[^a-zA-Z]")
    breach(leftover "${path}" "${CMAKE_MATCH_1}: finish it, or file an issue")
  endif()
  if(text MATCHES "DISABLED_|GTEST_SKIP")
    breach(skipped-test "${path}" "${CMAKE_MATCH_0}: a test that does not run proves nothing")
  endif()
  # Names only (raw strings first: they may hold anything): comments and texts may use the words of the trade.
  string(REGEX REPLACE "R\"[(]([^)]|[)][^\"])*[)]\"" "" text "${text}")
  string(REGEX REPLACE "\"([^\"\\\n]|\\\\[^\n])*\"" "\"\"" text "${text}")
  string(REGEX REPLACE "//[^\n]*" "" text "${text}")
  string(REGEX REPLACE "${words_allowed}" "" text "${text}")
  if(text MATCHES "(^|[^a-zA-Z])(${words_forbidden})([^a-zA-Z]|$)")
    breach(word "${path}" "'${CMAKE_MATCH_2}' is no word of this project: see CONTRIBUTING.md")
  endif()
  set(breaches ${breaches} PARENT_SCOPE)
endfunction()

function(check_length path)
  file(READ "${ROOT}/${path}" text)
  string(REGEX REPLACE "[^\n]" "" line_ends "${text}")
  string(LENGTH "${line_ends}" lines)
  if(lines GREATER lines_max)
    breach(file-length "${path}" "${lines} lines; at most ${lines_max}")
  endif()
  set(breaches ${breaches} PARENT_SCOPE)
endfunction()

# Source files that no CMakeLists.txt on the way up names, alone or through a pattern.
function(check_is_built path)
  get_filename_component(stem "${path}" NAME_WE)
  get_filename_component(folder "${path}" DIRECTORY)
  string(FIND "${all_cmake_lists}" "/${path}" by_full_path)
  if(NOT by_full_path EQUAL -1)
    return()
  endif()
  while(TRUE)
    if(EXISTS "${ROOT}/${folder}/CMakeLists.txt")
      file(READ "${ROOT}/${folder}/CMakeLists.txt" text)
      if(text MATCHES "(^|[^a-z0-9_])${stem}([^a-z0-9_]|$)")
        return()
      endif()
      file(RELATIVE_PATH rest "${ROOT}/${folder}" "${ROOT}/${path}")
      string(REGEX MATCHALL "[a-z0-9_/]*[*][a-z0-9_]*[.](cpp|cu|c)" patterns "${text}")
      foreach(pattern IN LISTS patterns)
        string(REPLACE "." "[.]" pattern "${pattern}")
        string(REPLACE "*" "[^/]*" pattern "${pattern}")
        if(rest MATCHES "^${pattern}$")
          return()
        endif()
      endforeach()
    endif()
    if(folder STREQUAL "")
      break()
    endif()
    get_filename_component(folder "${folder}" DIRECTORY)
  endwhile()
  breach(dead-file "${path}" "no CMakeLists.txt builds it")
  set(breaches ${breaches} PARENT_SCOPE)
endfunction()

function(check_mutant path)
  file(READ "${ROOT}/${path}" text)
  foreach(line "Mutant: " "Killed by: ")
    if(NOT text MATCHES "(^|\n)[#/ ]*${line}[^\n]")
      breach(mutant "${path}" "has no line '${line}...'")
    endif()
  endforeach()
  set(breaches ${breaches} PARENT_SCOPE)
endfunction()

# A path of somebody's machine means nothing on another.
function(check_paths path)
  file(READ "${ROOT}/${path}" text)
  if(text MATCHES "(^|[^a-zA-Z0-9_.}])/(work|root|home|Users)/")
    breach(outside-path "${path}" "'${CMAKE_MATCH_0}' lies outside the repository")
  endif()
  set(breaches ${breaches} PARENT_SCOPE)
endfunction()

# --- run ------------------------------------------------------------------------------------------

set(all_cmake_lists "")
foreach(path IN LISTS files)
  if(path MATCHES "CMakeLists[.]txt$" AND EXISTS "${ROOT}/${path}")
    file(READ "${ROOT}/${path}" text)
    string(APPEND all_cmake_lists "${text}")
    get_filename_component(folder "${ROOT}/${path}" DIRECTORY)
    string(REGEX MATCHALL "[.][.]/[a-z0-9_./]*[.](cpp|cu|c)" relatives "${text}")
    foreach(relative IN LISTS relatives)
      get_filename_component(absolute "${relative}" ABSOLUTE BASE_DIR "${folder}")
      file(RELATIVE_PATH named "${ROOT}" "${absolute}")
      string(APPEND all_cmake_lists " /${named} ")
    endforeach()
  endif()
endforeach()

set(sources "")
foreach(path IN LISTS files)
  if(NOT EXISTS "${ROOT}/${path}" OR path MATCHES "(^|/)(corpus|approved)/")
    continue()  # data, or deleted and not yet committed
  endif()
  check_name("${path}")
  set(own_rules FALSE)
  if(path MATCHES "^[.]ci/tidy")
    set(own_rules TRUE)  # it has to spell what it forbids
  endif()
  if(path MATCHES "[.](cpp|hpp|c|h|cu|cuh|def)$")
    list(APPEND sources "${path}")
    check_includes("${path}")
    check_words("${path}")
  endif()
  if(path MATCHES "[.](cpp|cu|c)$")
    check_is_built("${path}")
  endif()
  if(path MATCHES "([.](cpp|hpp|c|h|cmake|sh|awk|md)|CMakeLists[.]txt)$")
    check_length("${path}")
  endif()
  if(path MATCHES "[.]patch$")
    check_mutant("${path}")
  endif()
  if(path MATCHES "[.](cpp|hpp|c|h|cu|cuh|def|cmake|sh|awk|md|txt|json|patch)$" AND NOT own_rules)
    check_paths("${path}")
  endif()
endforeach()

get_property(test_headers GLOBAL PROPERTY test_headers)
get_property(included_by_code GLOBAL PROPERTY included_by_code)
foreach(use IN LISTS included_by_code)
  string(REGEX MATCH "^[^ ]+" header "${use}")
  string(REGEX MATCH "[^ ]+$" path "${use}")
  if(header IN_LIST test_headers AND NOT path IN_LIST test_headers)
    breach(third-party "${path}" "${header} includes GoogleTest, and this is no test")
  endif()
endforeach()

list(FILTER sources INCLUDE REGEX "[.](cpp|hpp)$")
if(sources)
  execute_process(COMMAND awk -v limit=${function_lines_max} -f "${CMAKE_CURRENT_LIST_DIR}/function_length.awk"
                          ${sources}
                  WORKING_DIRECTORY "${ROOT}" OUTPUT_VARIABLE long_functions RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(NOTICE "${long_functions}")
    math(EXPR breaches "${breaches} + 1")
  endif()
endif()

list(LENGTH files count)
if(breaches GREATER 0)
  message(FATAL_ERROR "${breaches} breaches in ${count} files")
endif()
message(STATUS "${count} files, no breach")

# Puts the bundle together: cmake -DOUTPUT=... -DBIN=... -DPLUGIN=... -DPROGRAMS=... -DCUDART=...
# -DLAUNCHER=... -P assemble.cmake. Which libraries belong into it is asked of the programs; glibc
# stays out, since it must fit the machine's own loader, and the version needed is written down. The
# libraries of GCC have a folder of their own, because they ask for a later glibc than all the rest,
# and the launcher does without them where the machine has some that will do.
cmake_minimum_required(VERSION 3.25)
set(bytes_max 62914560)  # 60 MiB

file(REMOVE_RECURSE ${OUTPUT})
file(MAKE_DIRECTORY ${OUTPUT}/lib/gcc ${OUTPUT}/bin/plugins)
file(COPY ${BIN}/attest ${BIN}/attest-worker ${BIN}/emulator ${BIN}/corpus ${PROGRAMS}
     DESTINATION ${OUTPUT}/bin)
file(COPY ${PLUGIN} DESTINATION ${OUTPUT}/bin/plugins)
# NVIDIA's own: Attachment A of the CUDA Toolkit's EULA lists libcudart as redistributable.
cmake_path(GET CUDART FILENAME cudart_name)
file(REAL_PATH ${CUDART} cudart_file)
file(COPY_FILE ${cudart_file} ${OUTPUT}/lib/${cudart_name})

# --- the libraries that a bare machine lacks -------------------------------------------------------
set(of_glibc "^(ld-linux-x86-64|lib(c|m|dl|rt|pthread))[.]so[.]")
file(GLOB emulators ${OUTPUT}/bin/emulator/*)
set(programs)
foreach(program attest attest-worker)
  list(APPEND programs ${OUTPUT}/bin/${program})
endforeach()
foreach(program IN LISTS PROGRAMS)
  cmake_path(GET program FILENAME name)
  list(APPEND programs ${OUTPUT}/bin/${name})
endforeach()
cmake_path(GET PLUGIN FILENAME plugin_name)
file(GET_RUNTIME_DEPENDENCIES
  EXECUTABLES ${programs}
  LIBRARIES ${emulators} ${OUTPUT}/bin/plugins/${plugin_name}
  RESOLVED_DEPENDENCIES_VAR needed UNRESOLVED_DEPENDENCIES_VAR missing
  PRE_EXCLUDE_REGEXES ${of_glibc} "^libcudart[.]so[.]")
if(missing)
  message(FATAL_ERROR "The bundle would lack libraries that this machine lacks too: ${missing}")
endif()
foreach(library IN LISTS needed)
  cmake_path(GET library FILENAME name)
  file(REAL_PATH ${library} file)
  set(folder lib)
  if(name MATCHES "^lib(stdc[+][+]|gcc_s)[.]")
    set(folder lib/gcc)
  endif()
  file(COPY_FILE ${file} ${OUTPUT}/${folder}/${name})
endforeach()

# --- which glibc the machine must have, and how large the folder is --------------------------------
file(GLOB_RECURSE files ${OUTPUT}/bin/* ${OUTPUT}/lib/*)
set(bytes 0)
set(glibc_bin 2.0)  # and of lib, but for lib/gcc
set(glibc_gcc 2.0)
foreach(file IN LISTS files)
  file(SIZE ${file} size)
  math(EXPR bytes "${bytes} + ${size}")
  if(file MATCHES "/corpus/")
    continue()
  endif()
  set(part bin)
  if(file MATCHES "/lib/gcc/")
    set(part gcc)
  endif()
  execute_process(COMMAND objdump -T ${file} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "GLIBC_[0-9]+[.][0-9]+" versions "${symbols}")
  list(REMOVE_DUPLICATES versions)
  foreach(version IN LISTS versions)
    string(REPLACE "GLIBC_" "" version ${version})
    if(version VERSION_GREATER glibc_${part})
      set(glibc_${part} ${version})
    endif()
  endforeach()
endforeach()
if(bytes GREATER bytes_max)
  message(FATAL_ERROR "The bundle has ${bytes} bytes, more than the ${bytes_max} it may have.")
endif()
set(glibc "glibc ${glibc_gcc}, or ${glibc_bin} with a libstdc++ as new as this one")
file(WRITE ${OUTPUT}/lib/needed "${glibc}\n")
file(COPY ${LAUNCHER} DESTINATION ${OUTPUT})  # last: the folder is whole when it is there
file(TOUCH ${OUTPUT}/run)
message(STATUS "${OUTPUT}: ${bytes} bytes, needs ${glibc}")

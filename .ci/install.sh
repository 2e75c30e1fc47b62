# shellcheck shell=bash
# shellcheck disable=SC2154 # $root is the sourcing script's
# Sourced by ./attest and .ci/run: brings what the build needs onto a Debian or Ubuntu machine.
# Knows packages and nvcc; does not know how to build. Needs $root. Everything it says goes to
# stderr. What it cannot do ends the script with status 2 and the exact commands to type.

say() { printf 'attest: %s\n' "$*" >&2; }
give_up() {
  say "$@"
  exit 2
}

# install_packages GROUP...: of .ci/packages.txt. Asks the network nothing when all are there.
install_packages() {
  command -v dpkg-query > /dev/null || {
    say "this is no Debian or Ubuntu: not checking for packages; .ci/packages.txt lists them"
    return 0
  }
  local group name reason wanted=" $* " missing=() installed
  installed=$'\n'$(dpkg-query -W -f '${Package} ${db:Status-Abbrev}\n' | sed -n 's/ ii *$//p')$'\n'
  while read -r group name reason; do
    [[ $wanted == *" $group "* && $installed != *$'\n'"$name"$'\n'* ]] || continue
    say "$name is missing: $reason"
    missing+=("$name")
  done < "$root/.ci/packages.txt"
  ((${#missing[@]} > 0)) || return 0
  local as_root=() commands
  commands="  apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
  if ((EUID != 0)); then
    command -v sudo > /dev/null || give_up $'cannot install packages; as root, type\n'"$commands"
    as_root=(sudo)
    if [[ ! -t 0 || ! -t 2 ]]; then
      as_root=(sudo -n) # never waits for a password that nobody types
    else
      local answer
      read -r -p "attest: install them with sudo? [Y/n] " answer
      [[ -z $answer || $answer == [Yy]* ]] || give_up $'not installed; as root, type\n'"$commands"
    fi
  fi
  say "installing ${#missing[@]} packages with apt-get"
  local log
  log=$(mktemp)
  # A failed update is no reason to stop: the lists may be there already.
  if ! { "${as_root[@]}" apt-get update -qq || true
         "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
           apt-get install -y -qq --no-install-recommends "${missing[@]}"; } > "$log" 2>&1 < /dev/null
  then
    tail -n 20 "$log" >&2
    rm -f "$log"
    give_up $'these packages could not be installed; as root, type\n'"$commands"
  fi
  rm -f "$log"
}

# True for an nvcc of CUDA 12 or newer: older ones have no C++20.
usable_nvcc() {
  local text
  text=$("$1" --version 2> /dev/null) && [[ $text =~ release\ ([0-9]+)\. ]] &&
    ((BASH_REMATCH[1] >= 12))
}

# Puts an nvcc first on PATH: the one there, that of /usr/local/cuda, or NVIDIA's wheels in .cache/.
provide_nvcc() {
  local found wheels=$root/.cache/cuda
  found=$(command -v nvcc || true)
  if [[ -n $found ]] && usable_nvcc "$found"; then return 0; fi
  for found in /usr/local/cuda/bin "$wheels/nvidia/cu13/bin"; do
    if [[ -x $found/nvcc ]] && usable_nvcc "$found/nvcc"; then
      export PATH=$found:$PATH
      return 0
    fi
  done
  say "no nvcc of CUDA 12 or newer: fetching NVIDIA's wheels (100 MB) from PyPI into .cache/cuda"
  python3 -c 'import ensurepip, venv' 2> /dev/null || install_packages nvcc
  local part=$wheels.part log=$root/.cache/pip.log
  rm -rf "$part" "$wheels"
  mkdir -p "$part"
  if ! { python3 -m venv "$part/venv" &&
         "$part/venv/bin/python" -m pip install --no-deps --require-hashes --only-binary :all: \
           --target "$part" -r "$root/.ci/nvcc-wheels.txt"; } > "$log" 2>&1 < /dev/null
  then
    tail -n 20 "$log" >&2
    give_up "nvcc could not be fetched (whole log: $log); install the CUDA Toolkit and put nvcc on" \
            $'PATH, or type\n' "  python3 -m pip install --no-deps --target $wheels" \
            "-r $root/.ci/nvcc-wheels.txt"
  fi
  rm -rf "$part/venv"
  # The wheels lack the names by which linkers look for the runtime.
  ln -s libcudart.so.13 "$part/nvidia/cu13/lib/libcudart.so"
  ln -s lib "$part/nvidia/cu13/lib64"
  mv "$part" "$wheels"
  export PATH=$wheels/nvidia/cu13/bin:$PATH
  usable_nvcc nvcc || give_up "the nvcc fetched from PyPI does not run: $wheels/nvidia/cu13/bin/nvcc"
}

#!/usr/bin/env bash
# Installs the Debian packages that are missing, and only those that the purpose needs: setup.sh [build|package|wheel|page|test|check]. Asks for sudo
# only if not root. Each purpose but page needs what the one before it needs.
set -euo pipefail
purpose=${1:-build}

packages=(cmake ninja-build g++ pkg-config git python3
  libdnnl-dev ocl-icd-opencl-dev libhwy-dev libsimdjson-dev nlohmann-json3-dev libyaml-cpp-dev libfmt-dev libpcre2-dev libutf8proc-dev libxxhash-dev
  libsnappy-dev libzstd-dev zlib1g-dev liburing-dev
  node-d3)
case $purpose in
  build) ;;
  package) packages+=(dpkg-dev file libopenmpi-dev) ;;
  wheel) packages+=(patchelf binutils) ;;
  page) packages=(cmake ninja-build nlohmann-json3-dev node-d3 clang-19 lld-19 llvm-19 wasi-libc libclang-rt-19-dev-wasm32) ;;
  test) packages+=(libgtest-dev chromium openmpi-bin libopenmpi-dev man-db zsh fish python3-jsonschema) ;;
  check) packages+=(libgtest-dev chromium dpkg-dev file debootstrap clang clang-format clang-tidy libclang-rt-14-dev
    patchelf binutils python3-venv mypy) ;;
  *) echo "setup.sh: '$purpose' is none of build, package, wheel, page, test, check" >&2; exit 2 ;;
esac

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

echo "installing ${missing[*]}"
sudo=""
[ "$(id -u)" -eq 0 ] || sudo="sudo"
$sudo apt-get update -qq
DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null

#!/usr/bin/env bash
# Fetches what `make page` compiles beside snug: the sources of the libraries that Debian has no WebAssembly packages of, each at the
# version of Debian 12 (docs/dependencies.md), into build-page/sources. Ends with 77 where they cannot be fetched.
set -Eeuo pipefail
trap 'echo "sources.sh: the sources of the page'"'"'s libraries cannot be fetched from the archive of Debian" >&2; exit 77' ERR
cd "$(dirname "$0")/../.."
into=$PWD/build-page/sources
apt=$into/apt
opened=""

# Debian's archive of sources alone, with lists of its own, so that nothing of the machine changes.
open_archive() {
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
  echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm main" >"$apt/sources.list"
  cat >"$apt/conf" <<CONF
Dir::State "$apt";
Dir::State::Lists "$apt/lists";
Dir::Cache "$apt/cache";
Dir::Etc::SourceList "$apt/sources.list";
Dir::Etc::SourceParts "-";
APT::Sandbox::User "root";
CONF
  APT_CONFIG=$apt/conf apt-get update -qq
  opened=yes
}

# unpack PACKAGE VERSION [patterns of what is needed…]: into a folder of the package's name.
unpack() {
  local package=$1 version=$2 folder=$into/$1 mark="$*"
  shift 2
  [ "$(cat "$folder/.unpacked" 2>/dev/null)" = "$mark" ] && return
  [ -n "$opened" ] || open_archive
  env -C "$apt" APT_CONFIG="$apt/conf" apt-get source -qq --download-only "$package=$version" >/dev/null
  rm -rf "$folder"
  mkdir -p "$folder"
  tar xf "$apt/${package}_"*.orig.tar.* -C "$folder" --strip-components=1 --wildcards "$@"
  rm "$apt/${package}_"*
  echo "$mark" >"$folder/.unpacked"
}

unpack fmtlib 9.1.0+ds1-2 '*/LICENSE*' '*/include' '*/src'
unpack simdjson 3.0.1-1 '*/LICENSE*' '*/singleheader'
unpack yaml-cpp 0.7.0+dfsg-8 '*/LICENSE*' '*/include' '*/src'
unpack utf8proc 2.8.0-1 '*/LICENSE*' '*.c' '*.h'
unpack xxhash 0.8.1-1 '*/LICENSE*' '*.c' '*.h'
unpack llvm-toolchain-19 '1:19.1.7-3~deb12u1' '*-19_19.1.7/libcxx/LICENSE.TXT' '*-19_19.1.7/libcxx/include' '*-19_19.1.7/libcxx/src' '*-19_19.1.7/libcxx/vendor/llvm' \
  '*-19_19.1.7/libcxxabi/include' '*-19_19.1.7/libcxxabi/src' '*-19_19.1.7/libunwind/include' '*-19_19.1.7/libunwind/src'

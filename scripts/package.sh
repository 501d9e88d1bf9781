#!/usr/bin/env bash
# Makes the Debian packages of the release build, in build/packages.
set -euo pipefail
cd "$(dirname "$0")/.."
cmake --preset release >/dev/null  # Open MPI may have come since
cmake --build --preset release --target shipped
rm -rf build/packages
(cd build && cpack -G DEB -B packages >packages.log) || { cat build/packages.log; exit 1; }
rm -rf build/packages/_CPack_Packages
ls build/packages/*.deb

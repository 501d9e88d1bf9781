# The few commands a person needs. Each sets up what it lacks (Debian 12) and says so.

.PHONY: build install package wheel page test check exhaustive demo bench fuzz format clean

build:
	@scripts/setup.sh build
	@cmake --preset release >/dev/null
	@cmake --build --preset release --target snug

# Into PREFIX: the program, its manual page, what shells complete, schemas.
PREFIX ?= /usr/local
install: build
	@cmake --build --preset release --target shipped
	@cmake --install build --prefix $(PREFIX)

# Debian packages, in build/packages.
package: build
	@scripts/setup.sh package
	@scripts/package.sh

# The Python package with the program and all that it needs, in build/wheel.
wheel:
	@scripts/setup.sh wheel
	@python3 python/packing/snug_build.py build/wheel

# The planner as a page for a browser, in build-page/page: a folder to serve.
page:
	@scripts/page.sh

demo: build
	@demo/run.sh

# What shows a user that it works: the release build's tests and every command of the documents.
test:
	@scripts/setup.sh test
	@scripts/test.sh

# All other gates: format, rooms, CUDA's boundary, the planner alone, sanitizers, fuzzing, clang-tidy.
check:
	@scripts/setup.sh check
	@scripts/check.sh

# Larger grids, in minutes more.
exhaustive:
	@scripts/setup.sh test
	@scripts/exhaustive.sh

bench:
	@scripts/setup.sh test
	@cmake --preset release >/dev/null
	@cmake --build --preset release
	@bench/run.sh

fuzz:
	@scripts/setup.sh check
	@scripts/fuzz.sh

format:
	@git ls-files '*.cpp' '*.h' '*.cu' '*.cuh' | xargs clang-format -i

clean:
	@rm -rf build build-*

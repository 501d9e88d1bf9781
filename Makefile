# The few commands a person needs. Each sets up what it lacks (Debian 12) and says so.

.PHONY: build test check exhaustive demo bench fuzz format clean

build:
	@scripts/setup.sh build
	@cmake --preset release >/dev/null
	@cmake --build --preset release --target snug

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

# The few commands a person needs. Each sets up what is missing (Debian 12) and says so.

.PHONY: build test demo bench fuzz format clean

build: setup
	@cmake --preset release >/dev/null
	@cmake --build --preset release

test: build
	@scripts/test.sh

demo: build
	@demo/run.sh

bench: build
	@bench/run.sh

fuzz: setup
	@scripts/fuzz.sh

.PHONY: setup
setup:
	@scripts/setup.sh

format:
	@git ls-files '*.cpp' '*.h' '*.cu' '*.cuh' | xargs clang-format -i

clean:
	@rm -rf build build-*

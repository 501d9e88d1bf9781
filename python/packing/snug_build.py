"""The build backend of the Python package (PEP 517): builds snug with CMake, then packs program, planner and the libraries that
they need into one wheel, which serves every Python.

`--config-settings build=none` packs build/snug and build-planner as they are. Standard library alone, so nothing is fetched.
"""

import os
import pathlib
import re
import subprocess
import tempfile

import libraries
import wheels

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build" / "snug"
PLANNER = ROOT / "build-planner" / "libsnug_planner.so"


def version():
    return re.search(r"project\(snug VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]


def compile_all():
    for preset, target, more in (("release", "snug", []), ("planner", "snug_planner", ["-D", "CMAKE_BUILD_TYPE=Release"])):
        subprocess.run(["cmake", "--preset", preset, *more], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["cmake", "--build", "--preset", preset, "--target", target], cwd=ROOT, check=True)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    if (config_settings or {}).get("build") != "none":
        compile_all()
    with tempfile.TemporaryDirectory(prefix="snug-wheel-") as name:
        package = pathlib.Path(name) / "snug"
        wheels.copy_package(ROOT / "python" / "snug", package)
        tag = libraries.bundle(PROGRAM, PLANNER, package)
        return wheels.write(package, version(), tag, ROOT, pathlib.Path(wheel_directory))


def get_requires_for_build_wheel(config_settings=None):
    return []


def get_requires_for_build_sdist(config_settings=None):
    return []


class UnsupportedOperation(Exception):
    """By this name PEP 517 knows that there is no sdist."""


def build_sdist(sdist_directory, config_settings=None):
    raise UnsupportedOperation("the source is the repository: pip install .")


if __name__ == "__main__":  # scripts/wheel.sh DIRECTORY [none]
    import sys

    directory = pathlib.Path(sys.argv[1])
    os.makedirs(directory, exist_ok=True)
    print(directory / build_wheel(directory, {"build": sys.argv[2]} if len(sys.argv) > 2 else None))

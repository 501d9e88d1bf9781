"""Shared libraries of a wheel: which must come along, where they are looked for, and the oldest system that they run on."""

import pathlib
import re
import shutil
import subprocess

# What every Linux of a manylinux tag has (PEP 600, auditwheel's policy), of what snug needs.
EVERYWHERE = {
    "libc.so.6",
    "libm.so.6",
    "libgcc_s.so.1",
    "libstdc++.so.6",
    "libz.so.1",
    "libpthread.so.0",
    "libdl.so.2",
    "librt.so.1",
    "ld-linux-x86-64.so.2",
    "linux-vdso.so.1",
}

# The first glibc whose distributions have a libstdc++ of that version (auditwheel's policy).
GLIBC_OF_GLIBCXX = {29: 34, 30: 35, 31: 38, 32: 38, 33: 40}


def output_of(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def needed(file):
    """{name: path} of the libraries that a file needs, those of libraries included, that not every system has."""
    found = dict(re.findall(r"^\s*(\S+) => (\S+) \(", output_of("ldd", str(file)), re.MULTILINE))
    return {name: pathlib.Path(path) for name, path in found.items() if name not in EVERYWHERE}


def newest(files, prefix):
    """The last part of the newest version of that kind that the files' symbols ask for."""
    versions = {
        int(last) for file in files for last in re.findall(rf"{prefix}\.(\d+)\b", output_of("objdump", "-T", str(file)))
    }
    return max(versions, default=0)


def tag_of(files):
    """manylinux_2_N: N by the symbols of glibc, and by those of libstdc++, which come with it."""
    glibcxx = newest(files, r"GLIBCXX_3\.4")
    of_glibcxx = next((glibc for last, glibc in sorted(GLIBC_OF_GLIBCXX.items()) if last >= glibcxx), None)
    if of_glibcxx is None:
        raise SystemExit(f"GLIBCXX_3.4.{glibcxx} is newer than libraries.py knows: add it to GLIBC_OF_GLIBCXX")
    return f"manylinux_2_{max(newest(files, r'GLIBC_2'), of_glibcxx)}_x86_64"


def licence_of(path):
    """What Debian says of a library's licence; the file that it comes with."""
    package = output_of("dpkg", "-S", f"*/{path.parent.name}/{path.name}").partition(":")[0]
    return pathlib.Path("/usr/share/doc") / package / "copyright"


def look_in(file, path):
    subprocess.run(["patchelf", "--set-rpath", path, str(file)], check=True)


def take(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(0o755)
    subprocess.run(["strip", "--strip-unneeded", str(target)], check=True)


def bundle(program, planner, package):
    """Puts bin/snug, lib/libsnug_planner.so and what both need into the package; the platform's tag."""
    for tool in ("patchelf", "objdump", "ldd"):
        if shutil.which(tool) is None:
            raise SystemExit(f"{tool} is missing: scripts/setup.sh wheel installs it")
    take(program, package / "bin" / "snug")
    take(planner, package / "lib" / "libsnug_planner.so")
    for name, path in {**needed(program), **needed(planner)}.items():
        take(path, package / "lib" / name)
        (package / "licences").mkdir(exist_ok=True)
        shutil.copyfile(licence_of(path), package / "licences" / f"{name}.txt")
    look_in(package / "bin" / "snug", "$ORIGIN/../lib")
    for file in (package / "lib").iterdir():
        look_in(file, "$ORIGIN")
    return tag_of([package / "bin" / "snug", *(package / "lib").iterdir()])

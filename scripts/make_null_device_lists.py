#!/usr/bin/env python3
"""Writes src/measure/null_device/lists/: make_null_device_lists.py SITE_PACKAGES… (one for each version of PyTorch that is to be covered)

Names of functions of NVIDIA's libraries that the null device need not write out: those without work to do, and those it refuses by
name. The names are what the libraries in PyTorch's wheels export; what the sources beside the lists define is left out."""

import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent.parent / "src" / "measure" / "null_device"
# The ways into libraries that are not pretended, with the error that each gives for "not supported".
CLOSED = {"cudnnCreate": 3000, "cudnnBackendCreateDescriptor": 3000, "cusolverDnCreate": 9, "cusolverSpCreate": 9,
          "cusolverMgCreate": 9, **{name: 801 for name in (
              "cuMulticastCreate", "cuMulticastAddDevice", "cuMulticastBindMem", "cuMulticastUnbind",
              "cuMemGetAllocationPropertiesFromHandle", "cuTexObjectCreate", "cuIpcGetMemHandle", "cuIpcOpenMemHandle_v2")}}
HEAD = "// Written by scripts/make_null_device_lists.py from the libraries that PyTorch's wheels bring along.\n"


def exported(sites, library):
    """Functions that a library exports under names of C, in any of the wheels."""
    found = set()
    for site in sites:
        for path in pathlib.Path(site).glob(f"nvidia/**/{library}.so*"):
            text = subprocess.run(["nm", "-D", "--defined-only", str(path)], capture_output=True, text=True, check=True).stdout
            found |= {line.split()[-1].split("@")[0] for line in text.splitlines() if re.search(r" [TWi] ", line)}
    return {name for name in found if re.fullmatch(r"(__)?(cuda|cublas|cusparse|cufft|curand|nccl)\w+", name)}


def main():
    sites = sys.argv[1:]
    if not sites:
        sys.exit(__doc__)
    sources = "".join(path.read_text() for path in sorted(HERE.glob("*.cpp")))
    written = set(re.findall(r"SNUG_ENTRY [^;{]*?\b(\w+)\(", sources))

    def rest(*libraries):
        return sorted(set().union(*(exported(sites, library) for library in libraries)) - written)

    nothing = "SNUG_DOES_NOTHING({})\n".format
    refused = "SNUG_REFUSED({}, {})\n".format
    others = rest("libcusparse", "libcufft", "libcurand", "libnccl")
    sized = [name for name in others if "ufferSize" in name or "GetSize" in name or "EstimateSize" in name]  # would answer with a size
    lists = {
        "cublas.inc": [nothing(name) for name in rest("libcublas", "libcublasLt")],
        "others.inc": [nothing(name) for name in others if name not in sized],
        "refused.inc": [refused(name, 801) for name in rest("libcudart")] + [refused(name, 10) for name in sized]
                       + [refused(*item) for item in CLOSED.items()],
    }
    for name, lines in lists.items():
        (HERE / "lists" / name).write_text(HEAD + "".join(lines))
        print(f"{name}: {len(lines)}")


if __name__ == "__main__":
    main()

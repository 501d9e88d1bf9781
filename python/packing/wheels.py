"""A wheel: a zip of a package with its metadata (PEP 427, 566), the same bytes from the same files."""

import base64
import hashlib
import shutil
import zipfile

MOMENT = (2020, 1, 1, 0, 0, 0)  # of every entry, so that a build can be repeated


def copy_package(source, target):
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))


def metadata(version, root):
    lines = [
        "Metadata-Version: 2.1",
        "Name: snug",
        f"Version: {version}",
        "Summary: The memory of fine-tuning, planned to the byte",
        "License: Apache-2.0",
        "Requires-Python: >=3.9",
        "Description-Content-Type: text/markdown",
        "License-File: LICENSE",
        "",
        (root / "README.md").read_text(),
    ]
    return "\n".join(lines)


def entries(package, info, version, tag, root):
    """(name, bytes, whether it is a program) of everything but RECORD."""
    for path in sorted(package.rglob("*")):
        if path.is_file():
            yield f"snug/{path.relative_to(package)}", path.read_bytes(), path.parent.name in ("bin", "lib")
    yield f"{info}/METADATA", metadata(version, root).encode(), False
    yield f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: snug\nRoot-Is-Purelib: false\nTag: py3-none-{tag}\n".encode(), False
    yield f"{info}/entry_points.txt", b"[console_scripts]\nsnug = snug._program:main\n", False
    yield f"{info}/LICENSE", (root / "LICENSE").read_bytes(), False


def write(package, version, tag, root, directory):
    """Writes the wheel; its name."""
    info, name = f"snug-{version}.dist-info", f"snug-{version}-py3-none-{tag}.whl"
    record = []
    with zipfile.ZipFile(directory / name, "w", zipfile.ZIP_DEFLATED) as wheel:

        def add(entry, content, is_program):
            header = zipfile.ZipInfo(entry, MOMENT)
            header.external_attr = (0o100755 if is_program else 0o100644) << 16
            header.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(header, content)

        for entry, content, is_program in entries(package, info, version, tag, root):
            add(entry, content, is_program)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record.append(f"{entry},sha256={digest},{len(content)}\n")
        add(f"{info}/RECORD", "".join([*record, f"{info}/RECORD,,\n"]).encode(), False)
    return name

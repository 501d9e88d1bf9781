"""The wheel: whole in itself, and as its RECORD says."""

import base64
import hashlib
import importlib.metadata
import pathlib
import re
import subprocess
import unittest

import snug

PACKAGE = pathlib.Path(snug.__file__).resolve().parent
EVERYWHERE = r"lib(c|m|gcc_s|stdc\+\+|z|pthread|dl|rt)\.so\.\d+"  # what PEP 600 lets a wheel rely on, of what snug needs


class Wheel(unittest.TestCase):
    def test_program_and_libraries_find_what_they_need_in_the_package(self):
        files = [PACKAGE / "bin" / "snug", *(PACKAGE / "lib").iterdir()]
        self.assertGreater(len(files), 10)
        for file in files:
            found = subprocess.run(["/usr/bin/ldd", str(file)], capture_output=True, text=True, check=True).stdout
            self.assertNotIn("not found", found)
            for name, path in re.findall(r"^\s*(\S+) => (\S+) \(", found, re.MULTILINE):
                if not re.fullmatch(EVERYWHERE, name):
                    self.assertEqual(
                        pathlib.Path(path).resolve().parent, PACKAGE / "lib", f"{file.name} takes {name} from elsewhere"
                    )

    def test_each_library_has_its_licence(self):
        libraries = {path.name for path in (PACKAGE / "lib").iterdir()} - {"libsnug_planner.so"}
        self.assertEqual({path.name for path in (PACKAGE / "licences").iterdir()}, {f"{name}.txt" for name in libraries})
        for path in (PACKAGE / "licences").iterdir():
            self.assertRegex(path.read_text(), "(?i)licen[sc]e|copyright")

    def test_the_record_is_right(self):
        files = [file for file in importlib.metadata.files("snug") if file.hash is not None and "snug" in file.parts[0]]
        self.assertGreater(len(files), 40)
        for file in files:
            content = file.locate().read_bytes()
            self.assertEqual(file.size, len(content), file)
            self.assertEqual(
                file.hash.value, base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode(), file
            )

    def test_it_is_of_every_python_and_of_this_version(self):
        self.assertEqual(importlib.metadata.version("snug"), snug.__version__)
        wheel = importlib.metadata.distribution("snug").read_text("WHEEL")
        self.assertRegex(wheel, r"(?m)^Tag: py3-none-manylinux_2_\d+_x86_64$")


if __name__ == "__main__":
    unittest.main()

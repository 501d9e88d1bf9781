"""docs/python.md: its Python does what it says. Blocks marked `python live` need transformers."""

import contextlib
import doctest
import importlib.util
import io
import os
import pathlib
import re
import shutil
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "python.md"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def block_of(info):
    """The page's blocks of that kind as one text, each on the line where the page has it."""
    lines, within = [], False
    for line in PAGE.read_text().splitlines():
        if line.startswith("```"):
            within = line == f"```{info}"
            lines.append("")
        else:
            lines.append(line.replace("…", "...") if within else "")
    return "\n".join(lines) + "\n"


class Page(unittest.TestCase):
    def run_blocks(self, info):
        test = doctest.DocTestParser().get_doctest(block_of(info), {}, "python.md", str(PAGE), 0)
        self.assertGreater(len(test.examples), 3)
        report, here = io.StringIO(), os.getcwd()
        with tempfile.TemporaryDirectory() as directory:
            shutil.copytree(ROOT / "demo", pathlib.Path(directory) / "demo")
            os.chdir(directory)
            try:
                with contextlib.redirect_stderr(io.StringIO()):
                    failed, _ = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.write)
            finally:
                os.chdir(here)
        self.assertEqual(failed, 0, report.getvalue())

    def test_what_needs_the_package_alone(self):
        self.run_blocks("python")

    @unittest.skipUnless(importlib.util.find_spec("trl"), "needs transformers and trl")
    def test_what_needs_a_trainer(self):
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        self.run_blocks("python live")

    def test_no_block_is_left_out(self):
        infos = set(re.findall(r"^```(\S.*)$", PAGE.read_text(), re.MULTILINE))
        self.assertEqual(infos, {"python", "python live", "sh"})


if __name__ == "__main__":
    unittest.main()

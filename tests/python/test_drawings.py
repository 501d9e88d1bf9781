"""What answers draw in a notebook: whole in itself, to scale, readable without colour."""

import html
import html.parser
import pathlib
import re
import unittest

import snug
from snug import _draw

MODEL = str(pathlib.Path(__file__).resolve().parents[2] / "demo" / "model")
LLAMA = "meta-llama/Llama-3.1-8B"
EMPTY = {"rect", "path", "br"}  # written as <rect/>


class Reader(html.parser.HTMLParser):
    """Elements with their attributes, text, and tags that do not close."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts, self.open = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open)
        self.open.pop()

    def handle_data(self, data):
        self.texts.append(data)


def bars(text):
    """{part: (width, bytes)} of the bar."""
    found = re.findall(r'width="([0-9.]+)" height="22"[^>]*><title>([^<]+): [^<]*\((\d+) bytes\)', text)
    return {name: (float(width), int(count)) for width, name, count in found}


class Drawings(unittest.TestCase):
    def answers(self):
        return [
            snug.plan(LLAMA, gpu="RTX 4090", method="lora", max_length=2048),
            snug.plan(LLAMA, memory="24GiB", bf16=True),
            snug.plan("Qwen/Qwen3-Next-80B-A3B-Instruct", gpu="H200"),
            snug.fit(MODEL, gpu="RTX 4090", method="lora", max_length=128),
            snug.explain(
                "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.71 GiB. GPU 0 has a total capacity of 23.64"
                " GiB of which 1.21 GiB is free.\n"
            ),
            snug.textbook(LLAMA, bf16=True),
        ]

    def test_they_are_whole_in_themselves(self):
        for answer in self.answers():
            text = answer._repr_html_()
            reader = Reader(text)
            self.assertEqual(reader.open, [])
            for tag, attributes in reader.elements:
                self.assertNotIn(tag, ("script", "link", "img", "iframe"))
                self.assertEqual({"src", "href"} & set(attributes), set())
            defined = {attributes["id"] for tag, attributes in reader.elements if tag == "pattern"}
            self.assertEqual(set(re.findall(r"url\(#([^)]+)\)", text)), defined)
            self.assertNotIn("http", text)
            self.assertFalse(
                defined & set(re.findall(r'id="([^"]+)"', answer._repr_html_())), "two drawings on a page share names"
            )

    def test_the_bar_of_pytorch_is_to_scale(self):
        plan = snug.plan(LLAMA, gpu="RTX 4090", method="lora", max_length=2048)
        parts = bars(plan._repr_html_())
        self.assertEqual(sum(count for _, count in parts.values()), plan.pytorch.device_bytes.high)
        self.assertEqual(
            {name: count for name, (_, count) in parts.items() if name in plan.pytorch.breakdown},
            {name: n for name, n in plan.pytorch.breakdown.items() if n},
        )
        scale = 638 / max(plan.needed_bytes, plan.budget_bytes)
        for width, count in parts.values():
            self.assertAlmostEqual(width, count * scale, delta=0.06)
        at = float(re.search(r'<path d="M([0-9.]+) 12V', plan._repr_html_())[1])
        self.assertAlmostEqual(at, 1 + plan.budget_bytes * scale, delta=0.06)

    def test_the_bar_of_snug_is_the_breakdown(self):
        plan = snug.plan(LLAMA, memory="24GiB", bf16=True)
        self.assertEqual(
            {name: count for name, (_, count) in bars(plan._repr_html_()).items()},
            {name: n for name, n in plan.breakdown.items() if n},
        )

    def test_parts_differ_without_colour(self):
        plan = snug.plan(LLAMA, gpu="RTX 4090", method="lora")
        beside = ["unused by the allocator", "driver's context", "context, at most"]
        for parts in (list(plan.breakdown), [*plan.pytorch.breakdown, *beside]):  # all that an engine tells of
            text = _draw.bar([(part, 1) for part in parts], None, "")
            hatches = re.findall(r"<pattern[^>]*><rect[^>]*/>(.*?)</pattern>", text)
            self.assertEqual(len(set(hatches)), len(parts), parts)
        self.assertTrue(all(f"<title>{html.escape(part)}: " in plan._repr_html_() for part in beside))

    def test_the_title_says_it_in_words(self):
        self.assertIn("✗ does not fit: ", snug.plan(LLAMA, memory="8GiB", bf16=True)._repr_html_())
        self.assertIn("✓ fits: ", snug.plan(LLAMA, memory="24GiB", bf16=True)._repr_html_())


if __name__ == "__main__":
    unittest.main()

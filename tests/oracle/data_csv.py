"""data/csv: files of several dialects, drawn from a fixed seed or written by hand, and what Python's csv module reads of them: expected.json."""

import csv
import io
import json
import random

import oracle

WORDS = ["goat", "owl", "caf\u00e9", "\U0001F600", "", "", "a \"quoted\" word", "comma, semicolon; tab\t", "two\nlines", "two\r\nlines", "cr\ralone",
         "\u4f60\u597d", "\"", "\"\"", " blanks ", "x" * 300, "'", "\\", "0", "-1.5", "null", "#"]
DIALECTS = {"excel": ({"lineterminator": "\r\n"}, ",", "csv"), "unix": ({"quoting": csv.QUOTE_ALL, "lineterminator": "\n"}, ",", "csv"),
            "minimal": ({"lineterminator": "\n"}, ",", "csv"), "tabs": ({"delimiter": "\t", "lineterminator": "\n"}, "\t", "tsv"),
            "old_mac": ({"lineterminator": "\r"}, ",", "csv")}
BY_HAND = {"stray_marks": 'a,b\nx"y,"p"q\n"",""""\n', "empty_lines": 'a,b\n\n\r\n1,2\n\n3,4\n\n', "no_end": 'a,b\n1,"2"', "mark": "\ufeffa,b\n1,2\n",
           "one_column": "text\nx\n\"y, z\"\n", "blank_line": "a\n \nx\n"}


def drawn(name, options):
    draw = random.Random(name)
    out = io.StringIO(newline="")
    writer = csv.writer(out, **options)
    writer.writerow(["prompt", "completion", "with, comma"])
    for _ in range(150):
        writer.writerow([draw.choice(WORDS) + draw.choice(WORDS) for _ in range(3)])
    return out.getvalue()


def read(text, separator):
    rows = list(csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), delimiter=separator))
    return [row for row in rows if row]


def main():
    folder = oracle.GOLDEN / "data" / "csv"
    folder.mkdir(parents=True, exist_ok=True)
    expected = {}
    texts = {f"{name}.{ending}": (drawn(name, options), separator) for name, (options, separator, ending) in DIALECTS.items()}
    texts |= {f"{name}.csv": (text, ",") for name, text in BY_HAND.items()}
    for name, (text, separator) in texts.items():
        (folder / name).write_bytes(text.encode())
        expected[name] = read(text, separator)
    (folder / "expected.json").write_text(json.dumps(expected) + "\n")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Writes src/tokenizer/unicode_tables.cpp: where the Unicode data inside Hugging Face's `tokenizers` differ from Unicode 14.

    pip install tokenizers==0.23.3
    python3.11 tests/oracle/tokenizer_unicode.py        # Python 3.11 knows Unicode 14, as PCRE2 10.42 does

`tokenizers` is asked about every code point: its regular expressions (Oniguruma, Unicode 16), Rust's own classes (17), its
punctuation (8) and its normal forms (9) are each of another age.
"""

import pathlib
import unicodedata

import tokenizers
from tokenizers import Regex, normalizers, pre_tokenizers

POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
ALL = "".join(map(chr, POINTS))
CATEGORIES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co".split()
SCRIPTS = """Adlam Ahom Arabic Armenian Balinese Bamum Bengali Bopomofo Brahmi Buginese Chakma Cham Cherokee Chorasmian Common
Coptic Cuneiform Cyrillic Deseret Devanagari Egyptian_Hieroglyphs Ethiopic Georgian Glagolitic Gothic Grantha Greek Gujarati Gurmukhi Han
Hangul Hebrew Hiragana Inherited Javanese Kaithi Kannada Katakana Khmer Khojki Lao Latin Lisu Malayalam Mongolian Myanmar Nko
Nyiakeng_Puachue_Hmong Oriya Osmanya Runic Sharada Siddham Sinhala Syriac Tai_Tham Takri Tamil Telugu Thaana Thai Tibetan Tifinagh Vai Yi""".split()


def members(set_of):
    return set(map(ord, normalizers.Replace(Regex(f"[^{set_of}]"), "").normalize_str(ALL)))


def alone(pre_tokenizer):
    """Code points that become a piece of their own between two letters."""
    found = set()
    for start in range(0, len(POINTS), 0x4000):
        text = "\u00e9" + "\u00e9".join(map(chr, POINTS[start:start + 0x4000])) + "\u00e9"
        found |= {ord(piece) for piece, _ in pre_tokenizer.pre_tokenize_str(text) if len(piece) == 1}
    return found - {0xE9}


def ranges(points):
    rows = []
    for point in sorted(points):
        if rows and rows[-1][1] == point - 1:
            rows[-1][1] = point
        else:
            rows.append([point, point])
    return rows


def table(kind, name, about, rows):
    lines, line = [], "   "
    for row in rows:
        if len(line) + len(row) > 120:
            lines.append(line)
            line = "   "
        line += " " + row + ","
    lines.append(line)
    body = "\n".join(lines)
    return f"// {about}\nconstexpr std::array<{kind}, {len(rows)}> {name} = {{{{\n{body}\n}}}};\n"


def plain(points):
    return [f"{{{a:#x}, {b:#x}}}" for a, b in ranges(points)]


def main():
    assert unicodedata.unidata_version == "14.0.0"
    assigned = {c for c in POINTS if unicodedata.category(chr(c)) != "Cn"}
    categories = {name: members(f"\\p{{{name}}}") for name in CATEGORIES}
    named = [(a, b, name) for name in CATEGORIES for a, b in ranges(categories[name] - assigned)]
    named += [(a, b, name) for name in SCRIPTS for a, b in ranges(members(f"\\p{{{name}}}") - assigned)]
    marks = categories["Mn"] | categories["Mc"] | categories["Me"]
    numbers = categories["Nd"] | categories["Nl"] | categories["No"]
    punctuation = set().union(*(categories[n] for n in CATEGORIES if n[0] == "P")) | set(map(ord, "$+<=>^`|~"))
    combining = {c for c, kept in zip(POINTS, map(set(normalizers.StripAccents().normalize_str(ALL)).__contains__, ALL)) if not kept}
    # Younger than Unicode 9, so without a class or a decomposition there: marks, and what Unicode 14 (or 15 and 16, by hand) decomposes.
    inert = marks - combining
    for form in (normalizers.NFD(), normalizers.NFKD()):
        name = type(form).__name__
        inert |= {c for c in POINTS if form.normalize_str(chr(c)) != unicodedata.normalize(name, chr(c))}
    for a, b in [(0x105C9, 0x105C9), (0x105E4, 0x105E4), (0x11383, 0x11391), (0x113C5, 0x113C8), (0x16121, 0x16128), (0x16D68, 0x16D6A),
                 (0x1CCD6, 0x1CCF9), (0x1E030, 0x1E06D), (0xA7F1, 0xA7F1)]:
        inert |= set(range(a, b + 1))
    lower = [c for c in POINTS if normalizers.Lowercase().normalize_str(chr(c)) != chr(c).lower()]
    lower = [(c, ord(normalizers.Lowercase().normalize_str(chr(c)))) for c in lower]
    out = pathlib.Path(__file__).resolve().parents[2] / "src" / "tokenizer" / "unicode_tables.cpp"
    out.write_text(
        f"// Made by tests/oracle/tokenizer_unicode.py with tokenizers {tokenizers.__version__}; not to be edited.\n"
        "// clang-format off\n\n#include \"tokenizer/unicode_tables.h\"\n\n#include <array>\n\nnamespace snug {\nnamespace {\n\n"
        + table("NamedRange", "kYounger", "Assigned after Unicode 14, by category and by script.",
                [f'{{{a:#x}, {b:#x}, "{name}"}}' for a, b, name in named])
        + "\n" + table("CodeRange", "kOtherNumbers", "Numbers of Unicode 17.", plain(alone(pre_tokenizers.Digits(individual_digits=True)) - numbers))
        + "\n" + table("CodeRange", "kPunctuationOnce", "Punctuation of Unicode 8 that is none now.",
                       plain(alone(pre_tokenizers.Punctuation()) - punctuation))
        + "\n" + table("CodeRange", "kPunctuationSince", "Punctuation that Unicode 8 did not know.",
                       plain(punctuation - alone(pre_tokenizers.Punctuation())))
        + "\n" + table("CodeRange", "kCombiningOnce", "Marks of Unicode 9 that are none now.", plain(combining - marks))
        + "\n" + table("CodeRange", "kInert", "Marks and decompositions that Unicode 9 did not know.", plain(inert))
        + "\n" + table("CodePair", "kLowercase", "Lower case that Unicode 14 did not know.", [f"{{{a:#x}, {b:#x}}}" for a, b in lower])
        + """
}  // namespace

std::span<const NamedRange> younger_ranges() { return kYounger; }
std::span<const CodeRange> other_number_ranges() { return kOtherNumbers; }
std::span<const CodeRange> punctuation_once_ranges() { return kPunctuationOnce; }
std::span<const CodeRange> punctuation_since_ranges() { return kPunctuationSince; }
std::span<const CodeRange> combining_once_ranges() { return kCombiningOnce; }
std::span<const CodeRange> inert_ranges() { return kInert; }
std::span<const CodePair> lowercase_pairs() { return kLowercase; }

}  // namespace snug
""")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""What transformers makes of conversations: writes tests/golden/chat/conversations.json and tests/golden/chat/renders.json.

Every template (those in tests/golden/chat/templates, and the published ones below shared/data/tokenizers) renders every
conversation, with and without generation prompt, through apply_chat_template. Kept are FNV-1a sums of the bytes, or null where
transformers raises. Run: /opt/oracle/bin/python tests/oracle/chat_renders.py
"""

import json
import os
import pathlib

import tokenizers
import transformers
from transformers.utils import chat_template_utils

HERE = pathlib.Path(__file__).resolve().parent
GOLDEN = HERE.parent / "golden/chat"
SHARED = pathlib.Path(os.environ.get("SNUG_SHARED", pathlib.Path(__file__).resolve().parents[2] / ".." / "shared"))
SPECIAL = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
EOS = {"deepseek": "<｜end▁of▁sentence｜>", "DeepSeek": "<｜end▁of▁sentence｜>", "Llama": "<|eot_id|>", "llama-3": "<|eot_id|>",
       "Qwen": "<|im_end|>", "qwen": "<|im_end|>", "smollm": "<|im_end|>", "granite": "<|end_of_text|>", "gpt-oss": "<|return|>",
       "phi-3": "<|endoftext|>"}


def text(role, content, **more):
    return {"role": role, "content": content, **more}


def call(name, arguments, number=0):
    return {"id": f"call{number:05d}", "type": "function", "function": {"name": name, "arguments": arguments}}


TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "description": "Weather of a city, \"now\" & later", "parameters": {
        "type": "object", "properties": {"city": {"type": "string", "description": "Name, e.g. Zürich"},
                                         "unit": {"type": "string", "enum": ["C", "F"], "default": "C"}, "days": {"type": ["integer", "null"]}},
        "required": ["city"]}}},
    {"type": "function", "function": {"name": "add", "description": "Adds", "parameters": {
        "type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "array", "items": {"type": "number"}},
                                         "o": {"type": "object", "properties": {"x": {"type": "boolean"}}}}, "required": []},
        "return": {"type": "number", "description": "sum"}}},
]
# What the templates of Command-R, Hermes and Firefunction ask of tools; and what the last calls its variables.
PLAIN_TOOLS = [{"type": "function", "function": {"name": "look_up", "description": "Looks up", "parameters": {
    "type": "object", "properties": {"word": {"type": "string", "description": "A word"}, "times": {"type": "integer", "description": "How often"}},
    "required": ["word"], "additionalProperties": False}, "return": {"type": "string", "description": "What it says"}}}]
PLAIN = {"tools": PLAIN_TOOLS, "extra": {"functions": "[]", "datetime": "2024-07-26"}}
U, A, S = (lambda c, **m: text("user", c, **m)), (lambda c, **m: text("assistant", c, **m)), (lambda c: text("system", c))
SYSTEM = S("You are kind.\nBe brief.")
TOOL_TURN = [U("Weather in Rome?"), {"role": "assistant", "content": "", "tool_calls": [call("get_weather", {"city": "Rome", "days": 2, "x": 1.50})]},
             {"role": "tool", "name": "get_weather", "tool_call_id": "call00000", "content": "{\"t\": 21}"}, A("It is 21 °C.")]


def conversations():
    yield "one user", [U("Hi there!")]
    yield "one turn", [U("What is 2+2?"), A("It is 4.")]
    yield "system and turn", [SYSTEM, U("What is 2+2?"), A("It is 4.")]
    yield "two turns", [U("a"), A("b"), U("c"), A("d")]
    yield "three turns with system", [SYSTEM, U("first"), A("one"), U("second"), A("two"), U("third"), A("three")]
    yield "user last", [SYSTEM, U("first"), A("one"), U("second")]
    yield "only system", [SYSTEM]
    yield "empty assistant", [U("Say nothing."), A("")]
    yield "empty user", [U(""), A("Hello?")]
    yield "null content", [U("Hi"), {"role": "assistant", "content": None}]
    yield "unicode", [U("Grüße aus 東京 😀🏳️‍🌈 é\u0301 \u200b\u00a0."), A("ñ Ω ﬁ \u2028 İ ß 👍🏽")]
    yield "outer space", [U("  \n padded \t\n"), A("\n\n  answer  \n")]
    yield "newlines", [U("line 1\nline 2\r\nline 3"), A("```py\nx = {'a': \"b\"}\n```\n")]
    yield "markup", [U("<b>&amp; {{ x }} {% if %} {# c #}"), A("<|im_end|> <s> </s> [INST] \\ \" '")]
    yield "parts", [U([{"type": "text", "text": "Look"}, {"type": "text", "text": " here"}]), A([{"type": "text", "text": "I see."}])]
    yield "image part", [U([{"type": "image"}, {"type": "text", "text": "What is it?"}]), A("A cat.")]
    yield "consecutive users", [U("a"), U("b"), A("c")]
    yield "consecutive assistants", [U("a"), A("b"), A("c")]
    yield "assistant first", [A("Welcome."), U("Thanks."), A("Sure.")]
    yield "system late", [U("a"), A("b"), S("Be rude."), U("c"), A("d")]
    yield "two systems", [SYSTEM, S("More."), U("a"), A("b")]
    yield "unknown role", [U("a"), text("critic", "bad"), A("b")]
    yield "names", [U("a", name="Ann"), A("b", name="Bot"), U("c", name="Ann"), A("d")]
    yield "reasoning", [U("Think."), A("Done.", reasoning_content="Let me see.\nYes.")]
    yield "reasoning in turns", [U("One?"), A("1", reasoning_content="one is 1"), U("Two?"), A("2", reasoning_content="two is 2")]
    yield "thinking", [U("Think."), A("Done.", thinking="Hm.")]
    yield "think tags", [U("One?"), A("<think>\none\n</think>\n\n1"), U("Two?"), A("<think>\ntwo\n</think>\n\n2")]
    yield "tools unused", [SYSTEM, U("Hi"), A("Hello")], {"tools": TOOLS}
    yield "tool turn", TOOL_TURN, {"tools": TOOLS}
    yield "tool turn with system", [SYSTEM] + TOOL_TURN + [U("Thanks"), A("Welcome")], {"tools": TOOLS}
    yield "tool turn without tools", TOOL_TURN
    yield "arguments as text", [U("Add"), {"role": "assistant", "tool_calls": [call("add", "{\"a\": 1, \"b\": [2, 3]}")]},
                                {"role": "tool", "tool_call_id": "call00000", "name": "add", "content": "6"}, A("6")], {"tools": TOOLS}
    yield "two calls", [U("Both"), {"role": "assistant", "content": "Calling.", "tool_calls": [
        call("get_weather", {"city": "Bern"}, 0), call("add", {"a": 1.0, "o": {"x": True, "y": None}}, 1)]},
        {"role": "tool", "tool_call_id": "call00000", "name": "get_weather", "content": "cold"},
        {"role": "tool", "tool_call_id": "call00001", "name": "add", "content": "1"}, A("Cold, 1.")], {"tools": TOOLS}
    yield "call last", [U("Go"), {"role": "assistant", "content": None, "tool_calls": [call("add", {"a": 1})]}], {"tools": TOOLS[1:]}
    yield "calls twice", [U("x"), {"role": "assistant", "content": "", "tool_calls": [call("add", {})]},
                          {"role": "tool", "tool_call_id": "call00000", "name": "add", "content": "0"},
                          {"role": "assistant", "content": "again", "tool_calls": [call("add", {"a": 2}, 1)]},
                          {"role": "tool", "tool_call_id": "call00001", "name": "add", "content": "2"}, A("two"), U("y"), A("z")], {"tools": TOOLS}
    yield "tool content as object", [U("x"), {"role": "assistant", "content": "", "tool_calls": [call("add", {"a": 1})]},
                                     {"role": "tool", "tool_call_id": "call00000", "name": "add", "content": {"sum": 1, "ok": True}}, A("1")], {"tools": TOOLS}
    yield "no thinking", [SYSTEM, U("Hi"), A("Hello")], {"extra": {"enable_thinking": False}}
    yield "thinking on", [U("Hi"), A("Hello", reasoning_content="short")], {"extra": {"enable_thinking": True, "thinking": True, "reasoning_effort": "high"}}
    yield "documents", [U("Sum up."), A("Short.")], {"extra": {"documents": [{"title": "T", "text": "Text."}, {"title": "Ü", "text": "x\ny"}]}}
    yield "date given", [SYSTEM, U("Hi"), A("Yo")], {"extra": {"date_string": "01 Jan 2020", "current_date": "2020-01-01"}}
    yield "long", [m for i in range(12) for m in (U(f"Question {i}?"), A(f"Answer {i}."))]
    yield "developer", [text("developer", "Rules."), U("Hi"), A("Yo")]
    yield "no content", [U("a"), {"role": "assistant"}]
    yield "plain tools", [SYSTEM, U("Hi"), A("Hello")], PLAIN
    yield "plain tools called", [U("tea?"), {"role": "assistant", "content": "", "tool_calls": [call("look_up", {"word": "tea", "times": 2})]},
                                 {"role": "tool", "tool_call_id": "call00000", "name": "look_up", "content": "a drink"}, A("A drink.")], PLAIN
    yield "plain tools twice", [SYSTEM, U("a"), A("b"), U("c"), A("d")], PLAIN
    yield "tool results role", [U("a"), text("tool_results", "r", tool_call_id="call00000"), A("b")]


def published():
    """Name, path below shared and the template's text."""
    base = SHARED / "data/tokenizers"
    seen = set()
    paths = sorted(base.glob("chat_templates/*.jinja")) + sorted(base.glob("**/chat_template.jinja")) + sorted(base.glob("**/*.json"))
    for path in paths:
        if path.suffix == ".json":
            if not path.name.startswith(("tokenizer_config", "chat_template")):
                continue
            source = json.loads(path.read_text()).get("chat_template")
        else:
            source = path.read_text()
        named = {"": source} if isinstance(source, str) else {t["name"]: t["template"] for t in source or []}
        for name, template in named.items():
            if template not in seen:
                seen.add(template)
                yield str(path.relative_to(SHARED)) + (f"#{name}" if name else ""), template


def fnv(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"{value:016x}"


def special_of(name):
    eos = next((token for part, token in EOS.items() if part in name), SPECIAL["eos_token"])
    return {**SPECIAL, "eos_token": eos}


def fix_clock():
    class Clock(chat_template_utils.datetime):
        @classmethod
        def now(cls, tz=None):
            return cls(2024, 7, 26, 12, 34, 56)

    chat_template_utils.datetime = Clock


def tokenizer_with(special):
    empty = tokenizers.Tokenizer(tokenizers.models.WordLevel({"<unk>": 0}, "<unk>"))
    return transformers.PreTrainedTokenizerFast(tokenizer_object=empty, **special)


def render(tokenizer, template, conversation, generation):
    """The text, or None where transformers raises."""
    try:
        return tokenizer.apply_chat_template(
            conversation["messages"], tools=conversation.get("tools"), chat_template=template, tokenize=False,
            add_generation_prompt=generation, **conversation.get("extra", {}))
    except Exception:  # every kind: they all end a rendering
        return None


def all_conversations():
    for name, messages, *more in conversations():
        yield {"name": name, "messages": messages, **(more[0] if more else {})}


def all_templates():
    for path in sorted((GOLDEN / "templates").glob("*.jinja")):
        yield "templates/" + path.name, path.read_text()
    yield from published()


def main():
    fix_clock()
    every = list(all_conversations())
    lines = ",\n".join(json.dumps(conversation, ensure_ascii=False) for conversation in every)
    (GOLDEN / "conversations.json").write_text("[\n" + lines + "\n]\n")
    golden, raised, total = [], 0, 0
    for name, template in all_templates():
        special = special_of(name)
        tokenizer = tokenizer_with(special)
        sums = []
        for conversation in every:
            for generation in (False, True):
                output = render(tokenizer, template, conversation, generation)
                sums.append(None if output is None else fnv(output.encode()))
        total += len(sums)
        raised += sums.count(None)
        golden.append(json.dumps({"template": name, "source": fnv(template.encode()), "special": special, "sums": sums}, ensure_ascii=False))
    made_by = f"transformers {transformers.__version__}"
    (GOLDEN / "renders.json").write_text('{"made_by": %s,\n"templates": [\n%s\n]}\n' % (json.dumps(made_by), ",\n".join(golden)))
    print(len(golden), "templates,", len(every), "conversations,", raised, "of", total, "renderings raise")


if __name__ == "__main__":
    main()

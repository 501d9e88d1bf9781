#!/usr/bin/env python3
"""Writes tests/golden/data/chat.json: conversations, what a chat template makes of them, and transformers' mask of the assistant's tokens.

    pip install transformers==5.23.0 tokenizers==0.23.3 jinja2==3.1.6
    python tests/oracle/data_chat.py

The tokenizer is a byte-level BPE trained here on the conversations themselves, so that tokens cross the borders between words; it
stands in the file. `spans`: the {% generation %} parts in bytes of the text, as transformers' own jinja extension reports them;
`mask`: apply_chat_template(return_assistant_tokens_mask=True).

Left out: empty answers where no token stands between what is before and behind them. transformers then marks the token that covers both
neighbours, none of whose bytes are the assistant's; snug does not.
"""

import json
import pathlib

import tokenizers
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers.utils.chat_template_utils import render_jinja_template

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['role'] == 'assistant' %}{% generation %}{{ message['content'] }}<|im_end|>{{ '\\n' }}{% endgeneration %}"
    "{% else %}{{ message['content'] }}<|im_end|>{{ '\\n' }}{% endif %}{% endfor %}")
# The mark of the end is glued to the text, with no token of its own: tokens may cross a span's border.
GLUED = ("{% for m in messages %}{{ m['role'] }}: {% if m['role'] == 'assistant' %}{% generation %}{{ m['content'] }}{% endgeneration %}"
         "{% else %}{{ m['content'] }}{% endif %}. {% endfor %}")
CHATS = [
    [("user", "How many goats?"), ("assistant", "Five goats.")],
    [("system", "Be brief."), ("user", "caf\u00e9 \U0001F600?"), ("assistant", "na\u00efve \U0001F600\U0001F469\u200d\U0001F467 caf\u00e9"), ("user", "\u4f60\u597d"),
     ("assistant", "\u4f60\u597d\uff0c\u4e16\u754c")],
    [("user", "a"), ("assistant", ""), ("user", "  spaces  "), ("assistant", "  leading and trailing  ")],
    [("assistant", "first"), ("assistant", "second\n\nthird")],
    [("user", "How many owls? How many goats?"), ("assistant", "Seven owls. Five goats.")],
]


def train():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)  # tokens cross words
    tokenizer.decoder = decoders.ByteLevel()
    texts = [f"{role}: {content}. " for chat in CHATS for role, content in chat] * 3
    trainer = trainers.BpeTrainer(vocab_size=420, special_tokens=["<|im_start|>", "<|im_end|>"], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


tokenizer = train()
fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer)
cases = []
for name, template in (("marked", TEMPLATE), ("glued", GLUED)):
    for chat in CHATS:
        if name == "glued" and ("assistant", "") in chat:
            continue
        messages = [{"role": role, "content": content} for role, content in chat]
        texts, spans = render_jinja_template(conversations=[messages], chat_template=template, return_assistant_tokens_mask=True)
        text = texts[0]
        encoded = fast.apply_chat_template(messages, chat_template=template, return_dict=True, return_assistant_tokens_mask=True)
        to_bytes = lambda at: len(text[:at].encode())  # noqa: E731
        cases.append({"template": name, "messages": messages, "text": text, "spans": [[to_bytes(a), to_bytes(b)] for a, b in spans[0]],
                      "ids": encoded["input_ids"], "mask": encoded["assistant_masks"]})
target = pathlib.Path(__file__).resolve().parent.parent / "golden" / "data" / "chat.json"
target.parent.mkdir(parents=True, exist_ok=True)
target.write_text(json.dumps({"versions": {"transformers": transformers.__version__, "tokenizers": tokenizers.__version__},
                              "templates": {"marked": TEMPLATE, "glued": GLUED}, "tokenizer": json.loads(tokenizer.to_str()), "cases": cases},
                             ensure_ascii=False))
print(target.stat().st_size, "bytes;", sum(sum(c["mask"]) for c in cases), "labels")
for c in cases:
    print(c["template"], c["spans"], "".join(str(m) for m in c["mask"]))

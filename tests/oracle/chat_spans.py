#!/usr/bin/env python3
"""Where the assistant speaks, by hand-written expressions of turns: writes tests/golden/chat/spans.json.

Independent of how snug finds spans: each family of templates has one regular expression whose group 1 is what trainers learn of
a turn (the answer, the token that ends it and the line end behind that), applied to what transformers renders. Kept are byte offsets
[begin, end, begin, end…] for each conversation, or null where transformers raises, or "lost" where an assistant message has
content or calls of which nothing stands in the text. Run: /opt/oracle/bin/python tests/oracle/chat_spans.py
"""

import json
import re

import chat_renders
import transformers

FAMILIES = {
    "templates/chatml.jinja": r"<\|im_start\|>assistant\n(.*?<\|im_end\|>\n?)",
    "templates/chatml-no-prompt.jinja": r"<\|im_start\|>assistant\n(.*?<\|im_end\|>\n?)",
    "templates/chatml-generation.jinja": r"<\|im_start\|>assistant\n(.*?<\|im_end\|>)",
    "templates/zephyr.jinja": r"<\|assistant\|>\n(.*?</s>\n?)",
    "templates/llama-2.jinja": r"\[/INST\]( .*? </s>\n?)",
    "templates/llama-3.jinja": r"<\|start_header_id\|>assistant<\|end_header_id\|>\n\n(.*?<\|eot_id\|>\n?)",
    "templates/llama-3.2-date.jinja": r"<\|start_header_id\|>assistant<\|end_header_id\|>\n\n(.*?<\|eot_id\|>\n?)",
    "templates/phi-3.jinja": r"<\|assistant\|>\n(.*?<\|end\|>\n?)",
    "templates/phi-4.jinja": r"<\|im_start\|>assistant<\|im_sep\|>(.*?<\|im_end\|>\n?)",
    "templates/gemma.jinja": r"<start_of_turn>model\n(.*?<end_of_turn>\n?)",
    "templates/mistral-v0.1.jinja": r"\[/INST\](.*?</s>)",
    "templates/mistral-v0.3.jinja": r"(?:\[/INST\]|\[/TOOL_RESULTS\]|(?<=</s>))((?:\[TOOL_CALLS\]| (?!\[)).*?</s>\n?)",
    "templates/deepseek-v2.5.jinja": r"<｜Assistant｜>(.*?<｜end▁of▁sentence｜>\n?)",
    "templates/command-r.jinja": r"<\|CHATBOT_TOKEN\|>(.*?<\|END_OF_TURN_TOKEN\|>\n?)",
    "templates/olmo.jinja": r"<\|assistant\|>\n(.*?<\|endoftext\|>|.*?</s>\n?)",
    "templates/olmo-2.jinja": r"<\|assistant\|>\n(.*?</s>)",
    "templates/granite-3.0.jinja": r"<\|start_of_role\|>assistant<\|end_of_role\|>(.*?<\|end_of_text\|>\n?)",
    "templates/vicuna.jinja": r"ASSISTANT:( .*?</s>\n?)",
    "templates/yi.jinja": r"<\|im_start\|>assistant\n(.*?<\|im_end\|>\n?)",
    "templates/macro-parts.jinja": r"<\|assistant\|>\n(.*?<\|end\|>\n?)",
    "templates/index-loop.jinja": r"\[ASSISTANT\] (.*?</s>\n?)",
    "data/tokenizers/chat_templates/Qwen-Qwen2.5-7B-Instruct.jinja": r"<\|im_start\|>assistant\n(.*?<\|im_end\|>\n?)",
    "data/tokenizers/chat_templates/Qwen3-Coder.jinja": r"<\|im_start\|>assistant\n(.*?<\|im_end\|>\n?)",
    "data/tokenizers/chat_templates/llama-cpp-lfm2.jinja": r"<\|im_start\|>assistant\n(.*?<\|im_end\|>\n?)",
    "data/tokenizers/qwen3/v4-lora-config/chat_template.jinja": r"<\|im_start\|>assistant\n(.*?<\|im_end\|>\n?)",
    "data/tokenizers/smollm2/v5-pairs-lora/chat_template.jinja": r"<\|im_start\|>assistant\n(.*?<\|im_end\|>\n?)",
    "data/tokenizers/tinyllama/v4-lora-config/chat_template.jinja": r"<\|assistant\|>\n(.*?</s>\n?)",
    "data/tokenizers/gemma3-configs/lora/chat_template.jinja": r"<start_of_turn>model\n(.*?<end_of_turn>\n?)",
    "data/tokenizers/gemma-cropped-fixture/tokenizer_config_gemma.json": r"<start_of_turn>model\n(.*?<end_of_turn>\n?)",
    "data/tokenizers/chat_templates/meta-llama-Llama-3.1-8B-Instruct.jinja": r"<\|start_header_id\|>assistant<\|end_header_id\|>\n\n(.*?(?:<\|eot_id\|>|<\|eom_id\|>)\n?)",
    "data/tokenizers/chat_templates/mistralai-Mistral-Nemo-Instruct-2407.jinja": r"(?:\[/INST\]|\[/TOOL_RESULTS\]|(?<=</s>))((?!\[INST\]|\[TOOL_RESULTS\]|\[AVAILABLE_TOOLS\]).*?</s>\n?)",
    "data/tokenizers/chat_templates/deepseek-ai-DeepSeek-R1-Distill-Qwen-32B.jinja": r"(?:<｜Assistant｜>|<｜tool▁outputs▁end｜>)(.*?<｜end▁of▁sentence｜>\n?)",
    "data/tokenizers/chat_templates/openai-gpt-oss-120b.jinja":
        r"<\|start\|>assistant((?: to=| ?<\|channel\|>final).*?(?:<\|end\|>|<\|return\|>|<\|call\|>)|<\|channel\|>analysis.*?<\|end\|>(?:<\|start\|>assistant.*?(?:<\|return\|>|<\|call\|>|<\|end\|>))?\n?)",
    "data/tokenizers/chat_templates/ibm-granite-granite-3.3-2B-Instruct.jinja": r"<\|start_of_role\|>assistant<\|end_of_role\|>(.*?<\|end_of_text\|>\n?)",
}
# Conversations that write the markers themselves, or where an expression cannot see whose turn it is.
LEFT_OUT = {"": {"markup"},
            "templates/yi.jinja": {"consecutive users", "consecutive assistants", "assistant first", "two calls"},
            "data/tokenizers/qwen3/v4-lora-config/chat_template.jinja": {"no thinking"}}  # there <think></think> is in the prompt


def said(message):
    """Texts of which at least one must stand in the rendering, if the message says something."""
    content = message.get("content") or ""
    texts = [content] if isinstance(content, str) else [part.get("text", "") for part in content]
    texts += [call["function"]["name"] for call in message.get("tool_calls") or []]
    return [text.split("</think>")[-1].strip() for text in texts if text.strip()]


def lost(conversation, spoken):
    return any(said(m) and not any(text in spoken for text in said(m)) for m in conversation["messages"] if m["role"] == "assistant")


def main():
    chat_renders.fix_clock()
    golden, count = [], 0
    for name, template in chat_renders.all_templates():
        if name not in FAMILIES:
            continue
        tokenizer = chat_renders.tokenizer_with(chat_renders.special_of(name))
        spans = {}
        for conversation in chat_renders.all_conversations():
            if conversation["name"] in LEFT_OUT[""] | LEFT_OUT.get(name, set()):
                continue
            output = chat_renders.render(tokenizer, template, conversation, False)
            if output is None:
                spans[conversation["name"]] = None
            else:
                found = [match.span(1) for match in re.finditer(FAMILIES[name], output, re.DOTALL)]
                spoken = "\0".join(output[begin:end] for begin, end in found)
                count += len(found)
                spans[conversation["name"]] = "lost" if lost(conversation, spoken) else [
                    len(output[:offset].encode()) for span in found for offset in span]
        golden.append(json.dumps({"template": name, "spans": spans}, separators=(",", ":")))
    made_by = f"transformers {transformers.__version__}"
    (chat_renders.GOLDEN / "spans.json").write_text('{"made_by": %s,\n"templates": [\n%s\n]}\n' % (json.dumps(made_by), ",\n".join(golden)))
    print(len(golden), "templates,", count, "spans")


if __name__ == "__main__":
    main()

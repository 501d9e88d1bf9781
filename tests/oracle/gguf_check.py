"""Does llama.cpp read what `snug export` writes, and compute what transformers computes?

    pip install gguf llama-cpp-python sentencepiece        # or LLAMA_CPP_LIB_PATH=directory of a libllama.so
    LLAMA_CPP=/path/to/llama.cpp python tests/oracle/gguf_check.py [SNUG] [FAMILY …]

For each family a tiny random model of transformers is exported and
1. compared with what llama.cpp's own converter (LLAMA_CPP/conversion) writes: every tensor's type, shape and bytes, every key;
2. run by llama.cpp: its logits against transformers' (norm-wise relative error at most 1e-5 in F32, 5e-3 in F16 and BF16, 5e-2 in
   Q8_0), and its tokens against those of the tokenizers library on texts that are meant to be difficult;
3. for adapters: the GGUF adapter against convert_lora_to_gguf.py, and llama.cpp's logits with it against PEFT's.
Exit code 1 if one is off. By hand.

    LLAMA_CPP=… python tests/oracle/gguf_check.py --golden     # writes tests/golden/gguf.json: what the converters make of known weights

The sources of llama.cpp are in the source distribution of llama-cpp-python (vendor/llama.cpp).
"""

import contextlib
import ctypes
import io
import json
import logging
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import warnings
import zlib

sys.path.insert(0, os.path.join(os.environ["LLAMA_CPP"], "gguf-py"))  # what belongs to that converter
import gguf
import numpy
import torch
import transformers

import merge_check

warnings.filterwarnings("ignore")
transformers.utils.logging.disable_progress_bar()
logging.disable(logging.WARNING)
torch.set_num_threads(1)
# AutoTokenizer takes the family's own class, which brings tokens of its own.
transformers.AutoTokenizer.from_pretrained = lambda path, **_: transformers.PreTrainedTokenizerFast.from_pretrained(path)
ROOT = pathlib.Path(__file__).resolve().parents[2]
VOCABULARY = 640
TOKENS = torch.tensor([[(7 * i * i + 3 * i) % 600 + 10 for i in range(24)]])
TEXTS = ["Hello world", " two  spaces   three", "tabs\tand\nnewlines\n\n  x", "numbers 1 12 123 1234 12345", "it's we'LL they'd",
         "naïve café über", "日本語 text 混在", "emoji 🚀👩‍💻", "<|end|> in the text", "trailing  ", "  leading", "a_b-c/d\\e", "ÀÉÎ", "x" * 40]

SIZES = dict(vocab_size=VOCABULARY, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=128, bos_token_id=1, eos_token_id=0, pad_token_id=None)
LLAMA3 = {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 32}
FAMILIES = {
    "llama": (transformers.LlamaConfig, {}),
    "llama_tied": (transformers.LlamaConfig, {"tie_word_embeddings": True}),
    "llama_llama3": (transformers.LlamaConfig, {"rope_parameters": LLAMA3}),
    "llama_linear": (transformers.LlamaConfig, {"rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 10000.0}}),
    "llama_bias": (transformers.LlamaConfig, {"attention_bias": True, "mlp_bias": True}),
    "mistral": (transformers.MistralConfig, {"head_dim": 32, "sliding_window": None}),
    "mixtral": (transformers.MixtralConfig, {"num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": None}),
    "qwen2": (transformers.Qwen2Config, {}),
    "qwen3": (transformers.Qwen3Config, {"head_dim": 32}),
    "qwen3_moe": (transformers.Qwen3MoeConfig, {"head_dim": 32, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
                                                "norm_topk_prob": True}),
    "gemma2": (transformers.Gemma2Config, {"head_dim": 32, "query_pre_attn_scalar": 32, "sliding_window": 8}),
    "gemma3_text": (transformers.Gemma3TextConfig, {"head_dim": 32, "query_pre_attn_scalar": 32, "sliding_window": 8,
                                                    "num_hidden_layers": 7}),
    "phi3": (transformers.Phi3Config, {"num_key_value_heads": 4, "original_max_position_embeddings": 128, "sliding_window": None}),
    "gpt2": (transformers.GPT2Config, None),
}


def make_model(family, directory, dtype=torch.float32):
    torch.manual_seed(len(family))
    config_class, more = FAMILIES[family]
    if family == "gpt2":
        config = config_class(vocab_size=VOCABULARY, n_embd=64, n_layer=2, n_head=4, n_positions=128, bos_token_id=0, eos_token_id=0)
    else:
        config = config_class(**{**SIZES, **more})
    config._attn_implementation = "eager"
    model = transformers.AutoModelForCausalLM.from_config(config).to(dtype).eval()
    merge_check.randomize(model, 0.15)
    model.save_pretrained(directory)
    shutil.copy(ROOT / "demo/model/tokenizer.json", directory)
    shutil.copy(ROOT / "demo/model/tokenizer_config.json", directory)
    if family == "gpt2":  # the converter wants it
        config = json.loads((directory / "config.json").read_text())
        (directory / "config.json").write_text(json.dumps({**config, "n_ctx": 128}))
    return model


def export(snug, source, target, *flags):
    done = subprocess.run([snug, "export", source, "--gguf", target, *flags], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(done.stderr)


# ---- Against llama.cpp's own converter

def converter():
    sys.path.insert(1, os.environ["LLAMA_CPP"])
    import conversion
    conversion.base.TextModel.get_vocab_base_pre = lambda self, tokenizer: "gpt-2"  # it knows tokenizers by a hash
    return conversion


def convert(directory, target, kind):
    conversion = converter()
    hparams = conversion.ModelBase.load_hparams(directory, False)
    model_class = conversion.get_model_class(conversion.get_model_architecture(hparams, conversion.ModelType.TEXT))
    if "gemma" in str(target) or "phi3" in str(target):
        model_class.set_vocab = lambda self: self._set_vocab_gpt2()
    with torch.inference_mode(), contextlib.redirect_stderr(io.StringIO()):
        model_class(directory, kind, target).write()


FREE = {"general.name", "general.size_label", "general.type", "general.finetune", "general.basename", "general.tags", "general.license",
        "general.languages", "tokenizer.ggml.padding_token_id"}


def compare_files(ours, theirs):
    """What is wrong with our file, in words."""
    ours, theirs = gguf.GGUFReader(ours), gguf.GGUFReader(theirs)
    wrong = []
    for key, field in theirs.fields.items():
        if key.startswith(("GGUF.", "general.base_model.")) or key in FREE:
            continue
        if key not in ours.fields:
            wrong.append(f"no key {key} = {str(field.contents())[:60]}")
        elif ours.fields[key].types != field.types or ours.fields[key].contents() != field.contents():
            wrong.append(f"{key}: {str(ours.fields[key].contents())[:60]} for {str(field.contents())[:60]}")
    our_tensors = {tensor.name: tensor for tensor in ours.tensors}
    for tensor in theirs.tensors:
        if tensor.name not in our_tensors:
            wrong.append(f"no tensor {tensor.name}")
            continue
        mine = our_tensors.pop(tensor.name)
        if mine.tensor_type != tensor.tensor_type or list(mine.shape) != list(tensor.shape):
            wrong.append(f"{tensor.name}: {mine.tensor_type.name} {mine.shape} for {tensor.tensor_type.name} {tensor.shape}")
        elif not numpy.array_equal(mine.data.view(numpy.uint8), tensor.data.view(numpy.uint8)):
            count = (mine.data != tensor.data).sum()
            wrong.append(f"{tensor.name}: {count} of {mine.data.size} differ")
    wrong += [f"tensor {name} is too much" for name in our_tensors]
    extra = [key for key in ours.fields if key not in theirs.fields]
    return wrong, extra


# ---- With llama.cpp

def llama_cpp():
    import llama_cpp
    llama_cpp.llama_log_set(QUIET, ctypes.c_void_p(0))
    return llama_cpp


@ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
def QUIET(level, text, data):
    if level >= 4 and os.environ.get("LOUD"):
        print(text.decode(), end="", file=sys.stderr)


def llama_logits(file, adapter=None):
    """Of TOKENS, [T, V], and the tokens of TEXTS."""
    lib = llama_cpp()
    parameters = lib.llama_model_default_params()
    model = lib.llama_model_load_from_file(str(file).encode(), parameters)
    if not model:
        raise SystemExit(f"llama.cpp does not read {file}")
    settings = lib.llama_context_default_params()
    settings.n_ctx, settings.n_batch, settings.n_ubatch, settings.n_threads, settings.n_threads_batch = 128, 128, 128, 1, 1
    settings.type_k = settings.type_v = 0  # float32
    settings.flash_attn_type = 0
    context = lib.llama_init_from_model(model, settings)
    if adapter:
        loaded = lib.llama_adapter_lora_init(model, str(adapter).encode())
        if not loaded:
            raise SystemExit(f"llama.cpp does not read {adapter}")
        if lib.llama_set_adapter_lora(context, loaded, 1.0) != 0:
            raise SystemExit("the adapter cannot be set")
    tokens = TOKENS[0].tolist()
    batch = lib.llama_batch_init(len(tokens), 0, 1)
    batch.n_tokens = len(tokens)
    for i, token in enumerate(tokens):
        batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.logits[i] = token, i, 1, 1
        batch.seq_id[i][0] = 0
    if lib.llama_decode(context, batch) != 0:
        raise SystemExit("llama.cpp cannot decode")
    vocabulary = lib.llama_model_get_vocab(model)
    width = lib.llama_vocab_n_tokens(vocabulary)
    logits = numpy.stack([numpy.ctypeslib.as_array(lib.llama_get_logits_ith(context, i), shape=(width,)).copy() for i in range(len(tokens))])
    words = []
    for text in TEXTS:
        data, buffer = text.encode(), (ctypes.c_int32 * 512)()
        words.append(list(buffer[:lib.llama_tokenize(vocabulary, data, len(data), buffer, 512, True, True)]))
    lib.llama_free(context)
    lib.llama_model_free(model)
    return torch.tensor(logits), words


def reference(model):
    with torch.no_grad():
        return model.float().eval()(TOKENS).logits[0]


def report(name, good, text):
    print(f"{name:22} {text}{'' if good else '   WRONG'}", flush=True)
    return good


def place(work, family):
    """llama.cpp expects certain tokens where a model's name speaks of Phi-3."""
    return work / family.replace("phi3", "phi")


def check_family(snug, family, work):
    directory = place(work, family)
    model = make_model(family, directory)
    good = True
    expected = reference(model)
    tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
    gelu = family.startswith(("gemma", "gpt2"))  # ggml takes it from a table of halves
    for flag, kind, limit in (("f32", gguf.LlamaFileType.ALL_F32, 1e-5), ("f16", gguf.LlamaFileType.MOSTLY_F16, 5e-3),
                              ("bf16", gguf.LlamaFileType.MOSTLY_BF16, 3e-2), ("q8_0", gguf.LlamaFileType.MOSTLY_Q8_0, 5e-2)):
        ours, theirs = work / f"{family}-{flag}.gguf", work / f"{family}-{flag}-theirs.gguf"
        export(snug, directory, ours, "--outtype", flag)
        convert(directory, theirs, kind)
        wrong, extra = compare_files(ours, theirs)
        logits, words = llama_logits(ours)
        off = merge_check.distance(logits, expected)
        same = sum(words[i] == tokenizer(text)["input_ids"] for i, text in enumerate(TEXTS))
        limit = max(3 * limit, 3e-3) if gelu else limit
        if flag != "f32" and family in ("mixtral", "qwen3_moe"):
            limit = 2e-1  # a router that was rounded may choose another expert
        good &= report(f"{family} {flag}", not wrong and off <= limit and same == len(TEXTS),
                       f"logits {off:.1e}, {same} of {len(TEXTS)} texts tokenized alike; "
                       f"{'same tensors and keys as the converter' if not wrong else '; '.join(wrong)[:300]}"
                       f"{' and ' + ', '.join(extra) if extra and flag == 'f32' else ''}")
    return good


def check_adapter(snug, family, work, name, **config):
    directory, adapter, file = place(work, family), work / f"{family}-{name}", work / f"{family}-{name}.gguf"
    adapted = merge_check.adapt(transformers.AutoModelForCausalLM.from_pretrained(directory, attn_implementation="eager"), 7, **config)
    adapted.save_pretrained(adapter)
    export(snug, adapter, file, "--model", directory)
    logits, _ = llama_logits(work / f"{family}-f32.gguf", file)
    off = merge_check.distance(logits, reference(adapted))
    before = merge_check.distance(llama_logits(work / f"{family}-f32.gguf")[0], reference(adapted))
    merged = work / f"{family}-{name}-merged.gguf"
    export(snug, directory, merged, "--adapter", adapter)
    merged_off = merge_check.distance(llama_logits(merged)[0], reference(adapted))
    theirs = work / f"{family}-{name}-theirs.gguf"
    done = subprocess.run([sys.executable, pathlib.Path(os.environ["LLAMA_CPP"]) / "convert_lora_to_gguf.py", adapter, "--base", directory,
                           "--outfile", theirs], capture_output=True, text=True)
    if done.returncode == 0:
        wrong, _ = compare_files(file, theirs)
        text = "; ".join(wrong)[:300] if wrong else "same as convert_lora_to_gguf.py"
    else:
        wrong, text = [], "convert_lora_to_gguf.py fails: " + done.stderr.strip().splitlines()[-1][:100]
    special = config.get("use_rslora") or "alpha_pattern" in config or family == "gpt2"  # where the converter is wrong, ours differs
    limit = 3e-3 if family.startswith(("gemma", "gpt2")) else 1e-5
    return report(f"{family} {name}", off <= limit and merged_off <= limit and (special or not wrong),
                  f"logits {off:.1e} (without it {before:.1e}), merged {merged_off:.1e}; {text}")


def check_sentencepiece(snug, work):
    """A SentencePiece tokenizer, with tokenizer.model and with tokenizer.json alone."""
    import sentencepiece
    directory = work / "spm"
    make_model("llama", directory)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (directory / name).unlink()
    text = (ROOT / "README.md").read_text() + " ".join(TEXTS)
    (work / "corpus.txt").write_text(text)
    sentencepiece.SentencePieceTrainer.train(input=str(work / "corpus.txt"), model_prefix=str(directory / "tokenizer"), vocab_size=600,
                                             model_type="bpe", byte_fallback=True, character_coverage=0.98, split_digits=True,
                                             normalization_rule_name="identity", remove_extra_whitespaces=False,
                                             user_defined_symbols=["<|end|>"], minloglevel=2)
    (directory / "tokenizer.vocab").unlink()
    processor = sentencepiece.SentencePieceProcessor(str(directory / "tokenizer.model"))
    good = True
    expected = [[1] + processor.encode(text) for text in TEXTS]
    export(snug, directory, work / "spm.gguf", "--outtype", "f32")
    convert(directory, work / "spm-theirs.gguf", gguf.LlamaFileType.ALL_F32)
    wrong, _ = compare_files(work / "spm.gguf", work / "spm-theirs.gguf")
    _, words = llama_logits(work / "spm.gguf")
    same = sum(a == b for a, b in zip(words, expected))
    wrong = [line for line in wrong if "token_type" not in line]  # the converter takes user-defined pieces for ordinary ones
    # "<|end|>" first: SentencePiece puts its space before it, llama.cpp and Hugging Face's tokenizers behind.
    good &= report("sentencepiece", not wrong and same >= len(TEXTS) - 1, f"{same} of {len(TEXTS)} texts tokenized as SentencePiece; "
                   f"{'same as the converter' if not wrong else '; '.join(wrong)[:300]}")
    # The same tokenizer as tokenizer.json.
    merges = sorted(((processor.id_to_piece(i), -processor.get_score(i)) for i in range(processor.get_piece_size())), key=lambda p: p[1])
    vocabulary = {processor.id_to_piece(i): i for i in range(processor.get_piece_size())}
    pairs = [[piece[:cut], piece[cut:]] for piece, rank in merges if rank > 0 or piece not in ("<unk>", "<s>", "</s>", "<|end|>")
             for cut in range(1, len(piece)) if not piece.startswith("<0x") and piece[:cut] in vocabulary and piece[cut:] in vocabulary]
    added = [{"id": i, "content": text, "special": special, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
             for i, text, special in ((0, "<unk>", True), (1, "<s>", True), (2, "</s>", True), (vocabulary["<|end|>"], "<|end|>", False))]
    (directory / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"},
                                                           {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
        "pre_tokenizer": None,
        "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                           "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}},
        "decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]},
        "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": True, "byte_fallback": True, "vocab": vocabulary, "merges": pairs}}))
    os.remove(directory / "tokenizer.model")
    import tokenizers
    fast = tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json"))
    export(snug, directory, work / "spm2.gguf")
    _, words = llama_logits(work / "spm2.gguf")
    same = sum(a == fast.encode(text).ids for a, text in zip(words, TEXTS))
    return good & report("tokenizer.json alone", same >= len(TEXTS) - 1, f"{same} of {len(TEXTS)} texts tokenized as the tokenizers library")


# ---- Golden

GOLDEN_SIZES = dict(vocab_size=10, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                    max_position_embeddings=64, bos_token_id=1, eos_token_id=2, pad_token_id=None)


def known_weights(name, shape):
    """Numbers that the test makes again: a hash of the name and the place, from -0.5 to 0.5, exact in every float type's range."""
    seed, count = zlib.crc32(name.encode()), int(numpy.prod(shape))
    places = numpy.arange(count, dtype=numpy.uint64)
    values = ((places * 2654435761 + seed) % 2**32 >> 16).astype(numpy.float32) / 65536 - 0.5
    return torch.tensor(values.reshape(shape))


def described(file):
    reader = gguf.GGUFReader(file)
    tensors = {t.name: {"type": t.tensor_type.name, "shape": [int(n) for n in reversed(t.shape)], "crc32": zlib.crc32(t.data.tobytes())}
               for t in reader.tensors}
    keys = {key: field.contents() for key, field in reader.fields.items()
            if not key.startswith(("GGUF.", "general.", "tokenizer.")) or key in ("general.architecture", "general.file_type")}
    return {"keys": keys, "tensors": tensors}


def write_golden():
    cases = {}
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        for family, kind in (("llama", "F16"), ("llama_llama3", "F32"), ("mixtral", "Q8_0"), ("qwen2", "BF16"), ("qwen3", "F32"),
                             ("gemma2", "F32"), ("gemma3_text", "Q8_0"), ("phi3", "F32"), ("gpt2", "F16")):
            config_class, more = FAMILIES[family]
            if family == "gpt2":
                config = config_class(vocab_size=10, n_embd=32, n_layer=1, n_head=4, n_positions=64, bos_token_id=1, eos_token_id=2)
                config.n_ctx = 64
            else:
                sizes = {**GOLDEN_SIZES, **more, **({"head_dim": 16} if "head_dim" in more else {})}
                if "query_pre_attn_scalar" in more:
                    sizes["query_pre_attn_scalar"] = 16
                config = config_class(**sizes)
            model = transformers.AutoModelForCausalLM.from_config(config)
            place = work / family
            model.save_pretrained(place)
            import safetensors.torch
            shapes = {name: list(tensor.shape) for name, tensor in safetensors.torch.load_file(place / "model.safetensors").items()}
            safetensors.torch.save_file({name: known_weights(name, shape) for name, shape in shapes.items()}, place / "model.safetensors",
                                        {"format": "pt"})
            conversion = converter()
            hparams = conversion.ModelBase.load_hparams(place, False)
            model_class = conversion.get_model_class(conversion.get_model_architecture(hparams, conversion.ModelType.TEXT))
            model_class.set_vocab = lambda self: self._set_vocab_none()
            if family.startswith("gemma3"):  # it counts the tokenizer's tokens
                (place / "tokenizer.json").write_text(json.dumps({"model": {"vocab": {str(i): i for i in range(10)}}, "added_tokens": []}))
            file = work / f"{family}.gguf"
            with torch.inference_mode(), contextlib.redirect_stderr(io.StringIO()):
                model_class(place, gguf.LlamaFileType["ALL_F32" if kind == "F32" else f"MOSTLY_{kind}"], file).write()
            kept = {key: value for key, value in json.loads((place / "config.json").read_text()).items() if value is not None}
            cases[family] = {"config": kept, "weights": shapes, "outtype": kind.lower(), "expected": described(file)}
        # An adapter over the llama.
        shapes = {}
        for module, (out, width) in {"self_attn.q_proj": (32, 32), "self_attn.k_proj": (16, 32), "mlp.down_proj": (32, 48)}.items():
            shapes[f"base_model.model.model.layers.1.{module}.lora_A.weight"] = [4, width]
            shapes[f"base_model.model.model.layers.1.{module}.lora_B.weight"] = [out, 4]
        settings = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": 4, "lora_alpha": 12, "target_modules": ["q_proj", "k_proj", "down_proj"]}
        adapter = work / "adapter"
        adapter.mkdir()
        (adapter / "adapter_config.json").write_text(json.dumps(settings))
        safetensors.torch.save_file({name: known_weights(name, shape) for name, shape in shapes.items()}, adapter / "adapter_model.safetensors")
        subprocess.run([sys.executable, pathlib.Path(os.environ["LLAMA_CPP"]) / "convert_lora_to_gguf.py", adapter, "--base", work / "llama",
                        "--outfile", work / "adapter.gguf"], check=True, capture_output=True)
        cases["adapter"] = {"config": settings, "weights": shapes, "outtype": "f32", "expected": described(work / "adapter.gguf")}
    cases["versions"] = {"llama.cpp": "that in the source distribution of llama-cpp-python 0.3.36", "transformers": transformers.__version__}
    (ROOT / "tests/golden/gguf.json").write_text(json.dumps(cases, separators=(",", ":")) + "\n")
    return 0


def main():
    if "--golden" in sys.argv:
        return write_golden()
    snug = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "snug").resolve()
    chosen = sys.argv[2:] or [*FAMILIES, "sentencepiece"]
    good = True
    with tempfile.TemporaryDirectory(prefix="snug-gguf-") as directory:
        work = pathlib.Path(directory)
        for family in chosen:
            if family == "sentencepiece":
                good &= check_sentencepiece(snug, work)
                continue
            good &= check_family(snug, family, work)
            if family == "llama":
                good &= check_adapter(snug, family, work, "lora", r=4, lora_alpha=8, target_modules="all-linear")
                good &= check_adapter(snug, family, work, "rslora", r=4, lora_alpha=8, use_rslora=True, target_modules="all-linear",
                                      rank_pattern={"q_proj": 2}, alpha_pattern={"v_proj": 3})
                good &= check_adapter(snug, family, work, "embedding", r=4, lora_alpha=8, target_modules=["q_proj", "embed_tokens", "lm_head"])
            elif family in ("qwen2", "gemma2", "phi3", "qwen3"):
                good &= check_adapter(snug, family, work, "lora", r=4, lora_alpha=8, target_modules="all-linear")
            elif family == "gpt2":
                good &= check_adapter(snug, family, work, "lora", r=4, lora_alpha=8, target_modules=["c_attn", "c_fc"], fan_in_fan_out=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

"""Cases with one forward and backward pass: untied, tied, rope_llama3, packed, window, mistral, bf16.

expected.safetensors: `logits` [B, T, V], `loss` [1] (= `loss_targets`), `loss_huggingface` [1], `grad.NAME` of every parameter
(of `loss`; a tied model has one gradient, under model.embed_tokens.weight). expected.json: the same losses and both denominators.
"""

import json
import math
import os

import torch
import transformers

import oracle


def run_case(case, model, micro_batches, batch, more_tensors=None, more=None):
    """Runs the micro-batches of one step under both denominators and writes the golden files; gradients are of `targets`."""
    targets, unshifted = oracle.count_targets(*micro_batches), oracle.count_unshifted(*micro_batches)
    losses, logits = oracle.accumulate(model, micro_batches, unshifted)
    loss_huggingface = sum(losses)
    model.zero_grad()
    losses, logits = oracle.accumulate(model, micro_batches, targets)
    loss = sum(losses)
    tensors = {"logits": torch.cat(logits), "loss": loss.reshape(1), "loss_targets": loss.reshape(1),
               "loss_huggingface": loss_huggingface.reshape(1)} | oracle.gradients(model.named_parameters())
    expected = {"arithmetic": "weights and arithmetic in float32, eager attention",
                "loss_targets": loss.item(), "loss_huggingface": loss_huggingface.item(),
                "denominators": {"targets": targets, "huggingface": unshifted},
                "gradients_of": "loss_targets"}
    oracle.write_golden(case, batch, tensors | (more_tensors or {}), expected | (more or {}))
    return tensors


def plain(case, config, seed, documents, keep=1.0, more=None):
    model = oracle.read_model(oracle.write_model(case, config, seed))
    batch = oracle.make_batch(torch.Generator().manual_seed(seed), config.vocab_size, documents, keep)
    run_case(case, model, [batch], batch, more=more)
    return model, batch


def untied():
    plain("untied", oracle.tiny_config(C=32, L=2, H=4, K=2, F=48, V=67), 1, [[13], [13]])


def tied():
    plain("tied", oracle.tiny_config(C=48, L=2, H=3, K=1, F=80, V=61, tied=True), 2, [[17], [17]], keep=0.6)


def rope_llama3():
    """D = 16 has wavelengths 6.3, 19.9, 62.8 …: with 32 original positions (limits 8 and 32) one of them is kept, one is
    interpolated, the others are divided by the factor. config_v4.json is the same model in the words of transformers 4."""
    rope = {"rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 32}
    config = oracle.tiny_config(C=32, L=2, H=2, K=2, F=48, V=67, rope=rope, positions=256)
    wavelengths = [2 * math.pi * 10000 ** (2 * i / 16) for i in range(8)]
    branches = ["kept" if w < 32 / 4 else "divided" if w > 32 / 1 else "interpolated" for w in wavelengths]
    assert set(branches) == {"kept", "divided", "interpolated"}
    directory = oracle.GOLDEN / "rope_llama3"
    model, batch = plain("rope_llama3", config, 3, [[40], [40]],
                         more={"branch_of_frequency": branches, "inverse_frequencies": rope_frequencies(config)})

    written = json.loads((directory / "config.json").read_text())
    parameters = written.pop("rope_parameters")
    written["rope_theta"] = parameters.pop("rope_theta")
    written["rope_scaling"] = parameters
    written["torch_dtype"] = written.pop("dtype")
    written["transformers_version"] = "4.46.0"
    oracle.write_json(directory / "config_v4.json", written)
    again = type(config).from_dict(written)
    assert again.rope_parameters == model.config.rope_parameters, (again.rope_parameters, model.config.rope_parameters)


def rope_frequencies(config):
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding
    return LlamaRotaryEmbedding(config).inv_freq.tolist()


def packed():
    """Several documents in a row; the truth is each document alone. transformers' own packed path (position_ids that restart,
    no attention mask) is run beside it and its distance kept."""
    config = oracle.tiny_config(C=32, L=2, H=4, K=2, F=48, V=67)
    model = oracle.read_model(oracle.write_model("packed", config, 4))
    documents = [[9, 1, 11], [5, 16]]
    batch = oracle.make_batch(torch.Generator().manual_seed(4), config.vocab_size, documents, keep=0.8)
    for row, begin, _ in oracle.document_spans(batch):  # a label at a document's start must never become a target
        batch["labels"][row][begin] = batch["tokens"][row][begin]
    positions = [[p for length in lengths for p in range(length)] for lengths in documents]
    with torch.no_grad():
        together = model(input_ids=torch.tensor(batch["tokens"]), position_ids=torch.tensor(positions), use_cache=False).logits
        leaky = model(input_ids=torch.tensor(batch["tokens"]), use_cache=False).logits
    logits = oracle.logits_of(model, batch)
    run_case("packed", model, [batch], batch, more={
        "positions": positions,
        "transformers_packed_path_distance": oracle.relative_error(together, logits),
        "distance_if_documents_saw_one_another": oracle.relative_error(leaky, logits)})


def window():
    """Three micro-batches of one optimizer step with 16, 8 and 2 targets: the answer is that of one batch of six rows."""
    config = oracle.tiny_config(C=32, L=2, H=4, K=2, F=48, V=67)
    model = oracle.read_model(oracle.write_model("window", config, 5))
    generator = torch.Generator().manual_seed(5)
    micro_batches = [oracle.make_batch(generator, config.vocab_size, [[9], [9]], keep) for keep in (1.0, 0.35, 0.0)]
    targets = oracle.count_targets(*micro_batches)

    big = {key: [row for batch in micro_batches for row in batch[key]] for key in ("tokens", "documents", "labels")}
    big_loss, _ = oracle.forward(model, big, targets)
    big_loss.backward()
    big_gradients = oracle.gradients(model.named_parameters())
    model.zero_grad()
    with torch.no_grad():
        parts = [oracle.forward(model, batch, targets)[0].item() for batch in micro_batches]
        means = [oracle.forward(model, batch, oracle.count_targets(batch))[0].item() for batch in micro_batches]
    tensors = run_case("window", model, micro_batches, {"micro_batches": micro_batches}, more={
        "targets_of_micro_batch": [oracle.count_targets(batch) for batch in micro_batches],
        "loss_of_micro_batch": parts, "trap_mean_of_means": sum(means) / len(means), "big_batch_loss": big_loss.item()})
    for name, gradient in big_gradients.items():
        assert oracle.relative_error(tensors[name], gradient) < 1e-5, name


def mistral():
    """Sequences as long as the sliding window, which therefore hides nothing, though one token less of it would; a head size
    that is not C / H."""
    T = 13
    config = oracle.tiny_config(C=24, L=2, H=2, K=1, F=40, V=53, family=transformers.MistralConfig, head_dim=16,
                                sliding_window=T)
    model, batch = plain("mistral", config, 7, [[T], [T]])
    logits, distance = oracle.logits_of(model, batch), {}
    for window in (None, T - 1):
        model.config.sliding_window = window
        distance[window] = oracle.relative_error(oracle.logits_of(model, batch), logits)
    assert distance[None] == 0 and distance[T - 1] > 1e-3, distance


def bf16():
    """bf16 weights. Truth: the weights widened to float32, arithmetic in float32. Beside it what transformers gives when all
    runs in bf16 (as float32 tensors `logits_transformers_bf16`, `loss_transformers_bf16`), with its distance from the truth."""
    config = oracle.tiny_config(C=48, L=2, H=3, K=1, F=80, V=61, tied=True)
    directory = oracle.write_model("bf16", config, 6, torch.bfloat16)
    batch = oracle.make_batch(torch.Generator().manual_seed(6), config.vocab_size, [[17], [17]], keep=0.8)
    low = oracle.read_model(directory, torch.bfloat16)
    (loss,), (logits,) = oracle.accumulate(low, [batch], oracle.count_targets(batch))
    exact = oracle.read_model(directory, torch.float32)
    (exact_loss,), (exact_logits,) = oracle.accumulate(exact, [batch], oracle.count_targets(batch))
    distance = {name: oracle.relative_error(a.grad, b.grad)
                for (name, a), (_, b) in zip(low.named_parameters(), exact.named_parameters())}
    exact.zero_grad()
    run_case("bf16", exact, [batch], batch,
             {"logits_transformers_bf16": logits.float(), "loss_transformers_bf16": loss.float().reshape(1)},
             {"arithmetic": "weights in bfloat16, widened to float32; arithmetic in float32, eager attention",
              "transformers_bf16": {"logits_distance": oracle.relative_error(logits, exact_logits),
                                    "loss_distance": oracle.relative_error(loss, exact_loss),
                                    "gradient_distance": distance}})


def main():
    os.chdir(oracle.ROOT)
    for case in (untied, tied, rope_llama3, packed, window, mistral, bf16):
        case()


if __name__ == "__main__":
    main()

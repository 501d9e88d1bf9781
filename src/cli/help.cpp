// snug --help teaches: what it does, the commands, and every key with its default.

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "ask/arguments.h"
#include "cli/commands.h"
#include "cli/help_layout.h"
#include "cli/help_page.h"
#include "cli/man_page.h"
#include "cli/terminal.h"
#include "recipe/keys.h"
#include "report/recipe_schema.h"

namespace snug::cli {

namespace {

constexpr std::string_view kOverview = R"(snug fine-tunes language models in the memory you have.

  snug plan MODEL [keys]            will it fit? the exact peak, before anything is loaded
  snug plan FILE                    the same of a recipe that you have: axolotl, LLaMA-Factory, TRL, torchtune, Unsloth,
                                    ms-swift, AutoTrain, LitGPT, as YAML, JSON, shell or Python script, notebook
  snug fit MODEL --gpu NAME         what should I change? the best recipe for that memory, and the file to run it
  snug data FILE MODEL              what of each row is learned, as tokens
  snug train RECIPE.yaml | MODEL    do it, in exactly that memory
  snug explain FILE                 why did it run out? from the log or the memory snapshot of a run on PyTorch
  snug measure -- COMMAND           what does a PyTorch program take? run on a card that you do not have
  snug watch [PID | GPU]            the memory of a process or of the GPUs, live
  snug generate MODEL               let it answer: a prompt, a chat, a file of prompts
  snug merge ADAPTER --output-dir DIR   an adapter into its base model: a checkpoint of its own
  snug quantize MODEL --output-dir DIR  its linears in 4 or 8 bits, as bitsandbytes has them
  snug export MODEL --gguf FILE     a model or an adapter as a GGUF file, for llama.cpp
  snug init MODEL --output-dir DIR  a random-weight checkpoint, for benchmarks and pretraining
  snug models [NAME]                models that plan knows by name
  snug gpus [NAME]                  accelerators: memory, bandwidth, rates, rough rents
  snug probe                        how fast this machine is: a few seconds, so that plans tell times
  snug completion bash|zsh|fish     what the shell offers for Tab
  snug help COMMAND                 what it takes, flag by flag
  snug help keys                    every key, with its default
  snug help pytorch                 flags of plan, fit and explain for a run on PyTorch
  snug help schema | man            a JSON Schema of recipes, for editors; the manual page

MODEL is a Hugging Face checkpoint directory, a config.json, or a name such as meta-llama/Llama-3.1-8B.

  snug plan meta-llama/Llama-3.1-8B --method lora --bf16 --batch 2 --seq 2048 --memory 24GiB
  snug train ./SmolLM2-135M --data train.jsonl --method lora --lora-r 16 --max-steps 100 --output-dir out

Keys are Hugging Face's, in YAML (per_device_train_batch_size: 4) or as flags (--per-device-train-batch-size 4).
Short forms: --batch --seq --accum --lr --data --memory.
Exit codes: 0 done, 1 bad input or failure, 2 usage, 3 does not fit, 130/143 stopped after saving.
)";

constexpr std::string_view kPlan = R"(snug plan MODEL [keys] [--gpu NAME] [--json | --dump | --solve WHAT]
snug plan FILE [MODEL] [keys] …
  FILE: a recipe of ours, or of axolotl, LLaMA-Factory, TRL, torchtune, Unsloth, ms-swift, AutoTrain or LitGPT, as YAML, as
  JSON, as the shell script that starts it, or a Python script or notebook (docs/recipes.md)

Compiles the fine-tuning step that the keys describe and prints its exact memory: the peak, where its bytes are, the peak
of each stage, what was assumed. Exit code 3 if it does not fit --memory (default: what this machine can give).
  --gpu NAME               plan for an accelerator of the catalogue (snug gpus)
  --gpus N [--fsdp | --deepspeed FILE]   so many of them share PyTorch's run; by DDP if nothing else is said
  --num-processes N [--zero-stage 0|1|2|3]   so many share a run of snug's own: what each needs and sends (docs/parallel.md)
  --gpus-per-node M        beyond so many they reach each other by a network: counts in the time of snug's own runs
  --levers                 each single change: bytes saved, time, what it gives up
  --solve batch|seq|rank   the largest that fits
  --examples N --example-tokens M, or --count-data with --data FILE   steps, tokens, time and price of a run
  --trace FILE             memory over the ops, for ui.perfetto.dev and chrome://tracing
  --html FILE              one web page: memory over the ops, what is alive at each, the arena as a map
  --max-memory 0:80GiB,1:24GiB,cpu:200GiB   which part of the model on which device, and the device_map to paste
  --max-memory cpu:16GiB,disk:100GiB        which blocks on disk; snug train --max-memory runs it
      --weights-only       for inference: no gradients, states or activations
  --megatron FILE --gpus N [--vocab-size N]   what each rank of a Megatron-LM script holds between steps
  --textbook               the rules of thumb of articles, beside the exact figures; MODEL may be a round count, such as 7B
      --parameters N --trained N --hidden N --layers N --heads N --activations SIZE   what a rule is to take instead
  --runtime, --stack …     whose memory, and what a script says to PyTorch: snug help pytorch
  --json                   one JSON object for scripts
  --dump                   the compiled program and its layout, for review
)";

constexpr std::string_view kFit =
    R"(snug fit MODEL [--gpu NAME | --memory SIZE] [keys] [--data FILE | --examples N --example-tokens M] [--write FILE.yaml]

Searches thousands of recipes for the one that is best for the memory at hand: quantization, optimizer and the home of its
states, micro-batch and accumulation at your effective batch, and how many blocks are recomputed. Keys that you give stay as
they are. Every recipe shown is planned in full. Exit code 3 if nothing fits, with the cheapest thing that would.
For a card, and for another trainer's recipe, the answer is for PyTorch, with a margin that it states.
MODEL may be a recipe of axolotl, LLaMA-Factory, TRL, torchtune, Unsloth or ms-swift: method, rank, targets, length and the
effective batch stay, and the best is shown as a diff of that file too.
  --gpu NAME                 the card (snug gpus)
  --examples N --example-tokens M   the rows and their tokens, where there is no --data FILE: steps, time and price of the run
  --gpus N --gpus-per-node M   how so many should share a run of snug's own: all meshes, the fastest first, and its launch
  --method full|lora|qlora   search this one (default: all are shown, LoRA is chosen)
  --runtime snug|pytorch     whose memory is searched; --stack and the rest: snug help pytorch
  --write FILE.yaml          the chosen recipe, for snug train; of another trainer's recipe for PyTorch the changed file
  --json                     one JSON object for scripts
)";

constexpr std::string_view kExplain = R"(snug explain FILE|- [RECIPE] [--gpu NAME] [--html FILE] [--trace FILE] [--json]
snug explain --try [--gpu NAME] [--memory SIZE] [--steps N] [--json FILE] -- COMMAND …

Reads what a program on PyTorch left behind when it ran out of memory and says what ran out, with the arithmetic that shows
it, what the program was doing, which line of yours it was, and what to change. Needs neither PyTorch nor a GPU. FILE is
  a log or a traceback     of any release, mixed with other output, of any length; - reads what comes in
  a memory snapshot        of torch.cuda.memory._dump_snapshot(): also what held the memory, and what grows
  a memory summary         of torch.cuda.memory_summary() or memory_stats()
  a profiler trace         of torch.profiler with profile_memory=True (JSON)
Exit code 1 if the file holds none of these.
  RECIPE                   of snug, axolotl, LLaMA-Factory, TRL, torchtune, Unsloth or ms-swift: what to change in it, as a diff
  --runtime snug           the recipe's figures from snug's own plan, not from the model of PyTorch
  --gpu NAME               the device it ran on, where the message does not tell
  --html FILE              of a snapshot: memory over its events, the segments and what held the memory at any of them, as a page
  --trace FILE             of a snapshot: the same for ui.perfetto.dev or chrome://tracing
  --json                   one JSON object for scripts
  --try                    runs COMMAND on a card that you do not have (snug help measure); where it runs out there, makes each
                           change that is advised, as far as arguments of Trainer, of TRL and of from_pretrained go, and runs
                           it again until one is enough. Exit code 3 if none is
  --steps N                with --try: of the optimizer, before the program is ended
)";

constexpr std::string_view kMeasure =
    R"(snug measure [--gpu NAME] [--memory SIZE] [--gpus N] [--synthetic] [--steps N] [--json FILE] -- COMMAND …

Runs a PyTorch program (CUDA build, from PyPI or conda) on a null device: memory is address space, kernels do nothing, and PyTorch's
own allocator says what it allocated and reserved, phase by phase, to the byte. Needs no GPU. The exit code is the program's; 3 where
the device would have run out, and then PyTorch's own snapshot is explained.
  --gpu NAME       the card: memory, architecture, multiprocessors (default: A100-SXM4-80GB; snug gpus lists them)
  --memory SIZE    another memory than the card's
  --gpus N         how many of them the machine has; torchrun and accelerate start a process for each
  --synthetic      what is not in the local cache is stood in for: known models' configurations, tokenizers, rows
  --steps N        end the program after N steps of its optimizer
  --json FILE      the result as one JSON object
  --snapshot FILE  keep PyTorch's snapshot, if memory runs out
Weights that are not here are empty ones of the same shapes, and take neither disk nor memory.
)";

constexpr std::string_view kPyTorch = R"(snug plan|fit|explain … [--runtime snug|pytorch] [what a script says to PyTorch]

Whose memory it is, and what only a run on PyTorch has to say. PyTorch's is what another trainer's recipe asks for, and a model
with --gpu; snug's own is that of a plan of this machine.
  --runtime snug|pytorch     the one or the other
  --stack torch=2.4.1,transformers=4.48.1   versions, of peft and bitsandbytes too; what is left out is today's
  --attn-implementation sdpa|flash_attention_2|eager   as from_pretrained takes it
  --gradient-checkpointing-kwargs use_reentrant=false   the other way to recompute
  --use-liger-kernel         Liger's kernels
  --fused-kernels norm,rope,lora,loss   fms-acceleration's
  --trainer litgpt|torchtune   their own models and loops
  --own-loop labels|logits   no Trainer: the loop gives the model labels, or makes the loss of its logits
  --row-lengths 2048,731,…   of successive micro-batches
  --gptq 128|none            the checkpoint's linears are GPTQ's, in such groups
  --eval-rows N              rows that are evaluated
  --eval-batch N             in batches of so many
  --compute-metrics          the logits of all of them are kept on the device
  --eval-accumulation-steps N   until so many batches are there
  --gpus N                   so many share the run; by DDP if nothing else is said
  --fsdp                     by FSDP
  --ddp                      by DDP, whatever a recipe says
  --deepspeed FILE           by ZeRO, as DeepSpeed's configuration has it
)";

constexpr std::string_view kWatch = R"(snug watch [PID | GPU] [--interval SECONDS] [--count N] [--json]

Shows a memory live: of every NVIDIA GPU and the processes on it, of one (GPU: 0, 1 …), or of a process (PID), with its peak and
what the machine could still give it. From 90 % on it says "nearly full". Ends with the process, after N looks, or with Ctrl-C.
  --interval SECONDS       between looks (1)
  --count N                so many looks
  --json                   one JSON object a line, for scripts; elsewhere than on a terminal, one line of text a look
)";

constexpr std::string_view kProbe = R"(snug probe [--threads N]

Runs a few steps of small random models and keeps how fast each kind of op went in ~/.cache/snug (or $XDG_CACHE_HOME/snug).
From then on snug plan and snug fit tell seconds for this machine, and finished runs leave receipts there that correct them.
  --threads N   cores used (default: those that this process may use)
)";

constexpr std::string_view kData = R"(snug data FILE MODEL [--rows N] [--ids] [keys]
snug data RECIPE.yaml [--rows N] [--ids] [keys]

The first rows as training sees them: the text that the model is given, cut at max_length, and what of it is learned (in green;
without colour between ⟦ and ⟧). The keys are those of train: completion_only_loss, assistant_only_loss, chat_template …
  --rows N   so many (default: 3)
  --ids      token by token: place, id, whether it is learned, spelling
)";

constexpr std::string_view kTrain = R"(snug train RECIPE.yaml [keys]
snug train MODEL --data FILE.jsonl [keys]

Plans, refuses what does not fit (exit code 3), then trains in exactly the planned memory. FILE holds one JSON object a line
with "text", or with "prompt" and "completion". Writes metrics.jsonl, checkpoint-N directories and the result (a PEFT adapter
or a Hugging Face checkpoint) into --output-dir. Ctrl-C finishes the step and saves; --resume-from-checkpoint goes on.
  --max-memory cpu:16GiB,disk:100GiB   as few blocks on disk as fit the memory, as snug plan prints them
  --trace FILE   loading and the first two steps, op by op with times and memory, for ui.perfetto.dev
)";

constexpr std::string_view kInit =
    R"(snug init MODEL --output-dir DIRECTORY [--bf16|--fp16] [--seed N] [--tokenizer DIRECTORY]
               [--load-in-4bit [--bnb-4bit-quant-type fp4] [--bnb-4bit-use-double-quant false] | --load-in-8bit]

Writes config.json and random weights of that configuration; copies the tokenizer's files along. Quantized ones are those that
snug quantize would make of the numbers, which never lie on disk.
  --tokenizer DIRECTORY   whose tokenizer's files come along (default: none)
)";

constexpr std::string_view kGenerate =
    R"(snug generate MODEL [--adapter DIR …] --prompt TEXT | --chat TEXT | --data FILE.jsonl
snug generate MODEL                                  a chat, on a terminal

MODEL may be an adapter, which names its base.
  --prompt TEXT          continues the text
  --chat TEXT            answers one user message, through the model's chat template
  --data FILE            a row a line, each with "prompt" or "messages"
  --adapter DIR          a PEFT LoRA adapter; may be repeated: their changes add up
  --max-new-tokens N     256 unless told
  --temperature X        0: always the best token. Without it, as the model's generation_config.json says (else 0)
  --top-p X, --top-k N   draw from the likeliest alone (defaults of generation_config.json; else 1 and 50)
  --seed N               42; the same seed gives the same text
  --stop STRING          ends the answer before STRING; may be repeated
  --max-length N         tokens of prompt and answer that are planned for (for a chat 4096 unless told)
  --bf16, --fp16 true|false   weights, activations and cache in bf16 or f16; unless told, as the checkpoint is stored
  --memory SIZE          the budget; exit code 3 if it does not suffice
  --threads N            cores used
  --json                 one object an answer: prompt_tokens, new_tokens, text, stop_reason, tokens_per_second, memory

The answer goes to stdout as it comes, all else to stderr. Memory is planned before weights are read, as in training.
)";

constexpr std::string_view kMerge = R"(snug merge ADAPTER… --output-dir DIRECTORY [--model DIRECTORY]

Adds adapters of PEFT, snug or mlx-lm to the weights of their base model and writes a checkpoint that needs no adapter:
weights in float32 arithmetic, rounded once to the base's own dtype; configuration and tokenizer come along. Several adapters,
as words, with commas or as --adapter, are added in that order.
  --output-dir DIRECTORY  where the checkpoint is written
  --adapter ADAPTER       one more; may be repeated
  --model DIRECTORY       the base (default: the one that the adapter names, if it is a directory)
  --max-shard-size SIZE   of one file of weights (default: 5GB)
  --overwrite-output-dir  replace a model that stands there
)";

constexpr std::string_view kQuantize = R"(snug quantize MODEL --output-dir DIRECTORY

Writes a checkpoint whose linears are quantized in bitsandbytes' formats, piece by piece, so that a model of any size can be
quantized in little memory. transformers and snug load it as it is; embedding, head, router, experts and norms stay as they are.
  --output-dir DIRECTORY                    where the checkpoint is written
  --bnb-4bit-quant-type nf4|fp4             4 bits a weight, a scale for each 64 (default: nf4)
  --bnb-4bit-use-double-quant true|false    the scales in 8 bits (default: true)
  --load-in-8bit                            LLM.int8 instead: 8 bits a weight, a scale for each row
  --max-shard-size SIZE                     of one file of weights (default: 5GB)
  --overwrite-output-dir                    replace a model that stands there
)";

constexpr std::string_view kExport = R"(snug export MODEL --gguf FILE [--adapter ADAPTER…]
snug export ADAPTER --gguf FILE [--model DIRECTORY]

Writes a GGUF file, which llama.cpp and what is built on it read: a model, with adapters merged on the way, or a LoRA adapter
by itself. Families: llama, mistral, mixtral, qwen2, qwen3, qwen3_moe, gemma2, gemma3_text, phi3, gpt2.
  --gguf FILE                   the file to write
  --adapter ADAPTER             merged into the model; may be repeated
  --model DIRECTORY             of an adapter: its base (default: the one that the adapter names, if it is a directory)
  --outtype f32|f16|bf16|q8_0   of the matrices (default: the model's own; an adapter's: f32)
  --pretokenizer NAME           tokenizer.ggml.pre, for a tokenizer that is not recognized
)";

constexpr std::string_view kCompletion = R"(snug completion bash|zsh|fish

Prints the script by which a shell completes commands, flags, keys and their values, models and accelerators. make install and
the Debian package put it where the shell finds it; otherwise
  bash   source <(snug completion bash), in ~/.bashrc
  zsh    snug completion zsh > DIRECTORY/_snug, a DIRECTORY of $fpath, before compinit
  fish   snug completion fish > ~/.config/fish/completions/snug.fish
)";

constexpr std::string_view kModels = R"(snug models [NAME] [--json]

Lists the models that plan knows by name, family by family, with their parameters; with NAME all about one: what its config.json
says, where its parameters are, and whether it can be trained or only planned.
  --json   one JSON object for scripts
)";

constexpr std::string_view kGpus = R"(snug gpus [NAME] [--json]

Lists accelerators by vendor: memory, bandwidth, dense 16-bit rate, rough rent, best use; with NAME all about one. Names are
taken as drivers and sellers write them: "NVIDIA GeForce RTX 4090", rtx4090, 4090.
  --json   one JSON object for scripts
)";

void print_keys() {
  for (const Key& key : recipe_keys()) {
    std::string aliases;
    for (std::string_view alias : key.aliases) aliases += (aliases.empty() ? "" : ", ") + std::string(alias);
    const std::string value = key.default_text();
    fmt::print("{}{}\n    {}{}{}\n", key.name, value.empty() ? "" : " = " + value, key.help,
               aliases.empty() ? "" : "  Also: ", aliases);
  }
}

struct Page {
  std::string_view topic, text;
};

constexpr Page kPages[] = {
    {"plan", kPlan},         {"fit", kFit},         {"explain", kExplain},   {"watch", kWatch},
    {"data", kData},         {"train", kTrain},     {"generate", kGenerate}, {"merge", kMerge},
    {"quantize", kQuantize}, {"export", kExport},   {"init", kInit},         {"models", kModels},
    {"gpus", kGpus},         {"measure", kMeasure}, {"probe", kProbe},       {"completion", kCompletion},
    {"pytorch", kPyTorch}};

}  // namespace

std::string_view help_page(std::string_view topic) {
  const auto found = std::ranges::find(kPages, topic, &Page::topic);
  return found == std::end(kPages) ? kOverview : found->text;
}

int help_command(std::span<char* const> words) {
  const std::string_view topic = words.empty() ? std::string_view() : words[0];
  if (topic == "keys") {
    print_keys();
    return 0;
  }
  if (topic == "schema" || topic == "man") {
    fmt::print("{}", topic == "man" ? man_page() : recipe_schema());
    return 0;
  }
  const std::string_view text = help_page(topic);
  constexpr int kWritten = 128;  // columns
  const int width = style_of(stdout).width;
  if (is_terminal(stdout) && width < kWritten) {
    fmt::print("{}", laid_out(text, width));
  } else {
    fmt::print("{}", text);
  }
  return 0;
}

}  // namespace snug::cli

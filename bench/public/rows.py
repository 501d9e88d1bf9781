"""Which public programs are measured. `repository`: owner/name@commit; `files`: where a file or folder of it is put; `models` and `data`: what
the program asks for, as cache.py makes it. Commands are those that the repository gives for the program; what would reach for the network or
a logger's account (--push_to_hub, --report_to) is left out."""

# What each virtual environment holds; pip takes what these packages ask for.
STACKS = {
    "new": "torch==2.15.0 transformers==5.23.0 peft==0.21.2 trl==1.16.0 bitsandbytes==0.50.2",
    "old": "torch==2.4.1 transformers==4.48.1 peft==0.13.2 trl==0.13.0 bitsandbytes==0.43.3 accelerate==1.2.1 datasets==3.2.0",
    "axolotl": "axolotl==0.19.0",
    "llamafactory": "torch==2.13.0 llamafactory==0.9.5 bitsandbytes==0.50.2",
    "swift": "torch==2.13.0 ms-swift==4.6.0 bitsandbytes==0.50.2 deepspeed==0.19.8 liger-kernel==0.8.5",
}

TRL, TRL_OLD = "huggingface/trl@v1.9.0", "huggingface/trl@v0.13.0"
PEFT = "huggingface/peft@v0.20.0"
AXOLOTL = "axolotl-ai-cloud/axolotl@067b021c8b87a9e5e380b9173c704cf7340e30f5"
FACTORY = "hiyouga/LLaMA-Factory@v0.9.5"
SWIFT = "modelscope/ms-swift@v4.5.2"
NANOGPT = "karpathy/nanoGPT@3adf61e154c3fe3fca428ad6bc3818b27a3b8291"
EXAMPLES = "pytorch/examples@77f55b912142e11fcfdf5b530231fb9c52f181e8"

PREFERENCE = {"trl-lib/ultrafeedback_binarized": "preference"}
SWIFT_DATA = {"AI-ModelScope/alpaca-gpt4-data-zh": "alpaca", "AI-ModelScope/alpaca-gpt4-data-en": "alpaca", "swift/self-cognition": "response"}


def trl(name, script, arguments, models, data, **more):
    """A script that TRL's own package holds."""
    return dict(name=name, trainer="TRL", stack="new", source=f"trl 1.16.0, trl/scripts/{script}.py", models=models, data=data,
                command=f"python -m trl.scripts.{script} {arguments}", **more)


def axolotl(name, path, models, data, **more):
    return dict(name=name, trainer="axolotl", stack="axolotl", repository=AXOLOTL, files={"recipe.yaml": f"examples/{path}"}, models=models, data=data,
                command="axolotl train recipe.yaml", **more)


def factory(name, command, models, **more):
    return dict(name=name, trainer="LLaMA-Factory", stack="llamafactory", repository=FACTORY, source=f"LLaMA-Factory@v0.9.5, {command.split()[-1]}",
                files={"examples/": "examples/", "data/": "data/", "src/": "src/"}, models=models, command=command, **more)


def swift(name, path, models=("Qwen/Qwen2.5-7B-Instruct",), data=SWIFT_DATA, **more):
    return dict(name=name, trainer="ms-swift", stack="swift", repository=SWIFT, files={"train.sh": f"examples/train/{path}"}, models=models, data=data,
                command="bash train.sh", **more)


ROWS = [
    trl("trl-sft-full", "sft", "--model_name_or_path Qwen/Qwen2-0.5B --dataset_name trl-lib/Capybara --learning_rate 2.0e-5 --num_train_epochs 1 --packing "
        "--per_device_train_batch_size 2 --gradient_accumulation_steps 8 --eos_token '<|im_end|>' --eval_strategy steps --eval_steps 100 "
        "--output_dir Qwen2-0.5B-SFT", ["Qwen/Qwen2-0.5B"], {"trl-lib/Capybara": "messages"}),
    trl("trl-sft-lora", "sft", "--model_name_or_path Qwen/Qwen2-0.5B --dataset_name trl-lib/Capybara --learning_rate 2.0e-4 --num_train_epochs 1 --packing "
        "--per_device_train_batch_size 2 --gradient_accumulation_steps 8 --eos_token '<|im_end|>' --eval_strategy steps --eval_steps 100 --use_peft "
        "--lora_r 32 --lora_alpha 16 --output_dir Qwen2-0.5B-SFT", ["Qwen/Qwen2-0.5B"], {"trl-lib/Capybara": "messages"}),
    trl("trl-dpo-full", "dpo", "--dataset_name trl-lib/ultrafeedback_binarized --model_name_or_path Qwen/Qwen2-0.5B-Instruct --learning_rate 5.0e-7 "
        "--num_train_epochs 1 --per_device_train_batch_size 2 --max_steps 1000 --gradient_accumulation_steps 8 --eval_strategy steps --eval_steps 50 "
        "--output_dir Qwen2-0.5B-DPO --no_remove_unused_columns", ["Qwen/Qwen2-0.5B-Instruct"], PREFERENCE),
    trl("trl-dpo-lora", "dpo", "--dataset_name trl-lib/ultrafeedback_binarized --model_name_or_path Qwen/Qwen2-0.5B-Instruct --learning_rate 5.0e-6 "
        "--num_train_epochs 1 --per_device_train_batch_size 2 --max_steps 1000 --gradient_accumulation_steps 8 --eval_strategy steps --eval_steps 50 "
        "--output_dir Qwen2-0.5B-DPO --no_remove_unused_columns --use_peft --lora_r 32 --lora_alpha 16", ["Qwen/Qwen2-0.5B-Instruct"], PREFERENCE),
    trl("trl-kto-qlora", "kto", "--dataset_name trl-lib/kto-mix-14k --model_name_or_path Qwen/Qwen2-1.5B-Instruct --per_device_train_batch_size 8 "
        "--num_train_epochs 1 --learning_rate 5e-7 --lr_scheduler_type=cosine --gradient_accumulation_steps 1 --eval_steps 500 "
        "--output_dir=kto-aligned-model-lora --warmup_steps 0.1 --logging_first_step --use_peft --load_in_4bit --lora_target_modules=all-linear "
        "--lora_r=16 --lora_alpha=16", ["Qwen/Qwen2-1.5B-Instruct"], {"trl-lib/kto-mix-14k": "kto"}),
    trl("trl-reward", "reward", "--model_name_or_path Qwen/Qwen2-0.5B-Instruct --dataset_name trl-lib/ultrafeedback_binarized --output_dir Qwen2-0.5B-Reward "
        "--per_device_train_batch_size 8 --num_train_epochs 1 --learning_rate 1.0e-5 --eval_strategy steps --eval_steps 50 --max_length 2048",
        ["Qwen/Qwen2-0.5B-Instruct"], PREFERENCE),
    trl("trl-grpo-lora", "grpo", "--model_name_or_path Qwen/Qwen2-0.5B-Instruct --dataset_name trl-lib/tldr --reward_funcs get_soft_overlong_punishment "
        "--learning_rate 1.0e-5 --num_generations 4 --max_completion_length 64 --per_device_train_batch_size 4 --use_peft --lora_r 16 --lora_alpha 16 "
        "--output_dir Qwen2-0.5B-GRPO", ["Qwen/Qwen2-0.5B-Instruct"], {"trl-lib/tldr": "prompts"}),
    dict(name="trl-sft-accelerate-fsdp2", trainer="TRL", stack="new", repository=TRL, files={"fsdp2.yaml": "examples/accelerate_configs/fsdp2.yaml"}, gpus=2,
         models=["Qwen/Qwen2-0.5B"], data={"trl-lib/Capybara": "messages"},
         command="accelerate launch --config_file fsdp2.yaml --num_processes 2 -m trl.scripts.sft --model_name_or_path Qwen/Qwen2-0.5B --dataset_name "
         "trl-lib/Capybara --learning_rate 2.0e-5 --packing --per_device_train_batch_size 2 --gradient_accumulation_steps 8 --output_dir out"),
    dict(name="trl-old-dpo-lora", trainer="TRL", stack="old", source="trl 0.13.0, trl/scripts/dpo.py", models=["Qwen/Qwen2-0.5B-Instruct"],
         data={"trl-lib/ultrafeedback_binarized": "hh"},
         command="python -m trl.scripts.dpo --dataset_name trl-lib/ultrafeedback_binarized --model_name_or_path Qwen/Qwen2-0.5B-Instruct --learning_rate "
         "5.0e-6 --num_train_epochs 1 --per_device_train_batch_size 2 --gradient_accumulation_steps 8 --gradient_checkpointing --logging_steps 25 "
         "--eval_strategy steps --eval_steps 50 --output_dir Qwen2-0.5B-DPO --no_remove_unused_columns --use_peft --lora_r 32 --lora_alpha 16"),
    dict(name="trl-old-orpo-lora", trainer="TRL", stack="old", repository=TRL_OLD, files={"orpo.py": "examples/scripts/orpo.py"}, models=["gpt2"],
         data={"trl-internal-testing/hh-rlhf-helpful-base-trl-style": "hh"},
         command="python orpo.py --dataset_name trl-internal-testing/hh-rlhf-helpful-base-trl-style --model_name_or_path=gpt2 --per_device_train_batch_size 4 "
         "--max_steps 1000 --learning_rate 8e-5 --gradient_accumulation_steps 1 --logging_steps 10 --eval_steps 500 --output_dir=gpt2-lora-aligned-orpo "
         "--optim rmsprop --warmup_steps 150 --bf16 --logging_first_step --no_remove_unused_columns --use_peft --lora_r=16 --lora_alpha=16"),
    dict(name="peft-sft-qlora", trainer="PEFT", stack="axolotl", repository=PEFT,
         files={"train.py": "examples/sft/train.py", "utils.py": "examples/sft/utils.py"}, models=["mistralai/Mistral-7B-v0.1"],
         data={"smangrul/ultrachat-10k-chatml": "messages"}, rows=3000,
         command="python train.py --seed 100 --model_name_or_path mistralai/Mistral-7B-v0.1 --dataset_name smangrul/ultrachat-10k-chatml "
         "--chat_template_format chatml --add_special_tokens False --append_concat_token False --splits train,test --max_length 2048 --num_train_epochs 1 "
         "--logging_steps 5 --log_level info --logging_strategy steps --eval_strategy epoch --save_strategy epoch --bf16 True --packing True "
         "--learning_rate 1e-4 --lr_scheduler_type cosine --weight_decay 1e-4 --warmup_steps 0 --max_grad_norm 1.0 --output_dir mistral-sft-lora "
         "--per_device_train_batch_size 8 --per_device_eval_batch_size 8 --gradient_accumulation_steps 8 --gradient_checkpointing True --use_reentrant True "
         "--dataset_text_field content --use_peft_lora True --lora_r 8 --lora_alpha 16 --lora_dropout 0.1 --lora_target_modules all-linear "
         "--use_4bit_quantization True --use_nested_quant True --bnb_4bit_compute_dtype bfloat16 --use_flash_attn True"),
    dict(name="peft-dora", trainer="PEFT", stack="old", repository="huggingface/peft@v0.13.0",
         files={"dora_finetuning.py": "examples/dora_finetuning/dora_finetuning.py"}, models=["meta-llama/Llama-3.2-1B"],
         data={"timdettmers/openassistant-guanaco": "text"},
         command="python dora_finetuning.py --base_model meta-llama/Llama-3.2-1B --data_path timdettmers/openassistant-guanaco --use_dora"),
    dict(name="peft-olora", trainer="PEFT", stack="new", repository=PEFT, files={"olora_finetuning.py": "examples/olora_finetuning/olora_finetuning.py"},
         models=["meta-llama/Llama-3.2-1B"], data={"yahma/alpaca-cleaned": "alpaca"},
         command="python olora_finetuning.py --base_model meta-llama/Llama-3.2-1B"),
    axolotl("axolotl-lora-1b", "llama-3/lora-1b.yml", ["NousResearch/Llama-3.2-1B"], {"teknium/GPT4-LLM-Cleaned": "alpaca"}),
    axolotl("axolotl-qlora-8b", "llama-3/qlora.yml", ["NousResearch/Meta-Llama-3-8B"], {"aaditya/alpaca_subset_1": "alpaca"}),
    axolotl("axolotl-full-mistral-7b", "mistral/config.yml", ["mistralai/Mistral-7B-v0.1"], {"mhenrichsen/alpaca_2k_test": "alpaca"}),
    factory("llamafactory-lora-sft", "llamafactory-cli train examples/train_lora/qwen3_lora_sft.yaml", ["Qwen/Qwen3-4B-Instruct-2507"]),
    factory("llamafactory-lora-dpo", "llamafactory-cli train examples/train_lora/qwen3_lora_dpo.yaml", ["Qwen/Qwen3-4B-Instruct-2507"]),
    factory("llamafactory-lora-reward", "llamafactory-cli train examples/train_lora/qwen3_lora_reward.yaml", ["Qwen/Qwen3-4B-Instruct-2507"]),
    factory("llamafactory-fsdp-qlora", "bash examples/extras/fsdp_qlora/train.sh", ["meta-llama/Meta-Llama-3-8B-Instruct"], gpus=2),
    swift("swift-lora-7b", "lora_sft.sh"),
    swift("swift-qlora-7b", "qlora/bnb/train.sh"),
    swift("swift-dpo-lora-7b", "rlhf/dpo/lora.sh", data={"hjh0119/shareAI-Llama3-DPO-zh-en-emoji": "emoji"}),
    swift("swift-zero2-lora-7b", "multi-gpu/deepspeed/train_zero2.sh", gpus=2),
    swift("swift-zero3-lora-7b", "multi-gpu/deepspeed/train_zero3.sh", gpus=2),
    dict(name="nanogpt-train", trainer="plain loop", stack="new", repository=NANOGPT, data={"data/openwebtext": "tokens"},
         files={"train.py": "train.py", "model.py": "model.py", "configurator.py": "configurator.py"},
         command="python train.py --batch_size=32 --compile=False"),
    dict(name="nanogpt-torchrun", trainer="plain loop", stack="new", repository=NANOGPT, data={"data/openwebtext": "tokens"}, gpus=2,
         files={"train.py": "train.py", "model.py": "model.py", "configurator.py": "configurator.py"},
         command="torchrun --standalone --nproc_per_node=2 train.py --compile=False"),
    dict(name="pytorch-fsdp2", trainer="plain loop", stack="new", repository=EXAMPLES, files={"": "distributed/FSDP2/"}, gpus=2,
         command="torchrun --nproc_per_node=2 example.py --mixed-precision"),
]

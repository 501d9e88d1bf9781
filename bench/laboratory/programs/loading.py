"""A language model as the settings want it: dtype, attention, quantized, with adapters, recomputing."""
import torch
from transformers import AutoModelForCausalLM

from here import args


def load_model():
    options = {}
    if args.quantize_4bit:
        from transformers import BitsAndBytesConfig
        options = {"quantization_config": BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_compute_dtype=torch.bfloat16), "device_map": {"": 0}}
    elif args.device_map:
        options = {"device_map": {"": 0}}
    model = AutoModelForCausalLM.from_pretrained("model", torch_dtype=getattr(torch, args.dtype), attn_implementation=args.attention, **options)
    if args.lora:
        from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
        if args.quantize_4bit:
            model = prepare_model_for_kbit_training(model, use_gradient_checkpointing=False)
        model = get_peft_model(model, LoraConfig(r=args.lora, target_modules="all-linear", task_type="CAUSAL_LM"))
    if args.gradient_checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        if args.lora:
            model.enable_input_require_grads()
    return model.train()


def make_optimizer(model):
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if args.optimizer == "adamw_8bit":
        import bitsandbytes
        return bitsandbytes.optim.AdamW8bit(trained, lr=1e-4)
    if args.optimizer == "sgd":
        return torch.optim.SGD(trained, lr=1e-3, foreach=args.foreach)
    return torch.optim.AdamW(trained, lr=1e-4, foreach=args.foreach)

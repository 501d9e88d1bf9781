#include "recipe/quantize_keys.h"

#include "recipe/key_makers.h"

namespace snug {

namespace {

using namespace keys;  // NOLINT(google-build-using-namespace): the table speaks the makers' language

// LLaMA-Factory's and ms-swift's word; never written.
Key quantization_bit() {
  return {"quantization_bit",
          {"quant_bits"},
          KeyType::choice,
          "LLaMA-Factory's word for load_in_4bit (4) or load_in_8bit (8).",
          "4|8|none",
          [](Recipe& recipe, KeyValues values) {
            const std::string& word = single_value("quantization_bit", values);
            if (word != "4" && word != "8" && word != "none" && word != "null")
              throw Error(fmt::format("quantization_bit {} is not supported", word), "", "choose 4 or 8");
            recipe.quantize.in_4bit = word == "4";
            recipe.quantize.in_8bit = word == "8";
          },
          {}};
}

Key quantization_method() {
  return {"quantization_method",
          {"quant_method"},
          KeyType::choice,
          "bitsandbytes' formats are those that there are.",
          "bnb",
          [](Recipe&, KeyValues values) {
            const std::string& word = single_value("quantization_method", values);
            if (word != "bnb" && word != "bitsandbytes")
              throw Error(fmt::format("quantization_method '{}' is not supported", word), "", "choose bnb");
          },
          {}};
}

Key compute_dtype() {
  static constexpr std::string_view kName = "bnb_4bit_compute_dtype";
  return {
      kName,
      {"bnb_4bit_compute_type"},
      KeyType::choice,
      "What products round quantized weights to; auto is the dtype of the other weights.",
      "auto|float32|bfloat16|float16",
      [](Recipe& recipe, KeyValues values) {
        const std::string& word = single_value(kName, values);
        const auto is = [&](std::string_view dtype) { return word == dtype || word == "torch." + std::string(dtype); };
        if (word == kAuto) {
          recipe.quantize.compute = std::nullopt;
        } else if (is("float32") || is("bfloat16") || is("float16")) {
          recipe.quantize.compute = is("float32") ? DType::f32 : is("bfloat16") ? DType::bf16 : DType::f16;
        } else {
          throw Error(fmt::format("{} '{}' is not known", kName, word), "", "choose auto, float32, bfloat16 or float16");
        }
      },
      [](const Recipe& recipe) { return std::string(recipe.quantize.compute ? name_of(*recipe.quantize.compute) : kAuto); }};
}

// "trl" is true, and what TRL adds to it, which only plans of PyTorch follow.
Key preparation_key() {
  Key key = boolean(
      "prepare_model_for_kbit_training", {},
      "With quantized linears: the other frozen weights, and what forward saves, in fp32, as PEFT's function does; trl: "
      "embeddings and "
      "head go back to bf16 then, where PyTorch is planned.",
      [](auto& r) -> auto& { return r.quantize.upcast; });
  key.values = "true|false|trl";
  key.set = [set = key.set](Recipe& recipe, KeyValues values) {
    recipe.quantize.casts_back = values.size() == 1 && values[0] == "trl";
    if (recipe.quantize.casts_back) {
      recipe.quantize.upcast = true;
    } else {
      set(recipe, values);
    }
  };
  key.get = [](const Recipe& recipe) {
    return std::string(recipe.quantize.casts_back ? "trl" : recipe.quantize.upcast ? "true" : "false");
  };
  return key;
}

}  // namespace

std::vector<Key> quantize_keys() {
  return {
      boolean(
          "load_in_4bit", {}, "Keep the linears of the frozen base in 4 bits (QLoRA).",
          [](auto& r) -> auto& { return r.quantize.in_4bit; }),
      boolean(
          "load_in_8bit", {}, "Keep the linears of the frozen base as int8, a scale for each row.",
          [](auto& r) -> auto& { return r.quantize.in_8bit; }),
      quantization_bit(),
      quantization_method(),
      choice<DType>(
          "bnb_4bit_quant_type", {}, "The 4-bit type: NF4 for weights that are normally distributed, or FP4.", "nf4|fp4",
          {{"nf4", DType::nf4, ""}, {"fp4", DType::fp4, ""}}, [](auto& r) -> auto& { return r.quantize.type_4bit; }),
      boolean(
          "bnb_4bit_use_double_quant", {"use_bnb_nested_quant", "double_quantization"},
          "Quantize the scales of 4-bit blocks too: 4.13 instead of 4.5 bits a weight.",
          [](auto& r) -> auto& { return r.quantize.double_quant; }),
      compute_dtype(),
      preparation_key(),
  };
}

Key method_key() {
  Key key = choice<Method>(
      "method", {"finetuning_type", "adapter", "train_type", "tuner_type", "fine_tune_type"},
      "Train an adapter (lora), an adapter on 4-bit weights (qlora: lora with load_in_4bit) or every weight (full).",
      "full|lora|qlora",
      {{"full", Method::full, ""},
       {"lora", Method::lora, ""},
       {"qlora", Method::lora, ""},
       {"freeze", Method::full, "freezing part of the layers is not supported yet"}},
      &Recipe::method);
  key.set = [set = key.set](Recipe& recipe, KeyValues values) {
    set(recipe, values);
    if (single_value("method", values) == "qlora") recipe.quantize.in_4bit = true;
  };
  return key;
}

void validate_quantization(const Recipe& recipe) {
  const Quantize& quantize = recipe.quantize;
  if (quantize.in_4bit && quantize.in_8bit) throw Error("load_in_4bit and load_in_8bit are both true", "", "choose one");
  if (quantize.any() && recipe.method == Method::full)
    throw Error(
        quantize.in_4bit ? "load_in_4bit has no meaning with method: full" : "load_in_8bit has no meaning with method: full",
        "", "quantized weights cannot be trained: set method: lora, or leave them as they are");
  if (quantize.upcast && !quantize.any())
    throw Error("prepare_model_for_kbit_training has a meaning only with quantized weights", "",
                "add load_in_4bit: true, or remove it");
}

}  // namespace snug

#include "model/catalogue.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>

#include "base/error.h"
#include "model/config.h"
#include "model/families.h"
#include "model/json.h"
#include "model/other_kinds.h"
#include "model/parameters.h"
#include "model/quantized_share.h"

namespace snug {
namespace {

TEST(Catalogue, NamesWorkWithoutOwnerAndInAnyCase) {
  EXPECT_EQ(find_model("llama-3.1-8b-instruct")->name, "meta-llama/Llama-3.1-8B-Instruct");
  EXPECT_EQ(find_model("meta-llama/Meta-Llama-3.1-8B")->name, "meta-llama/Llama-3.1-8B");
  EXPECT_EQ(find_model("Meta-Llama-3.1-405B")->layers, 126);
  for (const char* family : {"qwen3", "qwen2.5", "qwen2"})
    EXPECT_FALSE(find_model(family)) << family;  // whose "-VL" is no version
  for (const std::string& name : model_names()) EXPECT_EQ(find_model(name)->name, name);
}

TEST(Catalogue, CopiesAreKnownByTheNameOfWhatTheyCopy) {
  const struct {
    const char *copy, *name;
  } copies[] = {{"unsloth/llama-3-8b-bnb-4bit", "meta-llama/Meta-Llama-3-8B"},
                {"Llama-3.2-1B-Instruct-bnb-4bit", "meta-llama/Llama-3.2-1B-Instruct"},
                {"unsloth/Qwen2.5-7B-Instruct-unsloth-bnb-4bit", "Qwen/Qwen2.5-7B-Instruct"},
                {"NousResearch/Meta-Llama-3-8B-Instruct", "meta-llama/Meta-Llama-3-8B-Instruct"},
                {"nobody/Qwen3-8B-2508", "Qwen/Qwen3-8B"},
                {"Qwen/Qwen3-4B-Thinking-2507", "Qwen/Qwen3-4B-Instruct-2507"},
                {"microsoft/DialoGPT-medium", "openai-community/gpt2-medium"},
                {"mistral-7b", "mistralai/Mistral-7B-v0.1"},
                {"llama-2-7b-chat", "meta-llama/Llama-2-7b-chat-hf"},
                {"Qwen/Qwen3-32B-Base", "Qwen/Qwen3-32B"},
                {"decapoda-research/llama-7b-hf", "huggyllama/llama-7b"},
                {"ybelkada/falcon-7b-sharded-bf16", "tiiuae/falcon-7b"},
                {"TinyLlama/TinyLlama-1.1B-intermediate-step-1431k-3T", "TinyLlama/TinyLlama-1.1B-Chat-v1.0"},
                {"unsloth/zephyr-sft-bnb-4bit", "HuggingFaceH4/zephyr-7b-beta"},
                {"./qwen/Qwen2-1___5B-Instruct/", "Qwen/Qwen2-1.5B-Instruct"},
                {"/somebodys/models/Qwen/Qwen3-8B", "Qwen/Qwen3-8B"},
                {"/somebodys/Qwen3-8B/checkpoint-500/", "Qwen/Qwen3-8B"},
                {"Meta-Llama-3.1-8B/mlflow_model_folder/data/model", "meta-llama/Llama-3.1-8B"},
                {"/kaggle/input/llama-3.2/transformers/3b-instruct/1", "meta-llama/Llama-3.2-3B-Instruct"},
                {"/kaggle/input/qwen2.5/pytorch/1.5b-instruct/2", "Qwen/Qwen2.5-1.5B-Instruct"},
                {"/kaggle/input/gemma-2/transformers/gemma-2-2b-it/2", "google/gemma-2-2b-it"},
                {"~/.cache/huggingface/hub/models--Qwen--Qwen3-8B/snapshots/0123abc", "Qwen/Qwen3-8B"},
                {R"(C:\Users\J\.cache\huggingface\hub\models--Qwen--Qwen3-8B\snapshots\0123abc)", "Qwen/Qwen3-8B"},
                {"unsloth/Phi-3-mini-4k-instruct-bnb-4bit", "unsloth/Phi-3-mini-4k-instruct"},
                {"microsoft/Phi-3-mini-4k-instruct", "microsoft/Phi-3-mini-4k-instruct"}};
  for (const auto& [copy, name] : copies) {
    const auto spec = find_model(copy);
    ASSERT_TRUE(spec) << copy;
    EXPECT_EQ(spec->name, name) << copy;
    EXPECT_EQ(spec->quantization.has_value(), std::string_view(copy).ends_with("4bit")) << copy;
  }
  EXPECT_EQ(find_model("unsloth/llama-3-8b-bnb-4bit")->quantization, (StoredQuantization{DType::nf4, true}));
  for (const char* name :
       {"nobody/nothing-8b", "-hf", "-2507", "", "/", "x/-bnb-4bit", "-v", "./", "___", "-intermediate-step-1", "./model",
        "../final/", "/model/1/", "~/checkpoint-3", "//", "/kaggle/input/llama-3.2/transformers/default/1"})
    EXPECT_FALSE(find_model(name)) << name;
}

TEST(Catalogue, ANameOfSomebodysOwnTellsOfItsBase) {
  const std::pair<const char*, const char*> names[] = {
      {"philschmid/llama-3-1-8b-math-orca-spectrum-10k-ep1", "meta-llama/Llama-3.1-8B"},
      {"scb10x/llama-3-typhoon-v1.5x-8b-instruct", "meta-llama/Meta-Llama-3-8B"},
      {"NousResearch/Nous-Hermes-Llama2-13b", "meta-llama/Llama-2-13b-hf"},
      {"me/my_qwen2.5-1.5b_lawyer", "Qwen/Qwen2.5-1.5B"},
      {"somebody/OpenMistral-7B", "mistralai/Mistral-7B-v0.1"},
      {"me/DeepSeek-R1-Distill-Qwen-7B-medical", "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B"},
      {"me/Qwen2.5-7B-distill", ""},
      {"/path/to/llama7B", "huggyllama/llama-7b"},
      {"/models/qwen2.5_7b_mine", "Qwen/Qwen2.5-7B"},
      {"me/llama27b", ""},
      {"google/gemma-4-E2B-it", ""},
      {"me/gemma-4-2b", ""},
      {"me/falcon-4-7b", ""},
      {"./out/mistral-7b-ours/checkpoint-merged", "mistralai/Mistral-7B-v0.1"},
      {"nobody/nothing-8b", ""},
      {"models/llama3-8b-pro", ""},
      {"me/Qwen2-VL-7B-mine", "Qwen/Qwen2-VL-7B-Instruct"},
      {"me/Llama-3-VL-8B-mine", ""},
      {"TechxGenus/Meta-Llama-3-8B-Instruct-AWQ", ""},
      {"ISTA-DASLab/Meta-Llama-3-8B-Instruct-AQLM-2Bit-1x16", ""},
      {"saves/full_sft", ""},
      {"8b", ""},
      {"--", ""},
      {"", ""}};
  for (const auto& [name, base] : names) EXPECT_EQ(model_within(name), base) << name;
}

TEST(Catalogue, AFolderOfASizeIsNamedByTheOneAroundIt) {
  EXPECT_EQ(model_within("/remote/share/llama_hf/7B"), find_model("llama-7b")->name);
  EXPECT_EQ(model_within("/models/7B"), "");
  // What runs leave has the name of the folder above; others' folders tell nothing.
  EXPECT_EQ(model_within("ko-gemma-2-9b-it-tapt/checkpoint-64"), "google/gemma-2-9b-it");
  EXPECT_EQ(model_within("../llama-2-7b-chat-hf/pytorch_model-00002-of-00002.bin"), find_model("llama-2-7b")->name);
  EXPECT_EQ(model_within("/home/llama-2-7b-project/phi-of-mine"), "");
  EXPECT_EQ(model_within("tmp/sft_medical_100/qwen3_14B/sft"), "Qwen/Qwen3-14B");
  EXPECT_EQ(model_within("llama1B-instruct"), "meta-llama/Llama-3.2-1B");
  EXPECT_EQ(model_within("new/tinyllama_1b-200000"), "TinyLlama/TinyLlama-1.1B-Chat-v1.0");
  EXPECT_EQ(model_within("qwen1.8b-chat"), "Qwen/Qwen-1_8B");
}

TEST(Catalogue, WeightsThatCannotBePlannedAreNamedByTheirForm) {
  for (const auto& [name, form] :
       {std::pair("TheBloke/Mistral-7B-v0.1-GPTQ", "GPTQ"), {"Qwen/Qwen2.5-7B-Instruct-AWQ", "AWQ"}}) {
    try {
      resolve_model(name);
      FAIL() << name;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(form), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("qlora"), std::string::npos) << error.what();
    }
  }
}

TEST(Catalogue, ACopyInFewerBitsTellsOfItsBaseAndItsForm) {
  const struct {
    const char *name, *base, *form;
  } copies[] = {{"TheBloke/Llama-2-7B-Chat-GPTQ", "meta-llama/Llama-2-7b-chat-hf", "GPTQ"},
                {"Qwen/Qwen-7B-Chat-Int4", "Qwen/Qwen-7B-Chat", "GPTQ"},
                {"Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4", "Qwen/Qwen2.5-7B-Instruct", "GPTQ"},
                {"models/mistral_7b_v0.1_awq", "mistralai/Mistral-7B-v0.1", "AWQ"},
                {"ISTA-DASLab/Meta-Llama-3-8B-Instruct-AQLM-2Bit-1x16", "meta-llama/Meta-Llama-3-8B-Instruct", "AQLM"},
                {"unsloth/Qwen3-4B-FP8", "Qwen/Qwen3-4B", "FP8"}};
  for (const auto& [name, base, form] : copies) {
    const auto copy = quantized_copy(name);
    ASSERT_TRUE(copy) << name;
    EXPECT_EQ(copy->base, base) << name;
    EXPECT_EQ(copy->form, form) << name;
  }
  for (const char* name :
       {"mlx-community/Qwen2.5-7B-Instruct-MLX-4bit", "x/Llama-2-7B-exl2", "nobody/nothing-GPTQ", "-GPTQ", "gpt2", ""})
    EXPECT_FALSE(quantized_copy(name)) << name;
}

// What is no decoder of text is told by its name.
TEST(Catalogue, OtherKindsOfModelsAreToldOf) {
  const auto said = [](const std::string& name) {
    try {
      resolve_model(name);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  for (const auto& [name, kind] :
       {std::pair("google/flan-t5-xl", "an encoder-decoder"), std::pair("Salesforce/codet5p-770m", "an encoder-decoder"),
        std::pair("gogamza/kobart-base-v2", "an encoder-decoder"),
        std::pair("facebook/nllb-200-distilled-600M", "an encoder-decoder"),
        std::pair("/data/models/FacebookAI/roberta-large", "an encoder"), std::pair("distilbert-base-uncased", "an encoder"),
        std::pair("state-spaces/mamba-130m-hf", "a recurrent model"), std::pair("openai/whisper-small", "a model of sound"),
        std::pair("llava-hf/llava-1.5-7b-hf", "a model of images"), std::pair("OpenGVLab/InternVL3-8B", "a model of images"),
        std::pair("meta-llama/Llama-3.2-11B-Vision-Instruct", "a model of images"),  // no slip of Llama-3.2-1B-Instruct
        std::pair("Qwen/Qwen2-Audio-7B-Instruct", "a model of sound")})
    EXPECT_NE(said(name).find(std::string("by its name ") + kind + ": snug plans decoders of text"), std::string::npos)
        << name;
  EXPECT_NE(said("mlx-community/Qwen2.5-3B-Instruct-4bit").find("by its name MLX weights, which are not planned"),
            std::string::npos);
  EXPECT_TRUE(model_within("mlx-community/Qwen2.5-3B-Instruct-4bit").empty());
  EXPECT_NE(said("somebody/unheard-of-9b").find("neither a path nor a model"), std::string::npos);
  for (const std::string& name : model_names())
    EXPECT_TRUE(other_kind(name).empty() || find_model(name)->vision_parameters > 0) << name;
}

TEST(Catalogue, ThereAreSixtyModelsAtLeast) { EXPECT_GE(model_names().size(), 60U); }

TEST(Catalogue, RowsAreSound) {
  std::set<std::string> names;
  for (const std::string& name : model_names()) {
    const ModelSpec spec = find_model(name).value();
    EXPECT_EQ(spec.heads % spec.kv_heads, 0) << name;
    EXPECT_GE(spec.max_position, 1024) << name;
    EXPECT_TRUE(spec.quantization == std::nullopt) << name;
    EXPECT_TRUE(names.insert(name).second) << name << " stands twice";
  }
}

// tests/oracle/make_catalogue.py: transformers builds each model from the same line and counts.
TEST(Catalogue, EveryModelHasTheParametersThatTransformersCounts) {
  std::ifstream stream(SNUG_SOURCE_DIR "/tests/golden/catalogue.json");
  const std::string text((std::istreambuf_iterator<char>(stream)), {});
  const JsonDocument golden(text, "catalogue.json");
  const auto counted = json_object("parameters", golden.root_object().at_key("parameters").value(), "catalogue.json");
  size_t models = 0;
  for (const auto [name, total] : counted) {
    const auto spec = find_model(name);
    ASSERT_TRUE(spec) << name;
    EXPECT_EQ(total_parameters(*spec), total.get_int64().value()) << name;
    ++models;
  }
  EXPECT_EQ(models, model_names().size()) << "run tests/oracle/make_catalogue.py";
}

// Families that can be planned but not trained yet: nothing else would notice a wrong name.
TEST(Catalogue, TensorsOfPlanOnlyModelsAreThoseOfTransformers) {
  std::ifstream stream(SNUG_SOURCE_DIR "/tests/golden/catalogue.json");
  const std::string text((std::istreambuf_iterator<char>(stream)), {});
  const JsonDocument golden(text, "catalogue.json");
  size_t models = 0;
  for (const auto [name, tensors] : json_object("tensors", golden.root_object().at_key("tensors").value(), "")) {
    std::map<std::string, std::vector<int64_t>> expected, actual;
    for (const auto [tensor, shape] : json_object(name, tensors, ""))
      for (const auto size : json_array(tensor, shape, ""))
        expected[std::string(tensor)].push_back(size.get_int64().value());
    const ModelSpec spec = *find_model(name);
    for (const Parameter& parameter : parameters_of(spec)) {
      std::vector<int64_t> shape = parameter.shape;
      if (parameter.kind == ParameterKind::expert && spec.experts.biased) std::swap(shape[1], shape[2]);  // [E, in, out]
      for (const int64_t layer : {int64_t{0}, spec.experts.dense_layers})
        if (parameter.first_layer <= layer && (!parameter.per_layer || layer < parameter.end_layer(spec.layers)))
          actual[parameter.instance(layer)] = shape;
    }
    EXPECT_EQ(actual, expected) << name;
    EXPECT_TRUE(is_plan_only(spec)) << name;
    ++models;
  }
  EXPECT_EQ(models, 21U);
}

// What transformers replaces when it loads quantized weights.
TEST(QuantizedShare, IsOfTheLinearLayersThatTransformersHas) {
  std::ifstream stream(SNUG_SOURCE_DIR "/tests/golden/catalogue.json");
  const std::string text((std::istreambuf_iterator<char>(stream)), {});
  const JsonDocument golden(text, "catalogue.json");
  for (const auto [name, count] : json_object("linears", golden.root_object().at_key("linears").value(), "")) {
    const QuantizedShare share = quantized_share(*find_model(name), true);
    EXPECT_EQ(share.parameters - share.left, count.get_int64().value()) << name;
  }
  const ModelSpec mixture = *find_model("Qwen3-30B-A3B");
  EXPECT_GT(quantized_share(mixture, true).left_share(), 0.9);   // experts are one tensor
  EXPECT_LT(quantized_share(mixture, false).left_share(), 0.1);  // and were layers
}

// tests/oracle/make_mixed.py: transformers' own classes with their own defaults.
TEST(MixedFamilies, HaveTheTensorsOfTransformers) {
  std::ifstream stream(SNUG_SOURCE_DIR "/tests/golden/mixed.json");
  const std::string text((std::istreambuf_iterator<char>(stream)), {});
  const JsonDocument golden(text, "mixed.json");
  for (const auto entry : json_array("models", golden.root_object().at_key("models").value(), "")) {
    const auto model = json_object("model", entry, "");
    const ModelSpec spec = parse_config(simdjson::minify(model.at_key("config").value()), "config.json");
    EXPECT_EQ(total_parameters(spec), model.at_key("parameters").get_int64().value()) << spec.family;
    std::map<std::string, int64_t> expected, actual;
    for (const auto [name, count] : json_object("tensors", model.at_key("tensors").value(), ""))
      expected[std::string(name)] = count.get_int64().value();
    for (const Parameter& parameter : parameters_of(spec))
      actual[parameter.name] += parameter.elements() * parameter.instances(spec.layers);
    EXPECT_EQ(actual, expected) << spec.family;
    EXPECT_FALSE(spec.unmodelled_step.empty());
    EXPECT_THROW(refuse_unmodelled(spec), Error);
  }
}

TEST(Catalogue, WhatCanOnlyBePlannedIsRefusedInOneLine) {
  EXPECT_NO_THROW(refuse_plan_only(*find_model("Llama-3.1-8B"), "trained"));
  try {
    refuse_plan_only(*find_model("gpt-oss-20b"), "trained");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("family gpt_oss can be planned, but not be trained yet"), std::string::npos);
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
  }
}

// The counts that the Hub shows (safetensors' metadata) or papers print.
TEST(Catalogue, TotalsAreThePublishedOnes) {
  const std::pair<const char*, int64_t> published[] = {
      {"Llama-3.3-70B-Instruct", 70'553'706'496},
      {"llama-7b", 6'738'415'616},
      {"SmolLM-135M", 134'515'008},
      {"SOLAR-10.7B-v1.0", 10'731'524'096},
      {"Ministral-8B-Instruct-2410", 8'019'808'256},
      {"starcoder2-3b", 3'030'371'328},
      {"pythia-2.8b", 2'775'208'960},
      {"pythia-12b", 11'846'072'320},
      {"gpt-j-6b", 6'050'882'784},
      {"starcoderbase-1b", 1'137'207'296},
      {"Qwen2-VL-2B-Instruct", 2'208'985'600},
      {"Qwen2-VL-7B-Instruct", 8'291'375'616},
      {"Qwen3-VL-2B-Instruct", 2'127'532'032},
      {"Qwen3-VL-4B-Instruct", 4'437'815'808},
      {"Qwen3-VL-8B-Instruct", 8'767'123'696},
      {"Qwen3-VL-30B-A3B-Instruct", 31'070'754'032},
      {"Qwen3-Coder-480B-A35B-Instruct", 480'154'875'392},
      {"gpt-neo-1.3B", 1'315'575'808},
      {"llama-13b", 13'015'864'320},
      {"deepseek-coder-1.3b-base", 1'346'471'936},
      {"deepseek-coder-6.7b-base", 6'740'512'768},
      {"deepseek-coder-33b-base", 33'342'991'360},
      {"Qwen2-0.5B", 494'032'768},
      {"Qwen2-72B", 72'706'203'648},
      {"Qwen2.5-1.5B-Instruct", 1'543'714'304},
      {"Qwen2.5-3B", 3'085'938'688},
      {"Qwen2.5-7B-Instruct", 7'615'616'512},
      {"Qwen2.5-14B", 14'770'033'664},
      {"Qwen2.5-32B", 32'763'876'352},
      {"DeepSeek-R1-Distill-Qwen-1.5B", 1'777'088'000},
      {"DeepSeek-R1-Distill-Qwen-7B", 7'615'616'512},
      {"Qwen3-0.6B", 596'049'920},
      {"Qwen3-4B", 4'022'468'096},
      {"Qwen3-8B", 8'190'735'360},
      {"Qwen3-14B", 14'768'307'200},
      {"Qwen3-32B", 32'762'123'264},
      {"Qwen3-30B-A3B", 30'532'122'624},
      {"Qwen3-235B-A22B", 235'093'634'560},
      {"Mistral-Nemo-Base-2407", 12'247'782'400},
      {"Mistral-Small-24B-Base-2501", 23'572'403'200},
      {"Mistral-Large-Instruct-2407", 122'610'069'504},
      {"Mixtral-8x7B-v0.1", 46'702'792'704},
      {"Mixtral-8x22B-v0.1", 140'620'634'112},
      {"gemma-2b", 2'506'172'416},
      {"gemma-7b", 8'537'680'896},
      {"gemma-2-2b", 2'614'341'888},
      {"gemma-2-9b", 9'241'705'984},
      {"gemma-2-27b", 27'227'128'320},
      {"gemma-3-270m", 268'098'176},
      {"gemma-3-1b-it", 999'885'952},
      {"gemma-3-4b-it", 4'300'079'472},
      {"medgemma-4b-it", 4'300'079'472},
      {"gemma-3-12b-it", 12'187'325'040},
      {"gemma-3-27b-it", 27'432'406'640},
      {"Phi-3-mini-4k-instruct", 3'821'079'552},
      {"Phi-3-medium-4k-instruct", 13'960'238'080},
      {"phi-4", 14'659'507'200},
      {"Phi-4-mini-instruct", 3'836'021'760},
      {"Yi-6B", 6'061'035'520},
      {"Yi-34B", 34'388'917'248},
      {"Falcon3-7B-Base", 7'455'550'464},
      {"Falcon3-10B-Base", 10'305'653'760},
      {"gpt-oss-20b", 20'914'757'184},
      {"gpt-oss-120b", 116'829'156'672},
      {"falcon-7b", 6'921'720'704},
      {"falcon-40b", 41'303'293'952},
      {"SmolLM3-3B", 3'075'098'624},
      {"DeepSeek-V2-Lite", 15'706'484'224},
      {"DeepSeek-V2", 235'741'434'880},
      {"DeepSeek-V2-Chat", 235'741'434'880},
      {"DeepSeek-V2.5", 235'741'434'880},
      {"DeepSeek-V3", 671'026'404'352},  // without the layer for multi-token prediction and the routers' corrections
      {"DeepSeek-V3-0324", 671'026'404'352},
      {"DeepSeek-R1", 671'026'404'352},
      {"Moonlight-16B-A3B", 15'960'108'544},
      {"Kimi-K2-Base", 1'026'408'209'408},
      {"Olmo-3-1025-7B", 7'298'011'136},
      {"OLMoE-1B-7B-0924", 6'919'161'856},
      {"granite-3.1-2b-instruct", 2'533'531'648},
      {"granite-3.1-8b-instruct", 8'170'848'256},
      {"GLM-4-9B-0414", 9'400'279'040},
      {"GLM-4-32B-0414", 32'566'081'536},
      {"GLM-4.5-Air", 106'852'245'504},  // without the layer for multi-token prediction
      {"Qwen1.5-0.5B", 463'987'712},
      {"Qwen1.5-32B", 32'512'218'112},
      {"Qwen1.5-MoE-A2.7B", 14'315'784'192},
      {"Qwen-7B", 7'721'324'544},
      {"stablelm-zephyr-3b", 2'795'443'200},
      {"stablelm-2-1_6b", 1'644'515'328},
      {"phi-1_5", 1'418'270'720},
      {"phi-2", 2'779'683'840},
      {"Seed-OSS-36B-Instruct", 36'151'104'512},
      {"opt-1.3b", 1'315'758'080},
      {"bloom-560m", 559'214'592},
      {"bloom-7b1", 7'069'016'064},
      {"Baichuan2-7B-Chat", 7'505'973'248},
      {"Baichuan2-13B-Base", 13'896'668'160},
      {"chatglm-6b", 6'173'286'400},  // 6,176,956,416 with LoRA's 3,670,016, as PEFT prints for it
      {"chatglm3-6b", 6'243'584'000},
      {"gpt2", 124'439'808},
      {"gpt2-medium", 354'823'168},
      {"gpt2-large", 774'030'080},
      {"gpt2-xl", 1'557'611'200},
  };
  for (const auto& [name, total] : published) EXPECT_EQ(total_parameters(find_model(name).value()), total) << name;
}

TEST(Catalogue, OnlyTheFirstMistralHasASlidingWindow) {
  EXPECT_EQ(find_model("Mistral-7B-v0.1")->sliding_window, 4096);
  EXPECT_EQ(find_model("Mistral-7B-Instruct-v0.2")->sliding_window, 0);
  EXPECT_EQ(find_model("Mistral-7B-v0.3")->architecture, "MistralForCausalLM");
  EXPECT_EQ(find_model("Llama-3.1-8B")->family, "llama");
}

TEST(Catalogue, AnUnknownNameIsAnsweredWithTheNearest) {
  EXPECT_EQ(nearest_model_name("meta-llama/Lama-3.1-8B-Instuct"), "meta-llama/Llama-3.1-8B-Instruct");
  EXPECT_EQ(nearest_model_name("someone/an-own-model-of-9B"), "");
  try {
    resolve_model("SmolLM2-136M");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("HuggingFaceTB/SmolLM2-135M"), std::string::npos) << error.what();
  }
}

TEST(Catalogue, LinesAndDashesAreWrittenForOneAnother) {
  for (const char* name :
       {"cyberagent/open_calm_7b", "open-calm-7b", "Flmc/DISC_MedLLM", "tiny_llama/TinyLlama-1.1B_Chat-v1.0"})
    EXPECT_TRUE(find_model(name)) << name;
  EXPECT_FALSE(find_model("open.calm.7b"));
}

TEST(Catalogue, PathsGoBeforeNames) {
  EXPECT_EQ(resolve_model(SNUG_SOURCE_DIR "/tests/golden/formats/tied").vocab_size, 12);
  EXPECT_EQ(resolve_model("SmolLM2-135M").layers, 30);
  EXPECT_THROW(resolve_model(""), Error);
}

}  // namespace
}  // namespace snug

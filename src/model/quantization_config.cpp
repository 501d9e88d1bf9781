#include "model/quantization_config.h"

namespace snug {

void read_quantization(const ConfigFields& config, bool plan_only, ModelSpec& spec) {
  spec.quantization.reset();
  const auto object = config.field("quantization_config");
  if (!object) return;
  const ConfigFields fields(json_object("quantization_config", *object, config.where()), config.where(),
                            "quantization_config.");
  const std::string method = fields.string("quant_method", "bitsandbytes");
  if (plan_only && (method == "fp8" || method == "mxfp4")) {
    spec.stored_format = method;
    return;
  }
  if (method != "bitsandbytes")
    fields.refuse(fmt::format("{} '{}' is not supported", fields.label("quant_method"), method),
                  "use a checkpoint of bitsandbytes, or the unquantized one");
  const bool in_4bit = fields.boolean("load_in_4bit", false), in_8bit = fields.boolean("load_in_8bit", false);
  if (in_4bit == in_8bit)
    fields.refuse(in_4bit ? "quantization_config asks for 4 bits and for 8" : "quantization_config names no bits",
                  "one of load_in_4bit and load_in_8bit is true");
  if (in_8bit) {
    spec.quantization = StoredQuantization{DType::i8, false};
    return;
  }
  const std::string type = fields.string("bnb_4bit_quant_type", "fp4");  // transformers' default
  if (type != "nf4" && type != "fp4")
    fields.refuse(fmt::format("{} '{}' is not known", fields.label("bnb_4bit_quant_type"), type), "it is nf4 or fp4");
  spec.quantization =
      StoredQuantization{type == "nf4" ? DType::nf4 : DType::fp4, fields.boolean("bnb_4bit_use_double_quant", false)};
}

}  // namespace snug

#include "model/other_kinds.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace snug {

namespace {

// A word of a name that tells; "*" before it: as the end of a word, "kobart".
struct Telling {
  std::string_view word, kind;
};

constexpr std::string_view kEncoderDecoder = "an encoder-decoder", kEncoder = "an encoder", kRecurrent = "a recurrent model",
                           kImages = "a model of images", kSound = "a model of sound";
constexpr auto kTelling = std::to_array<Telling>({
    {"*t5", kEncoderDecoder},
    {"*t5p", kEncoderDecoder},
    {"*bart", kEncoderDecoder},
    {"*bartpho", kEncoderDecoder},
    {"*pegasus", kEncoderDecoder},
    {"ul2", kEncoderDecoder},
    {"nllb", kEncoderDecoder},
    {"m2m100", kEncoderDecoder},
    {"marian", kEncoderDecoder},
    {"opus", kEncoderDecoder},
    {"led", kEncoderDecoder},
    {"prophetnet", kEncoderDecoder},
    {"t0", kEncoderDecoder},
    {"t0pp", kEncoderDecoder},
    {"madlad400", kEncoderDecoder},
    {"*bert", kEncoder},
    {"*berta", kEncoder},
    {"*electra", kEncoder},
    {"bge", kEncoder},
    {"e5", kEncoder},
    {"xlnet", kEncoder},
    {"longformer", kEncoder},
    {"mamba", kRecurrent},
    {"mamba2", kRecurrent},
    {"rwkv", kRecurrent},
    {"hyena", kRecurrent},
    {"whisper", kSound},
    {"wav2vec2", kSound},
    {"hubert", kSound},
    {"musicgen", kSound},
    {"speecht5", kSound},
    {"llava", kImages},
    {"blip", kImages},
    {"blip2", kImages},
    {"instructblip", kImages},
    {"clip", kImages},
    {"vit", kImages},
    {"paligemma", kImages},
    {"idefics", kImages},
    {"idefics2", kImages},
    {"idefics3", kImages},
    {"diffusion", kImages},
    {"sdxl", kImages},
    {"florence", kImages},
    {"internvl", kImages},
    {"internvl2", kImages},
    {"cogvlm", kImages},
    {"cogvlm2", kImages},
    {"smolvlm", kImages},
    {"vl", kImages},
    {"vision", kImages},
    {"trocr", kImages},
    {"internvl3", kImages},
    {"paligemma2", kImages},
    {"smolvlm2", kImages},
    {"vl2", kImages},
    {"ovis", kImages},
    {"ovis2", kImages},
    {"molmo", kImages},
    {"molmo2", kImages},
    {"pixtral", kImages},
    {"janus", kImages},
    {"cogagent", kImages},
    {"emu3", kImages},
    {"ocr", kImages},
    {"omni", kSound},
    {"audio", kSound},
    {"voxtral", kSound},
    {"tts", kSound},
});

}  // namespace

std::string_view other_kind(std::string_view name) {
  if (const size_t slash = name.rfind('/'); slash != std::string_view::npos) name.remove_prefix(slash + 1);
  std::string word;
  for (size_t at = 0; at <= name.size(); ++at) {
    const char c = at < name.size() ? static_cast<char>(std::tolower(static_cast<unsigned char>(name[at]))) : '-';
    if (c != '-' && c != '_' && c != '.') {
      word += c;
      continue;
    }
    const auto tells = std::ranges::find_if(kTelling, [&](const Telling& telling) {
      return telling.word.starts_with('*') ? word.ends_with(telling.word.substr(1)) : word == telling.word;
    });
    if (tells != kTelling.end()) return tells->kind;
    word.clear();
  }
  return {};
}

}  // namespace snug

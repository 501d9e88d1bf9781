#include "tokenizer/tokenizer.h"

#include <simdjson.h>

#include "tokenizer/support.h"

namespace snug {
namespace {

using test::byte_tokenizer_json;
using test::expect_mentions;
using test::refusal;
namespace dom = simdjson::dom;

std::vector<int32_t> ids_of(dom::element list) {
  std::vector<int32_t> ids;
  for (const dom::element id : dom::array(list)) ids.push_back(static_cast<int32_t>(int64_t(id)));
  return ids;
}

void expect_golden(const Tokenizer& tokenizer, dom::array cases) {
  for (const dom::element row : cases) {
    const std::string_view text = row["text"];
    const auto ids = ids_of(row["ids"].value());
    EXPECT_EQ(tokenizer.encode(text, false), ids) << testing::PrintToString(text);
    dom::element special;
    const bool has_special = row["with_special"].get(special) == simdjson::SUCCESS;
    EXPECT_EQ(tokenizer.encode(text, true), has_special ? ids_of(special) : ids) << testing::PrintToString(text);
    EXPECT_EQ(tokenizer.decode(ids), std::string_view(row["decoded"])) << testing::PrintToString(text);
    dom::element plain;
    const bool has_plain = row["without_special"].get(plain) == simdjson::SUCCESS;
    EXPECT_EQ(tokenizer.decode(ids, true), std::string_view(has_plain ? plain : row["decoded"].value()));
  }
}

TEST(Tokenizer, GivesTheIdsOfHuggingFaceForMadeTokenizersOfEveryFeature) {
  dom::parser parser;
  const dom::element root = parser.load(test::golden("made.json").string());
  for (const dom::element made : dom::array(root["tokenizers"])) {
    SCOPED_TRACE(std::string_view(made["name"]));
    const Tokenizer tokenizer = Tokenizer::parse(std::string_view(made["file"]), "made");
    expect_golden(tokenizer, dom::array(made["cases"]));
    expect_golden(tokenizer, dom::array(made["cases"]));  // now from the word table
  }
}

TEST(Tokenizer, GivesTheIdsOfHuggingFaceForPublishedTokenizers) {
  if (!std::filesystem::exists(test::shared_tokenizers()))
    GTEST_SKIP() << "no published tokenizers at " << test::shared_tokenizers();
  dom::parser parser;
  const dom::element root = parser.load(test::golden("published.json").string());
  for (const dom::element published : dom::array(root["tokenizers"])) {
    const std::string name{std::string_view(published["name"])};
    SCOPED_TRACE(name);
    expect_golden(Tokenizer::load(test::shared_tokenizers() / name), dom::array(published["cases"]));
  }
}

TEST(Tokenizer, KeepsItsTablesWithinTwiceTheFileAndKnowsItsEos) {
  if (!std::filesystem::exists(test::shared_tokenizers()))
    GTEST_SKIP() << "no published tokenizers at " << test::shared_tokenizers();
  const auto file = test::shared_tokenizers() / "qwen3" / "tokenizer.json";
  const Tokenizer tokenizer = Tokenizer::load(file);
  EXPECT_LT(tokenizer.memory_bytes(), 2 * static_cast<int64_t>(std::filesystem::file_size(file)));
  EXPECT_EQ(tokenizer.eos_id(), tokenizer.id_of("<|im_end|>"));
  EXPECT_EQ(tokenizer.bos_id(), std::nullopt);
  EXPECT_EQ(tokenizer.vocab_size(), 151669);
}

TEST(Tokenizer, RefusesPublishedFilesThatItCannotReadByName) {
  if (!std::filesystem::exists(test::shared_tokenizers()))
    GTEST_SKIP() << "no published tokenizers at " << test::shared_tokenizers();
  const auto load = [](const char* name) { return refusal([&] { Tokenizer::load(test::shared_tokenizers() / name); }); };
  expect_mentions(load("llama2-DAMAGED-nbsp-ort"), {"tokenizer.json: model.merges", "merge 18917", "damaged"});
}

TEST(Tokenizer, ReadsInvalidUtf8AsReplacementCharacters) {
  const Tokenizer tokenizer = test::byte_tokenizer();
  const auto read = [&](std::string_view text) { return tokenizer.decode(tokenizer.encode(text, false)); };
  EXPECT_EQ(read("a\xFFz"), "a\xEF\xBF\xBDz");
  EXPECT_EQ(read("\xE4\xBD"), "\xEF\xBF\xBD");                              // a character cut off
  EXPECT_EQ(read("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");  // a surrogate
  EXPECT_EQ(read("\xF4\x90\x80\x80"
                 "b"),
            "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(read(std::string_view("\0a", 2)), std::string_view("\0a", 2));
}

TEST(Tokenizer, DecodesBytesThatFormNoCharacterAndIdsWithoutAToken) {
  const Tokenizer tokenizer = test::byte_tokenizer();
  const std::vector<int32_t> ids = {0xE4 + 2, 0xBD + 2, 'a' + 2, -1, 1'000'000, 2'147'483'647, 1};
  EXPECT_EQ(tokenizer.decode(ids),
            "\xEF\xBF\xBD"
            "a</s>");
  EXPECT_EQ(tokenizer.decode(ids, true),
            "\xEF\xBF\xBD"
            "a");
}

TEST(Tokenizer, ReadsEosAndBosBesideTheFile) {
  const test::TemporaryDirectory directory;
  directory.write("tokenizer.json", byte_tokenizer_json());
  EXPECT_EQ(Tokenizer::load(directory.file("tokenizer.json")).eos_id(), std::nullopt);
  directory.write("tokenizer_config.json",
                  R"({"eos_token":{"content":"</s>","lstrip":false},"bos_token":"<s>","other":[1]})");
  const Tokenizer tokenizer = Tokenizer::load(directory.file("."));
  EXPECT_EQ(tokenizer.eos_id(), 1);
  EXPECT_EQ(tokenizer.bos_id(), 0);
  directory.write("tokenizer_config.json", R"({"eos_token":"<eos>"})");
  expect_mentions(refusal([&] { Tokenizer::load(directory.file("tokenizer.json")); }),
                  {"tokenizer_config.json: eos_token", "<eos>"});
}

TEST(Tokenizer, ReadsSpecialTokensInTheirManySpellings) {
  const test::TemporaryDirectory directory;
  directory.write("tokenizer.json", byte_tokenizer_json());
  directory.write(
      "tokenizer_config.json",
      R"({"bos_token":null,"eos_token":{"__type":"AddedToken","content":"</s>"},"pad_token":"a","unk_token":"<gone>",)"
      R"("model_max_length":1000000000000000019884624838656,"scale":1.5e30,"note":"12345678901234567890123"})");
  directory.write("special_tokens_map.json", R"({"bos_token":"<s>","eos_token":"<s>","mask_token":{"content":"b"}})");
  const Tokenizer tokenizer = Tokenizer::load(directory.file("."));
  EXPECT_EQ(tokenizer.bos_id(), 0);  // null, so the other file says
  EXPECT_EQ(tokenizer.eos_id(), 1);
  EXPECT_EQ(tokenizer.pad_id(), 'a' + 2);
  EXPECT_EQ(tokenizer.unk_id(), std::nullopt);
  EXPECT_EQ(tokenizer.special_token("eos_token"), "</s>");
  EXPECT_EQ(tokenizer.special_token("unk_token"), "<gone>");
  EXPECT_EQ(tokenizer.special_token("mask_token"), "b");
  EXPECT_EQ(tokenizer.special_token("cls_token"), std::nullopt);
  directory.write("special_tokens_map.json", R"({"sep_token":17})");
  expect_mentions(refusal([&] { Tokenizer::load(directory.file(".")); }), {"special_tokens_map.json: sep_token", "string"});
}

TEST(Tokenizer, NamesThePlaceOfHalfACharacter) {
  for (const char* half : {R"(\ud800)", R"(\udc00)", R"(\ud83d\u0041)"}) {
    const std::string json = byte_tokenizer_json("version", std::string("\"\\ud83d\\ude00 ") + half + "\"");
    const std::string message = refusal([&] { Tokenizer::parse(json, "t"); });
    expect_mentions(message, {"t: is not valid JSON", "half a character", "at byte"});
  }
}

TEST(Tokenizer, RefusesDeepNestingAndLongAddedTokens) {
  std::string nested = R"({"type":"NFC"})";
  for (int i = 0; i < 100; ++i) nested = R"({"type":"Sequence","normalizers":[)" + nested + "]}";
  expect_mentions(refusal([&] { Tokenizer::parse(byte_tokenizer_json("normalizer", nested), "t"); }),
                  {"t: normalizer", "deep"});
  const std::string token = R"([{"id":258,"content":")" + std::string(2000, 'a') + R"("}])";
  expect_mentions(refusal([&] { Tokenizer::parse(byte_tokenizer_json("added_tokens", token), "t"); }),
                  {"added_tokens[0].content", "1 KiB"});
}

TEST(Tokenizer, GivesNewAddedTokensTheIdsAfterTheModelsAsTheirLibraryDoes) {
  const Tokenizer tokenizer = Tokenizer::parse(
      byte_tokenizer_json("added_tokens", R"([{"id":300,"content":"[A]"},{"id":301,"content":"[B]"}])"), "t");
  EXPECT_EQ(tokenizer.id_of("[A]"), 258);
  EXPECT_EQ(tokenizer.id_of("[B]"), 259);
  EXPECT_EQ(tokenizer.vocab_size(), 260);
}

TEST(Tokenizer, SaysWhatIsMissingWhenThereIsNoTokenizer) {
  const test::TemporaryDirectory directory;
  expect_mentions(refusal([&] { Tokenizer::load(directory.file(".")); }), {"tokenizer.json", "cannot be opened"});
  directory.write("tokenizer.model", "x");
  expect_mentions(refusal([&] { Tokenizer::load(directory.file(".")); }), {"SentencePiece"});
}

TEST(Tokenizer, RefusesUnknownComponentsAndFieldsByName) {
  struct Case {
    const char *component, *value, *where, *what;
  };
  const Case cases[] = {
      {"normalizer", R"({"type":"Precompiled","precompiled_charsmap":"AA=="})", "normalizer.type", "Precompiled"},
      {"normalizer", R"({"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"BertNormalizer"}]})",
       "normalizer.normalizers[1].type", "BertNormalizer"},
      {"normalizer", R"({"type":"Prepend","prefix":"x"})", "normalizer", "prefix"},
      {"normalizer", R"({"type":"Replace","pattern":{"String":""},"content":"x"})", "normalizer.pattern.String", "empty"},
      {"normalizer", R"({"type":"Strip","strip_left":1,"strip_right":true})", "normalizer.strip_left", "true or false"},
      {"normalizer", R"({"type":"NFC","strict":true})", "normalizer", "strict"},
      {"pre_tokenizer", R"({"type":"Metaspace","replacement":"ab"})", "pre_tokenizer.replacement", "one character"},
      {"pre_tokenizer", R"({"type":"Metaspace","replacement":"_","prepend_scheme":"last"})", "prepend_scheme", "last"},
      {"pre_tokenizer", R"({"type":"Metaspace","replacement":"_","add_prefix_space":false})", "pre_tokenizer", "never"},
      {"pre_tokenizer", R"({"type":"UnicodeScripts"})", "pre_tokenizer.type", "UnicodeScripts"},
      {"pre_tokenizer", R"({"type":"FixedLength","length":0})", "pre_tokenizer.length", "at least 1"},
      {"pre_tokenizer", R"({"type":"Split","pattern":{"Regex":"a"},"behavior":"Sideways"})", "behavior", "Sideways"},
      {"pre_tokenizer", R"({"type":"Split","pattern":{"Regex":"("},"behavior":"Isolated"})", "pattern.Regex",
       "regular expression"},
      {"pre_tokenizer", R"({"type":"Split","pattern":{"Regex":"\\X"},"behavior":"Isolated"})", "pattern.Regex", "\\X"},
      {"pre_tokenizer", R"({"type":"Split","pattern":{"String":""},"behavior":"Isolated"})", "pattern.String", "empty"},
      {"pre_tokenizer", R"({"type":"ByteLevel","shape":1})", "pre_tokenizer", "shape"},
      {"pre_tokenizer", R"({"type":"ByteLevel","use_regex":"yes"})", "pre_tokenizer.use_regex", "true or false"},
      {"pre_tokenizer", R"([])", "pre_tokenizer", "object"},
      {"post_processor", R"({"type":"OtherProcessing"})", "post_processor.type", "OtherProcessing"},
      {"post_processor", R"({"type":"RobertaProcessing","cls":["a",-1],"sep":["b",1]})", "post_processor.cls[1]", "-1"},
      {"post_processor", R"({"type":"TemplateProcessing","single":[],"special_tokens":{}})", "post_processor.single",
       "Sequence A"},
      {"post_processor", R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"x"}}],"special_tokens":{}})",
       "SpecialToken.id", "special_tokens"},
      {"decoder", R"({"type":"WordPiece","prefix":"##"})", "decoder.type", "WordPiece"},
      {"decoder", R"({"type":"Strip","content":" ","start":-1,"stop":0})", "decoder.start", "negative"},
      {"added_tokens", R"([{"id":99999999999,"content":"a"}])", "added_tokens[0].id", "99999999999"},
      {"added_tokens", R"([{"id":1e400,"content":"a"}])", "bytes", "JSON"},
      {"added_tokens", R"([{"id":-1,"content":"new"}])", "added_tokens[0].id", "-1"},
      {"added_tokens", R"([{"id":7,"content":"new"}])", "added_tokens[0]", "id 7 stands for two tokens"},
      {"added_tokens", R"([{"id":7,"content":"a"}])", "added_tokens[0]", "\"a\" has id 7 here and 99 before"},
      {"added_tokens", R"([{"id":300,"content":"new","color":1}])", "added_tokens[0]", "color"},
      {"added_tokens", R"({})", "added_tokens", "list"},
      {"model", R"({"type":"Unigram"})", "model.type", "Unigram"},
      {"model", R"({"type":"BPE","vocab":{"a":0,"b":0},"merges":[]})", "model.vocab", "id 0 stands for two tokens"},
      {"model", R"({"type":"BPE","vocab":{"a":0,"a":1},"merges":[]})", "model.vocab", "\"a\" stands twice"},
      {"model", R"({"type":"BPE","vocab":{"a":4294967296},"merges":[]})", "model.vocab", "\"a\""},
      {"model", R"({"type":"BPE","vocab":{"a":1.5},"merges":[]})", "model.vocab", "\"a\""},
      {"model", R"({"type":"BPE","vocab":[],"merges":[]})", "model.vocab", "object"},
      {"model", R"({"type":"BPE","vocab":{},"merges":[]})", "model.vocab", "empty"},
      {"model", R"({"type":"BPE","vocab":{"a":0},"merges":["a b"]})", "model.merges", "\"b\""},
      {"model", R"({"type":"BPE","vocab":{"a":0,"b":1},"merges":["a b"]})", "model.merges", "\"ab\""},
      {"model", R"({"type":"BPE","vocab":{"a":0},"merges":["a"]})", "model.merges", "merge 0"},
      {"model", R"({"type":"BPE","vocab":{"a":0},"merges":[["a"]]})", "model.merges", "merge 0"},
      {"model", R"({"type":"BPE","vocab":{"a":0},"merges":[["a",1]]})", "model.merges", "merge 0"},
      {"model", R"({"type":"BPE","vocab":{"a":0}})", "model", "merges"},
      {"model", R"({"type":"BPE","vocab":{"a":0},"merges":[],"unk_token":"u"})", "model.unk_token", "\"u\""},
      {"model", R"({"type":"BPE","vocab":{"a":0},"merges":[],"dropout":0.1})", "model.dropout", "dropout"},
      {"model", R"({"type":"BPE","vocab":{"a":0},"merges":[],"end_of_word_suffix":"</w>"})", "model.end_of_word_suffix",
       "suffix"},
      {"model", R"({"type":"BPE","vocab":{"a":0},"merges":[],"beam":2})", "model", "beam"},
      {"surprise", "1", "bytes", "surprise"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.value);
    expect_mentions(refusal([&] { Tokenizer::parse(byte_tokenizer_json(c.component, c.value), "bytes"); }),
                    {"bytes", c.where, c.what});
  }
}

TEST(Tokenizer, RefusesWhatIsNotJson) {
  for (const char* text : {"", "{", "[]", "null", "{\"model\":", "\xFF\xFE", "{} {}"}) {
    EXPECT_NE(refusal([&] { Tokenizer::parse(text, "t"); }), "") << text;
  }
  EXPECT_NE(refusal([&] { Tokenizer::parse(std::string(100'000, '['), "t"); }), "");
}

TEST(Tokenizer, EncodesOneVeryLongWord) {
  const std::string json =
      byte_tokenizer_json("model", R"({"type":"BPE","vocab":{"a":0,"aa":1,"aaaa":2},"merges":["a a","aa aa"]})");
  std::string without_tokens = json;
  const size_t at = without_tokens.find("\"added_tokens\":[");
  without_tokens.erase(at, without_tokens.find("],", at) + 2 - at);
  const Tokenizer tokenizer = Tokenizer::parse(without_tokens, "t");
  const auto ids = tokenizer.encode(std::string(200'003, 'a'), false);
  ASSERT_EQ(ids.size(), 50'002U);
  EXPECT_EQ(ids[50'000], 1);
  EXPECT_EQ(ids[50'001], 0);
}

}  // namespace
}  // namespace snug

// Which tokens of a conversation are labels, against transformers' assistant mask (tests/oracle/data_chat.py).

#include <simdjson.h>

#include "base/file.h"
#include "data/dataset_files.h"
#include "data/template_renderer.h"
#include "tokenizer/support.h"

namespace snug {
namespace {

namespace dom = simdjson::dom;

struct Golden {
  Golden() { root = parser.load((std::filesystem::path(SNUG_SOURCE_DIR) / "tests/golden/data/chat.json").string()); }

  dom::parser parser;
  dom::element root;
};

std::vector<uint32_t> tokens_of(const std::filesystem::path& directory) {
  const InputFile file(token_file(directory), "");
  std::vector<uint32_t> tokens((static_cast<size_t>(file.size()) - sizeof(TokenHeader)) / sizeof(uint32_t));
  file.read_at(std::as_writable_bytes(std::span(tokens)), sizeof(TokenHeader));
  return tokens;
}

std::vector<uint32_t> expected_of(dom::element one) {
  std::vector<uint32_t> expected;
  auto mask = dom::array(one["mask"]).begin();
  for (const dom::element id : dom::array(one["ids"])) {
    expected.push_back(static_cast<uint32_t>(int64_t(id)) | (int64_t(*mask) != 0 ? kLabelBit : 0U));
    ++mask;
  }
  return expected;
}

// The golden file's text and spans, in place of a template; the messages' numbers do not matter where all are learned.
RenderedChat rendered_of(dom::element one) {
  RenderedChat rendered;
  rendered.text = std::string_view(one["text"]);
  for (const dom::element span : dom::array(one["spans"]))
    rendered.assistant.push_back({int64_t(span.at(0)), int64_t(span.at(1)), -1});
  return rendered;
}

DatasetRequest request_in(const test::TemporaryDirectory& directory, dom::element one) {
  DatasetRequest request;
  request.data = directory.write("d.json", "[{\"messages\": " + simdjson::to_string(dom::element(one["messages"])) + "}]");
  request.directory = directory.file("out");
  request.seq_len = 4096;
  request.packing = false;
  request.eos_id = 0;
  return request;
}

TEST(ChatLabels, AreTheTokensThatTransformersMarks) {
  const Golden golden;
  const Tokenizer tokenizer = Tokenizer::parse(simdjson::to_string(dom::element(golden.root["tokenizer"])), "golden");
  int cases = 0;
  for (const dom::element one : dom::array(golden.root["cases"])) {
    const test::TemporaryDirectory directory;
    const DatasetRequest request = request_in(directory, one);
    prepare_dataset(request, tokenizer, [&](const Chat&) { return rendered_of(one); });
    EXPECT_EQ(tokens_of(request.directory), expected_of(one)) << std::string_view(one["text"]);
    ++cases;
  }
  EXPECT_EQ(cases, 9);
}

// The same from the template itself.
TEST(ChatLabels, AreTheSameThroughTheTemplate) {
  const Golden golden;
  const Tokenizer tokenizer = Tokenizer::parse(simdjson::to_string(dom::element(golden.root["tokenizer"])), "golden");
  for (const dom::element one : dom::array(golden.root["cases"])) {
    const test::TemporaryDirectory directory;
    DatasetRequest request = request_in(directory, one);
    request.chat_template = directory.write(
        "t.jinja", std::string(std::string_view(golden.root["templates"][std::string_view(one["template"])])));
    prepare_dataset(request, tokenizer);
    EXPECT_EQ(tokens_of(request.directory), expected_of(one)) << std::string_view(one["text"]);
    if (std::string_view(one["template"]) != "marked") continue;
    request.chat_template = "chatml";  // says the same
    prepare_dataset(request, tokenizer);
    EXPECT_EQ(tokens_of(request.directory), expected_of(one)) << std::string_view(one["text"]);
  }
}

TEST(ChatTemplates, AreFoundWhereModelsKeepThem) {
  const test::TemporaryDirectory directory;
  DatasetRequest request;
  request.model = directory.file("");
  test::expect_mentions(test::refusal([&] { find_chat_template(request, false); }),
                        {"no chat template", "chat_template: chatml"});
  directory.write("tokenizer_config.json",
                  R"({"chat_template": [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}]})");
  EXPECT_EQ(find_chat_template(request, false).source, "d");
  EXPECT_EQ(find_chat_template(request, true).source, "t");
  directory.write("tokenizer_config.json", R"({"chat_template": "c"})");
  EXPECT_EQ(find_chat_template(request, false).source, "c");
  directory.write("chat_template.jinja", "j");
  EXPECT_EQ(find_chat_template(request, false).source, "j");
  request.chat_template = directory.write("mine.jinja", "m").string();
  EXPECT_EQ(find_chat_template(request, false).source, "m");
  request.chat_template = "chatml";
  EXPECT_NE(find_chat_template(request, false).source.find("<|im_start|>"), std::string::npos);
  request.chat_template = "nowhere.jinja";
  test::expect_mentions(test::refusal([&] { find_chat_template(request, false); }), {"nowhere.jinja", "cannot be opened"});
}

}  // namespace
}  // namespace snug

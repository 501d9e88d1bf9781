// The null device, by a client of CUDA's interface that runs everywhere, and by PyTorch where SNUG_TORCH names a Python that
// has it.

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

namespace {

using Json = nlohmann::json;

struct Done {
  int code = 0;
  std::string output;
};

Done run(const std::string& command) {
  Done done;
  const auto close = [](FILE* pipe) { return ::pclose(pipe); };
  FILE* const pipe = ::popen((command + " 2>&1").c_str(), "r");
  std::array<char, 4096> piece{};
  while (const size_t got = std::fread(piece.data(), 1, piece.size(), pipe)) done.output.append(piece.data(), got);
  done.code = WEXITSTATUS(close(pipe));
  return done;
}

const std::string kLibraries = SNUG_NULL_DEVICE_DIR;

TEST(NullDevice, answers_a_client_of_cudas_interface_as_a_card_would) {
  const Done done =
      run("LD_LIBRARY_PATH=" + kLibraries +
          " SNUG_NULL_MEMORY=4294967296 SNUG_NULL_CONTEXT=536870912 SNUG_NULL_SM=90 SNUG_NULL_MULTIPROCESSORS=77"
          " SNUG_NULL_DEVICES=2 SNUG_NULL_NAME='Test card' " SNUG_NULL_CLIENT);
  EXPECT_EQ(done.code, 0) << done.output;
}

TEST(NullDevice, has_less_where_other_processes_hold_some) {
  const Done done =
      run("LD_LIBRARY_PATH=" + kLibraries +
          " SNUG_NULL_MEMORY=4294967296 SNUG_NULL_CONTEXT=536870912 SNUG_NULL_OTHERS=1073741824,2147483648 " SNUG_NULL_CLIENT
          " others");
  EXPECT_EQ(done.code, 0) << done.output;
}

TEST(NullDevice, needs_nothing_but_the_c_library) {
  const Done done = run("ldd " + kLibraries + "/libsnug_null_device.so");
  EXPECT_EQ(done.output.find("libstdc++"), std::string::npos) << done.output;
  EXPECT_EQ(done.output.find("not found"), std::string::npos) << done.output;
}

class Measured : public testing::Test {
 protected:
  void SetUp() override {
    const char* python = std::getenv("SNUG_TORCH");
    if (python == nullptr) GTEST_SKIP() << "SNUG_TORCH does not name a Python with PyTorch";
    python_ = python;
    folder_ = testing::TempDir() + "snug-measure-" + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  // Runs a script under `snug measure`; its JSON in `json_`.
  Done measure(const std::string& flags, const std::string& script) {
    std::ofstream(folder_ + "/train.py") << script;
    const Done done = run(std::string(SNUG_PROGRAM " measure --json ") + folder_ + "/m.json " + flags + " -- " + python_ +
                          " " + folder_ + "/train.py");
    if (std::ifstream file(folder_ + "/m.json"); file) json_ = Json::parse(file).at("measured");
    return done;
  }

  std::string python_, folder_;
  Json json_;
};

constexpr const char* kPlainLoop = R"(
import torch
model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024, bias=False) for _ in range(4)]).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(3):
    x = torch.randn(64, 1024, device="cuda")
    model(x).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
)";

TEST_F(Measured, a_plain_loop_has_its_phases_and_steady_bytes) {
  const Done done = measure("--gpu RTX-4090", kPlainLoop);
  ASSERT_EQ(done.code, 0) << done.output;
  constexpr int64_t kWeights = 4 * 1024 * 1024 * 4, kBatch = 64 * 1024 * 4;
  EXPECT_EQ(json_["steps"].size(), 3U);
  EXPECT_EQ(json_["phases"]["load"]["allocated_bytes"], kWeights + kBatch);
  EXPECT_GE(json_["allocated_bytes"], 4 * kWeights);  // weights, gradients, two moments
  EXPECT_GE(json_["steady_bytes"], 3 * kWeights);
  EXPECT_LE(json_["steady_bytes"], json_["allocated_bytes"]);
  EXPECT_TRUE(json_["fits"]);
}

// Where a mask from the host is true is known, so what it takes out of a tensor has its true size.
TEST_F(Measured, a_mask_takes_as_much_as_it_has) {
  const Done done = measure("--gpu A100", R"(
import torch
labels = torch.tensor([[5, 6, -100, 7, -100]]).cuda()
hidden = torch.empty(1, 5, 1024, device="cuda", requires_grad=True)
mask = labels[:, 1:] != -100
kept = hidden[:, :-1][mask]
assert kept.shape == (2, 1024), kept.shape
assert hidden.masked_select((labels != -100).unsqueeze(-1)).shape == (3 * 1024,)
kept.sum().backward()
assert hidden.grad.shape == hidden.shape
)");
  EXPECT_EQ(done.code, 0) << done.output;
}

constexpr const char* kTrainer = R"(
import transformers
config = transformers.LlamaConfig(hidden_size=512, intermediate_size=1024, num_hidden_layers=8, num_attention_heads=8, vocab_size=1024)
rows = [{"input_ids": [i % 100] * 512, "labels": [i % 100] * 512} for i in range(64)]
arguments = transformers.TrainingArguments("/tmp/snug-out", per_device_train_batch_size=16, max_steps=2, save_strategy="no", report_to="none",
                                           disable_tqdm=True)
transformers.Trainer(transformers.LlamaForCausalLM(config), arguments, train_dataset=rows, data_collator=transformers.default_data_collator).train()
)";

// The change is made in the program's own arguments; whether it is enough is what the allocator says.
TEST_F(Measured, advice_is_tried_until_one_change_is_enough) {
  if (run(python_ + " -c 'import transformers, accelerate'").code != 0) GTEST_SKIP() << python_ << " has no transformers";
  ASSERT_EQ(measure("--gpu A100", kTrainer).code, 0);
  const int64_t memory = json_["reserved_bytes"].get<int64_t>() * 6 / 10 + (int64_t{620} << 20);
  const Done done = run(std::string(SNUG_PROGRAM " explain --try --gpu A100 --memory ") + std::to_string(memory) +
                        "B --json " + folder_ + "/t.json -- " + python_ + " " + folder_ + "/train.py");
  EXPECT_EQ(done.code, 0) << done.output;
  std::ifstream file(folder_ + "/t.json");
  const Json tried = Json::parse(file);
  EXPECT_EQ(tried["cause"], "shortage");
  const Json& last = tried["tried"].back();
  EXPECT_TRUE(last["passes"].get<bool>()) << tried.dump(1);
  EXPECT_EQ(last["changed"], last["do"]);
  EXPECT_LT(last["reserved_bytes"].get<int64_t>(), memory);
}

TEST_F(Measured, where_the_card_would_run_out_the_exit_code_is_3_and_the_line_is_named) {
  const Done done = measure("--memory 720MiB",
                            "import torch\nkept = []\nwhile True:\n    kept.append(torch.empty(1 << 20, device='cuda'))\n");
  EXPECT_EQ(done.code, 3) << done.output;
  EXPECT_FALSE(json_["fits"]);
  EXPECT_NE(done.output.find("train.py:4"), std::string::npos) << done.output;
}

TEST_F(Measured, another_failure_keeps_its_exit_code) {
  EXPECT_EQ(measure("", "import torch\ntorch.zeros(1, device='cuda')\nraise SystemExit(7)\n").code, 7);
}

TEST_F(Measured, masks_and_lengths_keep_their_values_on_the_device) {
  const Done done = measure("", R"(
import torch
mask = torch.ones(2, 8, dtype=torch.long)
mask[1, 5:] = 0
mask = mask.to("cuda")
assert mask.sum().item() == 13 and not mask.all() and mask[0].all()
assert mask.sum(-1).tolist() == [8, 5]
assert mask.nonzero().shape == (13, 2)
assert torch.arange(4, device="cuda").cumsum(0).tolist() == [0, 1, 3, 6]
unknown = torch.randn(4, device="cuda") > 0
assert (torch.full((4,), True, device="cuda") | unknown).all() and not (torch.zeros(4, dtype=torch.long, device="cuda") & unknown).any()
assert mask.float().mean().item() == 13 / 16 and mask.to("cpu").sum() == 13
assert list(range(0, (mask.sum() / 4).ceil().to(torch.int64) * 4, 4)) == [0, 4, 8, 12]  # as TRL cuts its loss
assert torch.randn(4, device="cuda").cpu().sum() == 0  # computed there: not known
computed = torch.randn(4, device="cuda") / 0
assert torch.isfinite(computed).all() and not computed.isnan().any() and computed[~torch.isnan(computed)].shape == (4,)
)");
  EXPECT_EQ(done.code, 0) << done.output;
}

// What a model samples is as long as it may be, and its prompt is the one that was given.
TEST_F(Measured, what_is_sampled_has_the_greatest_length) {
  if (run(python_ + " -c 'import transformers, accelerate'").code != 0) GTEST_SKIP() << python_ << " has no transformers";
  const Done done = measure("", R"(
import torch, transformers
config = transformers.LlamaConfig(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=2, vocab_size=128,
                                  bos_token_id=1, eos_token_id=0, pad_token_id=0)
model = transformers.LlamaForCausalLM(config).cuda()
prompt = torch.tensor([[5, 6, 7], [8, 9, 10]]).cuda()
ids = model.generate(input_ids=prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=4, do_sample=True)
assert ids.shape == (2, 7) and ids[:, :3].tolist() == [[5, 6, 7], [8, 9, 10]]
ended = torch.isin(ids[:, 3:], torch.tensor([0, 1], device="cuda"))
assert not ended.any()
)");
  EXPECT_EQ(done.code, 0) << done.output;
}

// As axolotl does: the loop is another one, and evaluate() remains.
TEST_F(Measured, evaluation_is_told_where_a_trainer_has_a_loop_of_its_own) {
  if (run(python_ + " -c 'import transformers, accelerate'").code != 0) GTEST_SKIP() << python_ << " has no transformers";
  const Done done = measure("", R"(
import transformers
transformers.Trainer.evaluation_loop = transformers.Trainer.evaluation_loop.__wrapped__
config = transformers.LlamaConfig(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=2, vocab_size=128)
rows = [{"input_ids": [1] * 32, "labels": [1] * 32} for _ in range(8)]
arguments = transformers.TrainingArguments("/tmp/snug-out", report_to="none", disable_tqdm=True)
transformers.Trainer(transformers.LlamaForCausalLM(config), arguments, eval_dataset=rows,
                     data_collator=transformers.default_data_collator).evaluate()
)");
  EXPECT_EQ(done.code, 0) << done.output;
  EXPECT_TRUE(json_["phases"].contains("evaluate")) << json_.dump();
}

TEST_F(Measured, weights_that_are_not_there_have_the_dtype_that_was_asked_for) {
  if (run(python_ + " -c 'import transformers, accelerate'").code != 0) GTEST_SKIP() << python_ << " has no transformers";
  std::filesystem::create_directories(folder_ + "/model");
  std::ofstream(folder_ + "/model/config.json")
      << R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 512, "intermediate_size": 1024,
             "num_hidden_layers": 2, "num_attention_heads": 8, "vocab_size": 1024, "torch_dtype": "bfloat16"})";
  const Done done =
      measure("", "import torch, transformers\nmodel = transformers.AutoModelForCausalLM.from_pretrained('" + folder_ +
                      "/model', torch_dtype=torch.float32, device_map={'': 0})\n"
                      "assert {(p.dtype, p.device.type) for p in model.parameters()} == {(torch.float32, 'cuda')}\n");
  EXPECT_EQ(done.code, 0) << done.output;
}

TEST_F(Measured, ranks_tell_each_other_integers) {
  const Done done = measure("--gpus 2", R"(
import os, sys
if "RANK" not in os.environ:
    os.execv(sys.executable, [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", __file__])
import torch, torch.distributed as dist
dist.init_process_group("nccl")
rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
order = torch.tensor([4, 5, 6] if rank == 0 else [-1] * 3, device="cuda")
dist.broadcast(order, src=0)
assert order.tolist() == [4, 5, 6] and [one.item() for one in order.cpu()] == [4, 5, 6]
told = torch.tensor([7], device="cuda") if rank == 1 else torch.empty(1, dtype=torch.int64, device="cuda")
dist.broadcast(told, src=1)
assert told.item() == 7
dist.destroy_process_group()
)");
  EXPECT_EQ(done.code, 0) << done.output;
}

TEST_F(Measured, the_program_is_ended_after_the_steps_that_were_asked_for) {
  const Done done = measure("--steps 2", kPlainLoop);
  EXPECT_EQ(done.code, 0) << done.output;
  EXPECT_EQ(json_["steps"].size(), 2U);
}

}  // namespace

#include "torch/traceback.h"

#include <gtest/gtest.h>

#include <string>

#include "torch/oom_log.h"

namespace snug::torch_tests {

namespace {

// The innermost frame of the user's own code, as explain finds it.
struct Place {
  std::string file, function, code;
  int64_t line = 0;
  size_t frames = 0;
};

Place place_in(std::string_view text) {
  const OomLog log = read_oom_log(text);
  EXPECT_TRUE(log.first) << text;
  if (!log.first) return {};
  const auto all = read_tracebacks(log.around);
  const Traceback* traceback = traceback_of(all, log.around, log.at);
  if (traceback == nullptr) return {};
  const Frame* own = traceback->own();
  if (own == nullptr) return {"", "", "", 0, traceback->frames.size()};
  return {own->file, own->function, own->code, own->line, traceback->frames.size()};
}

constexpr std::string_view kError = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n";

}  // namespace

TEST(Traceback, StandardForm) {
  const Place place = place_in(std::string(R"(Traceback (most recent call last):
  File "/home/me/train.py", line 12, in <module>
    main()
  File "/home/me/train.py", line 7, in main
    loss.backward()
    ^^^^^^^^^^^^^^^
  File "/opt/conda/lib/python3.11/site-packages/torch/_tensor.py", line 525, in backward
    torch.autograd.backward(
  File "/usr/lib/python3.11/contextlib.py", line 81, in inner
    return func(*args, **kwds)
)") + std::string(kError));
  EXPECT_EQ(place.file, "/home/me/train.py");
  EXPECT_EQ(place.line, 7);
  EXPECT_EQ(place.function, "main");
  EXPECT_EQ(place.code, "loss.backward()");
  EXPECT_EQ(place.frames, 4u);
}

TEST(Traceback, OfTheRankThatFailedBehindItsPrefix) {
  const Place place = place_in(
      "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"C:\\me\\t.py\", line 3, in go\n"
      "[rank1]:     model(x)\n[rank1]: " +
      std::string(kError) +
      "Traceback (most recent call last):\n  File \"/x/launch.py\", line 1, in run\n    go()\n"
      "subprocess.CalledProcessError: Command failed\n");
  EXPECT_EQ(place.file, "C:\\me\\t.py");
  EXPECT_EQ(place.line, 3);
  EXPECT_EQ(place.code, "model(x)");
}

TEST(Traceback, OfANotebookOfOldAndOfNow) {
  const Place old = place_in(std::string(R"(---------------------------------------------------------------------------
RuntimeError                              Traceback (most recent call last)
<ipython-input-12-abcdef> in <module>()
      1 trainer = make()
----> 2 trainer.train()

/usr/local/lib/python3.6/dist-packages/torch/nn/modules/module.py in __call__(self, *input, **kwargs)
    487         else:
--> 489             result = self.forward(*input, **kwargs)
    490 

)") + std::string(kError));
  EXPECT_EQ(old.file, "<ipython-input-12-abcdef>");
  EXPECT_EQ(old.line, 2);
  EXPECT_EQ(old.code, "trainer.train()");
  EXPECT_EQ(old.frames, 2u);
  const Place now = place_in(std::string(R"(OutOfMemoryError                          Traceback (most recent call last)
Cell In[5], line 3
      1 x = 1
----> 3 trainer.train()

File /opt/conda/lib/python3.10/site-packages/transformers/trainer.py:1537, in Trainer.train(self, args)
   1535     else:
-> 1537     return inner_training_loop(

)") + std::string(kError));
  EXPECT_EQ(now.file, "Cell In[5]");
  EXPECT_EQ(now.line, 3);
  EXPECT_EQ(now.frames, 2u);
  const Place colab = place_in(
      "[0;31mOutOfMemoryError[0m   Traceback (most recent call last)\n"
      "[0;32m<ipython-input-7-1>[0m in [0;36m<cell line: 1>[0;34m()[0m\n"
      "[0;32m----> 1[0;31m [0mrun[0m[0;34m([0m[0;34m)[0m[0;34m[0m[0m\n\n" +
      std::string(kError));
  EXPECT_EQ(colab.file, "<ipython-input-7-1>");
  EXPECT_EQ(colab.line, 1);
  EXPECT_EQ(colab.code, "run()");
}

TEST(Traceback, OfANotebooksFile) {
  const Place place = place_in(R"text(   "traceback": [
      "\u001b[0;31mOutOfMemoryError\u001b[0m   Traceback (most recent call last)",
      "Cell \u001b[0;32mIn[9], line 4\u001b[0m\n\u001b[1;32m      3\u001b[0m a\n\u001b[0;32m----> 4\u001b[0m go(x)\n",
      "\u001b[0;31mOutOfMemoryError\u001b[0m: CUDA out of memory. Tried to allocate 2.00 GiB."
)text");
  EXPECT_EQ(place.file, "Cell In[9]");
  EXPECT_EQ(place.line, 4);
  EXPECT_EQ(place.code, "go(x)");
}

TEST(Traceback, OfPytestAndOfRich) {
  const Place long_form = place_in(R"(    def test_it():
>       model(x)

tests/test_model.py:8: 
_ _ _ _ _ _ _ _ _ _ _ _
    def forward(self, x):
>       return self.lin(x)
E       torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.

src/model.py:31: OutOfMemoryError
)");
  EXPECT_EQ(long_form.file, "src/model.py");
  EXPECT_EQ(long_form.line, 31);
  EXPECT_EQ(long_form.code, "return self.lin(x)");
  const Place rich = place_in(
      "╭───── Traceback (most recent call last) ─────╮\n│ /data/train.py:12 in main                    │\n"
      "│ ❱ 12     loss.backward()                     │\n"
      "│ /opt/lib/python3.10/site-packages/torch/_tensor.py:487 in backward │\n╰────────────╯\n" +
      std::string(kError));
  EXPECT_EQ(rich.file, "/data/train.py");
  EXPECT_EQ(rich.line, 12);
  EXPECT_EQ(rich.frames, 2u);
}

TEST(Traceback, AListBehindTheMessageIsReadFromWithinOutwards) {
  const auto all =
      read_tracebacks("At:\n  /x/site-packages/torch/nn/functional.py(1243): dropout\n  /me/model.py(130): forward\n");
  ASSERT_EQ(all.size(), 1u);
  ASSERT_EQ(all[0].frames.size(), 2u);
  EXPECT_EQ(all[0].frames.back().function, "dropout");
  ASSERT_NE(all[0].own(), nullptr);
  EXPECT_EQ(all[0].own()->line, 130);
}

// Environments are called torch, too, and libraries are run from their sources.
TEST(Traceback, ALibraryInAFolderCalledTorchIsNotPyTorch) {
  const auto all = read_tracebacks(R"(Traceback (most recent call last):
  File "/home/me/torch/train.py", line 12, in main
    model(x)
  File "/opt/torch/.venv/lib/python3.12/site-packages/torch/nn/modules/module.py", line 1790, in _call_impl
    return forward_call(*args, **kwargs)
  File "/home/me/src/transformers/src/transformers/models/llama/modeling_llama.py", line 268, in forward
    attn_output, attn_weights = attention_interface(
  File "/opt/torch/.venv/lib/python3.12/site-packages/flash_attn/layers/rotary.py", line 208, in eager_attention_forward
    scores = softmax(scores)
  File "/src/pytorch/torch/nn/functional.py", line 2161, in softmax
    ret = input.softmax(dim, dtype=dtype)
RuntimeError: CUDA out of memory.
)");
  ASSERT_EQ(all.size(), 1u);
  ASSERT_EQ(all[0].frames.size(), 5u);
  EXPECT_EQ(all[0].own()->line, 12);
  EXPECT_EQ(all[0].caller()->function, "eager_attention_forward");
  EXPECT_TRUE(is_pytorchs("/opt/torch/.venv/lib/python3.12/site-packages/torch/nn/modules/module.py"));
  EXPECT_FALSE(is_pytorchs("/opt/torch/.venv/lib/python3.12/site-packages/peft/peft_model.py"));
  EXPECT_TRUE(is_pytorchs("C:\\envs\\torch\\Lib\\site-packages\\torch\\nn\\functional.py"));
  EXPECT_TRUE(is_pytorchs("/tmp/site/torch/nn/modules/linear.py"));
  for (const char* own : {"/home/me/torch/train.py", "/home/me/pytorch/utils/train.py", "/home/me/mytorch/optim/lion.py"})
    EXPECT_FALSE(is_pytorchs(own)) << own;
}

TEST(Traceback, FramesThatATerminalOrALoggerWrappedAreWhole) {
  const Place terminal = place_in(std::string(R"(Traceback (most recent call last):
  File "/home/me/deep/folder/tr
ain.py", line 88, in train_one_ep
och
    loss.backward()
  File "/home/me/deep/folder/train.py", line 9
1, in step
    f()
)") + std::string(kError));
  EXPECT_EQ(terminal.file, "/home/me/deep/folder/train.py");
  EXPECT_EQ(terminal.line, 91);
  EXPECT_EQ(terminal.function, "step");
  EXPECT_EQ(terminal.code, "f()");
  EXPECT_EQ(terminal.frames, 2u);
  const Place logger = place_in(std::string(R"(
          File
          "/home/me/long_na
          me.py", line 170, in run
              self.go()
)") + std::string(kError));
  EXPECT_EQ(logger.file, "/home/me/long_name.py");
  EXPECT_EQ(logger.line, 170);
  EXPECT_EQ(logger.code, "self.go()");
}

TEST(Traceback, ABoxThatWasWrappedTellsItsFunctionAndItsCode) {
  const Place place = place_in(std::string(R"(╭──── Traceback (most recent call last) ────╮
│ C:\my runs\train.py:480                    │
│ in train                                   │
│                                            │
│   478 │   for batch in loader:             │
│ ❱ 480 │   │   loss.backward()              │
╰────────────────────────────────────────────╯
)") + std::string(kError));
  EXPECT_EQ(place.file, "C:\\my runs\\train.py");
  EXPECT_EQ(place.function, "train");
  EXPECT_EQ(place.code, "loss.backward()");
}

TEST(Traceback, BehindAMessageIsItsOwnOnlyWhereThatIsSure) {
  const std::string behind = "Traceback (most recent call last):\n  File \"/home/me/a.py\", line 3, in f\n    g()\n";
  const std::string words = "CUDA out of memory. Tried to allocate 2.00 GiB.\n";
  EXPECT_EQ(place_in("2025-01-01 10:00:00 ERROR: " + words + behind).line, 3);
  EXPECT_EQ(place_in("2025-01-01 10:00:00 ERROR: " + words + behind + std::string(kError)).line, 3);
  EXPECT_EQ(place_in("failed: " + words + behind + "KeyError: 'x'\n").line, 0);
  EXPECT_EQ(place_in(std::string(kError) + behind).line, 0) << "another's traceback";
  EXPECT_EQ(place_in(std::string(kError) + "The whole of it:\n" + behind.substr(behind.find('\n') + 1)).line, 3);
}

TEST(Traceback, FramesThatLostTheirLineBreaksAreTakenApart) {
  const std::string text =
      "Traceback (most recent call last): File \"/me/a.py\", line 128, in main model.save_pretrained(\"x\",) File "
      "\"/opt/lib/python3.11/"
      "site-packages/x/save.py\", line 2357, in save f(**a) " +
      std::string(kError);
  const Place place = place_in(text);
  EXPECT_EQ(place.file, "/me/a.py");
  EXPECT_EQ(place.function, "main");
  EXPECT_EQ(place.code, "model.save_pretrained(\"x\",)");
  EXPECT_EQ(place.frames, 2u);
}

TEST(Traceback, AnExceptionIsNoCodeOfTheFrameBeforeIt) {
  const Place place = place_in("  File \"<stdin>\", line 1, in <module>\n" + std::string(kError));
  EXPECT_EQ(place.line, 1);
  EXPECT_EQ(place.code, "");
}

TEST(Traceback, ALaunchersScriptIsNotTheUsersCode) {
  EXPECT_EQ(
      place_in("  File \"/usr/local/bin/torchrun\", line 8, in <module>\n    sys.exit(main())\n" + std::string(kError)).line,
      0);
}

TEST(Traceback, DeepRecursionIsCutFromOutside) {
  std::string text = "Traceback (most recent call last):\n";
  for (int i = 0; i < 5000; ++i) text += "  File \"a.py\", line " + std::to_string(i) + ", in f\n    f()\n";
  const auto all = read_tracebacks(text + std::string(kError));
  ASSERT_EQ(all.size(), 1u);
  EXPECT_LE(all[0].frames.size(), 512u);
  EXPECT_EQ(all[0].frames.back().line, 4999);
}

TEST(Traceback, CutAnywhereItHasNoFrameThatIsNotThere) {
  const std::string text =
      "Traceback (most recent call last):\n  File \"train.py\", line 1234, in main\n    go()\n" + std::string(kError);
  for (size_t length = 0; length <= text.size(); ++length)
    for (const Traceback& traceback : read_tracebacks(std::string_view(text).substr(0, length)))
      for (const Frame& frame : traceback.frames) EXPECT_EQ(frame.file, "train.py");
}

}  // namespace snug::torch_tests

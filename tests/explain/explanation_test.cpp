#include "explain/explanation.h"

#include <gtest/gtest.h>

#include <string>

#include "torch/support_oom_texts.h"

namespace snug::explain_tests {

namespace {

using torch_tests::gib;
using torch_tests::mib;

constexpr std::string_view kFull =
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of 23.68 GiB of "
    "which 0.38 "
    "GiB is free. Including non-PyTorch memory, this process has 23.29 GiB memory in use. Of the allocated memory 22.16 GiB "
    "is "
    "allocated by PyTorch, and 544.12 MiB is reserved by PyTorch but unallocated.\n";

std::string traceback(std::string_view frames) {
  return "Traceback (most recent call last):\n" + std::string(frames) + std::string(kFull);
}

Explanation explain(const std::string& text) {
  auto e = explain_log(read_oom_log(text));
  EXPECT_TRUE(e);
  return e ? std::move(*e) : Explanation{};
}

bool advises(const Explanation& e, std::string_view part) {
  for (const Advice& advice : e.advice)
    if (advice.change.find(part) != std::string::npos) return true;
  return false;
}

}  // namespace

TEST(Explanation, AShortageInEvaluationAsksForSmallerEvaluation) {
  const Explanation e =
      explain(traceback("  File \"train.py\", line 5, in <module>\n    trainer.train()\n  File "
                        "\"/x/site-packages/transformers/trainer.py\", line 4, in "
                        "evaluation_loop\n    logits = nested_concat(a, b)\n"));
  EXPECT_EQ(e.stage.stage, TorchStage::evaluation);
  EXPECT_TRUE(e.stage.logits);
  ASSERT_TRUE(e.own);
  EXPECT_EQ(e.own->file, "train.py");
  ASSERT_FALSE(e.advice.empty());
  EXPECT_EQ(e.advice[0].change, "prediction_loss_only: true");
  EXPECT_TRUE(advises(e, "eval_accumulation_steps"));
  EXPECT_FALSE(advises(e, "gradient_checkpointing"));
}

TEST(Explanation, EachStageHasItsOwnRemedies) {
  const auto with = [](const char* function, const char* file) {
    return explain(traceback("  File \"/x/site-packages/" + std::string(file) + "\", line 4, in " + function + "\n    x\n"));
  };
  EXPECT_TRUE(advises(with("_init_group", "torch/optim/adamw.py"), "adamw_bnb_8bit"));
  EXPECT_TRUE(advises(with("save_pretrained", "peft/peft_model.py"), "adapter alone"));
  EXPECT_TRUE(advises(with("from_pretrained", "transformers/modeling_utils.py"), "load_in_4bit"));
  EXPECT_TRUE(advises(with("cross_entropy", "torch/nn/functional.py"), "use_liger_kernel"));
  EXPECT_TRUE(advises(with("generate", "transformers/generation/utils.py"), "max_new_tokens"));
  EXPECT_TRUE(advises(with("_engine_run_backward", "torch/autograd/graph.py"), "gradient_checkpointing"));
  EXPECT_TRUE(advises(with("capture_model", "vllm/worker/model_runner.py"), "enforce_eager"));
}

TEST(Explanation, TheSettingIsNamedAsThatReleaseKnowsIt) {
  const auto fragmented = [](std::string_view tail) {
    return explain(
        "CUDA out of memory. Tried to allocate 1.00 GiB (GPU 0; 24.00 GiB total capacity; 18.00 GiB already allocated; 0.50 "
        "GiB free; 22.50 GiB reserved in total by PyTorch)" +
        std::string(tail));
  };
  EXPECT_TRUE(advises(fragmented(""), "update PyTorch"));
  const Explanation e = fragmented(" If reserved memory is >> allocated memory try setting max_split_size_mb");
  EXPECT_TRUE(advises(e, "max_split_size_mb:128"));
  EXPECT_EQ(e.advice[0].most_bytes, gib(4.5));
  const auto now = [](const char* name) {
    return explain(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 24.00 GiB of "
        "which 0.50 GiB is free. Of the allocated memory 18.00 GiB is allocated by PyTorch, and 4.50 GiB is reserved by "
        "PyTorch but unallocated. If reserved but unallocated memory is large try setting " +
        std::string(name) + "=expandable_segments:True to avoid fragmentation.");
  };
  EXPECT_EQ(now("PYTORCH_ALLOC_CONF").advice[0].change, "PYTORCH_ALLOC_CONF=expandable_segments:True");
  EXPECT_EQ(now("PYTORCH_CUDA_ALLOC_CONF").advice[0].change, "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
}

TEST(Explanation, ProcessesAreEndedByTheirNumberTheLargestFirst) {
  for (const torch_tests::EraText& text : torch_tests::kEraTexts)
    if (text.name == "capacty") {
      const Explanation e = explain(std::string(text.text));
      EXPECT_EQ(e.diagnosis.own_pid, 26469);
      EXPECT_EQ(e.advice[0].change, "end process 26470, or wait for it");
      EXPECT_EQ(e.advice[0].most_bytes, gib(12));
    }
}

TEST(Explanation, AListBehindTheMessageTellsTheUsersLine) {
  const Explanation e = explain(
      "  File \"/x/site-packages/torch/autograd/__init__.py\", line 173, in backward\n    run_backward()\n" +
      std::string(kFull) + "\nAt:\n  /x/site-packages/torch/nn/functional.py(12): dropout\n  /me/model.py(130): forward\n");
  EXPECT_EQ(e.stage.stage, TorchStage::backward);
  EXPECT_TRUE(e.stage.recompute);
  ASSERT_TRUE(e.own);
  EXPECT_EQ(e.own->file, "/me/model.py");
  EXPECT_EQ(e.own->line, 130);
}

TEST(Explanation, PytestsSummaryNamesTheTest) {
  const Explanation e = explain("FAILED tests/test_a.py::TestA::test_b[x-y] - " + std::string(kFull));
  ASSERT_TRUE(e.own);
  EXPECT_EQ(e.own->file, "tests/test_a.py");
  EXPECT_EQ(e.own->function, "TestA::test_b[x-y]");
}

TEST(Explanation, SomeMessagesTellTheirStageThemselves) {
  EXPECT_EQ(explain("RuntimeError: DataLoader worker (pid 4) is killed by signal: Bus error.").stage.stage,
            TorchStage::data);
  EXPECT_EQ(explain("ValueError: No available memory for the cache blocks.").stage.stage, TorchStage::capture);
}

TEST(Explanation, OfAProcessThatWasKilledTheLaunchersFramesTellNothing) {
  const Explanation e = explain(
      "Loading checkpoint shards:  57% 4/7\nERROR failed (exitcode: -9) local_rank: 0\nTraceback (most recent call last):\n"
      "  File \"/usr/local/bin/torchrun\", line 8, in <module>\n    sys.exit(main())\n");
  EXPECT_EQ(e.stage.stage, TorchStage::load);
  EXPECT_FALSE(e.own);
  EXPECT_FALSE(e.caller);
}

TEST(Explanation, AnOldReleaseIsNotToldOfWhatItHasNotLearnt) {
  const Explanation e = explain(
      "  File \"a.py\", line 1, in f\n    loss.backward()\nRuntimeError: CUDA out of memory. Tried to allocate 1.00 GiB "
      "(GPU 0; 8.00 "
      "GiB total capacity; 7.00 GiB already allocated; 0.20 GiB free; 7.10 GiB reserved in total by PyTorch)");
  EXPECT_EQ(e.log.cause().era, "1.4-1.9");
  for (const Advice& one : e.advice) {
    EXPECT_FALSE(one.change.starts_with("attn_implementation")) << one.change;
    EXPECT_FALSE(one.change.starts_with("use_liger_kernel")) << one.change;
  }
  EXPECT_EQ(e.advice.back().change, "update PyTorch to 2.x");
}

TEST(Explanation, AMessageAboveItsLogIsExplainedByTheLog) {
  const Explanation e = explain("It fails:\n" + std::string(kFull) + "\nThe whole log:\n" +
                                traceback("  File \"/me/train.py\", line 5, in main\n    loss.backward()\n"));
  EXPECT_EQ(e.log.cause().line, 2);
  EXPECT_EQ(e.stage.stage, TorchStage::backward);
  ASSERT_TRUE(e.own);
  EXPECT_EQ(e.own->line, 5);
}

TEST(Explanation, AdviceIsInTheWordsOfTheLoopThatFailed) {
  const std::string own = "  File \"/me/train.py\", line 5, in main\n    loss.backward()\n";
  const Explanation loop = explain(traceback(own));
  EXPECT_TRUE(advises(loop, "torch.utils.checkpoint.checkpoint"));
  EXPECT_TRUE(advises(loop, "half the batch, twice the accumulation steps"));
  EXPECT_FALSE(advises(loop, "per_device_train_batch_size"));
  const Explanation lightning =
      explain(traceback(own + "  File \"/x/site-packages/pytorch_lightning/core/module.py\", line 9, in backward\n    x\n"));
  EXPECT_TRUE(advises(lightning, "accumulate_grad_batches"));
  const Explanation trainer =
      explain(traceback(own + "  File \"/x/site-packages/transformers/trainer.py\", line 9, in training_step\n    x\n"));
  EXPECT_TRUE(advises(trainer, "per_device_train_batch_size"));
}

TEST(Explanation, AnotherFrameworkHasItsOwnRemedies) {
  const Explanation e = explain("RESOURCE_EXHAUSTED: Out of memory allocating 20029400304 bytes.");
  ASSERT_FALSE(e.advice.empty());
  EXPECT_EQ(e.advice.front().change, "XLA_PYTHON_CLIENT_MEM_FRACTION=0.95");
}

TEST(Explanation, AMemorySummaryAloneIsAnAnswerToo) {
  MemorySummary s;
  s.device = 0;
  s.allocated = {gib(8), gib(10)};
  s.reserved = {gib(11), gib(12)};
  s.retries = 2;
  const Diagnosis d = diagnose(s);
  EXPECT_EQ(d.unused_bytes, gib(3));
  EXPECT_NE(d.answer.find("10.00 GiB"), std::string::npos);
  EXPECT_EQ(d.remarks.size(), 1u);
}

TEST(Explanation, ALogWithoutAMessageHasNone) { EXPECT_FALSE(explain_log(read_oom_log("all is well\n"))); }

TEST(Explanation, ATracebackBehindAMessageThatBeginsTheTextIsItsOwn) {
  const std::string frames =
      "Traceback (most recent call last):\n  File \"/me/a.py\", line 5, in prepare\n    model = load_model(name)\n";
  EXPECT_EQ(explain(std::string(kFull) + frames).stage.stage, TorchStage::load);
  EXPECT_EQ(explain(std::string(kFull) + frames + std::string(kFull)).stage.stage, TorchStage::load);
  EXPECT_EQ(explain(std::string(kFull) + frames + "AttributeError: no such name\n").stage.stage, TorchStage::unknown);
  EXPECT_EQ(explain("    loss.backward()\n" + std::string(kFull) + frames).stage.stage, TorchStage::backward);
}

TEST(Explanation, ANodeOfComfyuisReportTellsTheStage) {
  const auto of = [](const std::string& node) {
    return explain("- **Node Type:** " + node + "\n- **Exception Message:** " + std::string(kFull)).stage.stage;
  };
  EXPECT_EQ(of("UNETLoader"), TorchStage::load);
  EXPECT_EQ(of("KSampler"), TorchStage::forward);
  EXPECT_EQ(of("SaveImage"), TorchStage::unknown);
}

TEST(Explanation, ATitleWithoutFiguresHasTheTracebackThatEndsAlike) {
  const std::string title =
      "generate.py: torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.83 GiB. GPU\n\n";
  const std::string frames =
      "Traceback (most recent call last):\n  File \"/me/a.py\", line 5, in prepare\n    model = load_model(name)\n";
  EXPECT_EQ(explain(title + frames + "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to a\n").stage.stage,
            TorchStage::load);
  EXPECT_EQ(explain(title + frames + "AttributeError: no such name\n").stage.stage, TorchStage::unknown);
}

TEST(Explanation, AServersLogTellsThatGraphsWereCaptured) {
  const std::string title =
      "CUDA out of memory. Tried to allocate 2.00 MiB. GPU 6 has a total capacity of 44.53 GiB of which "
      "448.00 KiB is free.\n\n";
  EXPECT_EQ(explain(title + "INFO [model_runner.py:1442] Capturing cudagraphs for decoding.\n").stage.stage,
            TorchStage::capture);
  EXPECT_EQ(explain(title + "Capturing cudagraphs for decoding.\nGraph capturing finished in 9 secs\n").stage.stage,
            TorchStage::unknown);
}

TEST(Explanation, ARequestLargerThanAnyDeviceNeedsNoFigures) {
  EXPECT_EQ(explain("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1263.35 GiB. \n").diagnosis.cause,
            Cause::impossible_request);
  const Explanation odd = explain("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 56.50 GiB. GPU\n");
  EXPECT_EQ(odd.diagnosis.cause, Cause::unknown);
  ASSERT_FALSE(odd.advice.empty());
  EXPECT_EQ(odd.advice.front().todo, "right_shape");
}

}  // namespace snug::explain_tests

#include "explain/host_advice.h"

#include <algorithm>
#include <initializer_list>

#include "explain/remedies.h"
#include "torch/words.h"

namespace snug {

namespace {

bool has_any(const OomMessage& m, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(words, [&](std::string_view word) { return contains(m.text, word); });
}

void host_change(std::vector<Advice>& all, const char* change, const char* effect) { all.push_back({change, effect, {}}); }

// Windows lends no memory that it could not page out: there requests fail while RAM is free.
bool is_of_windows(const OomMessage& m) {
  return has_any(m, {"1455", "paging file", "页面文件", "..\\", ":\\", "DefaultCPUAllocator: not enough memory"});
}

// A request that most machines cannot meet, whatever else they hold.
bool is_one_large_array(const OomMessage& m) {
  constexpr int64_t kLarge = int64_t{32} << 30;
  return m.tried_bytes && *m.tried_bytes >= kLarge;
}

bool was_told_by_kernel(const OomMessage& m) {
  return has_any(m, {"oom-kill", "oom_kill", "invoked oom", "Out of memory: Kill", "Memory cgroup"});
}

void add_shared_memory(std::vector<Advice>& all) {
  host_change(all, "docker run --shm-size=8g, or --ipc=host", "a container's /dev/shm has 64 MiB unless told");
  host_change(all, "dataloader_num_workers: 0", "batches are made in the process itself");
}

void add_load(std::vector<Advice>& all) {
  host_change(all, "low_cpu_mem_usage=True, torch_dtype=\"auto\", safetensors files",
              "loads weights once and in their own type, not twice in fp32");
}

void add_workers(std::vector<Advice>& all) {
  host_change(all, "dataloader_num_workers: 0 or 1; keep_in_memory=False", "each worker copies what it touches");
}

// What the request itself tells, before what helps in general.
void add_for_request(std::vector<Advice>& all, const OomMessage& m) {
  if (is_one_large_array(m)) {
    all.push_back(advice_of(Remedy::right_shape));
    all.back().change = "check the shape of this array: smaller pieces at a time, a sparse or a smaller type";
    all.back().effect = "one array of this size is more than most machines have";
  }
  if (contains(m.text, "requires more system memory"))
    host_change(all, "a smaller model or quantization, or a smaller context (num_ctx)", "weights and cache that lie in RAM");
  if (contains(m.text, "</torch_"))
    host_change(all, "sysctl -w vm.max_map_count=1048576, or fewer tensors a sample and fewer workers",
                "each tensor that a worker shares is a mapping; 65,530 are allowed unless told");
  if (is_of_windows(m))
    host_change(all, "a larger page file: System - Advanced - Performance - Virtual memory",
                "Windows grants no more than RAM and page file together, used or not");
  if (m.source != OomSource::killed) return;
  if (was_told_by_kernel(m)) {
    all.push_back({"more RAM or swap, or a higher memory limit of the container or the job",
                   "the kernel ended the process that had most", m.process_bytes});
  } else {
    all.push_back({"see `dmesg | grep -i kill`, or the container's memory limit", "tells which process had how much",
                   m.process_bytes});
  }
}

}  // namespace

bool is_death_of_worker(const OomMessage& m) {
  return m.source == OomSource::killed && has_any(m, {"is killed by signal", "subprocesses has abruptly died"});
}

void cure_host(std::vector<Advice>& all, const OomMessage& m, const StageFound& stage) {
  if (m.source == OomSource::shared_memory) return add_shared_memory(all);
  const bool loads = stage.stage == TorchStage::load, feeds = stage.stage == TorchStage::data;
  if (contains(m.text, "map operation"))
    host_change(all, "preprocessing_num_workers: 1 (num_proc=1), a smaller writer_batch_size",
                "each process keeps its share of rows");
  else if (is_death_of_worker(m))
    add_workers(all);
  if (loads && !is_of_windows(m)) add_load(all);
  if (stage.stage == TorchStage::save)
    host_change(all, "max_shard_size=\"2GB\"; gather on one rank only", "less lies in RAM at a time");
  add_for_request(all, m);
  if (loads && is_of_windows(m)) add_load(all);
  if (!was_told_by_kernel(m))
    host_change(all, "more RAM or swap, or fewer processes that share it", "each rank and each worker loads for itself");
  if (!is_death_of_worker(m)) add_workers(all);
  if (!loads && !feeds && m.source == OomSource::killed) add_load(all);
  host_change(all, "offload less to the CPU (device_map, ZeRO offload, paged optimizers)",
              "what leaves the device lands here");
  if (was_told_by_kernel(m)) host_change(all, "fewer processes a machine", "each rank loads the model for itself");
}

}  // namespace snug

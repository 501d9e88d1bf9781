#include "measure/run/carried.h"

#include <array>
#include <span>
#include <string_view>

#include "base/file.h"

// The null device as it was built, without a detour over text.
__asm__(".section .rodata\n.balign 16\nsnug_null_device_begin:\n.incbin \"" SNUG_NULL_DEVICE_FILE
        "\"\nsnug_null_device_end:\n.byte 0\n.previous\n");
extern "C" const char snug_null_device_begin[], snug_null_device_end[];

namespace snug {

extern const std::string_view kModelsText;  // the catalogue
extern const std::string_view kMeasureSite, kMeasurePackage, kMeasureDevice, kMeasureValues, kMeasurePhases,
    kMeasureProcesses, kMeasureWeights, kMeasureSynthetic, kMeasureChanges, kFlashPackage, kFlashPadding, kFlashMetadata,
    kFlashTopLevel;

namespace {

struct Carried {
  const char* path;
  std::string_view text;
};

void write(const std::filesystem::path& path, std::string_view text) {
  std::filesystem::create_directories(path.parent_path());
  OutputFile file(path);
  file.write(std::as_bytes(std::span(text.data(), text.size())));
  file.commit();
}

}  // namespace

void write_carried_files(const std::filesystem::path& directory) {
  const auto files = std::to_array<Carried>({
      {"models.txt", kModelsText},
      {"python/sitecustomize.py", kMeasureSite},
      {"python/snug_measure/__init__.py", kMeasurePackage},
      {"python/snug_measure/device.py", kMeasureDevice},
      {"python/snug_measure/values.py", kMeasureValues},
      {"python/snug_measure/phases.py", kMeasurePhases},
      {"python/snug_measure/processes.py", kMeasureProcesses},
      {"python/snug_measure/weights.py", kMeasureWeights},
      {"python/snug_measure/synthetic.py", kMeasureSynthetic},
      {"python/snug_measure/changes.py", kMeasureChanges},
      {"python/flash/flash_attn/__init__.py", kFlashPackage},
      {"python/flash/flash_attn/bert_padding.py", kFlashPadding},
      {"python/flash/flash_attn-2.8.3.dist-info/METADATA", kFlashMetadata},
      {"python/flash/flash_attn-2.8.3.dist-info/top_level.txt", kFlashTopLevel},
      {"lib/libsnug_null_device.so",
       {snug_null_device_begin, static_cast<size_t>(snug_null_device_end - snug_null_device_begin)}},
  });
  for (const Carried& file : files) write(directory / file.path, file.text);
  for (const char* name : {"libcuda.so.1", "libcuda.so", "libnvidia-ml.so.1"})
    std::filesystem::create_symlink("libsnug_null_device.so", directory / "lib" / name);
  std::filesystem::create_directories(directory / "results");
}

}  // namespace snug

#pragma once
// Pages as a browser shows them.

#include <filesystem>
#include <string>

#include "cli/support_process.h"

namespace snug::cli_tests {

inline constexpr const char* kBrowser = "/usr/bin/chromium";

inline bool has_browser() { return std::filesystem::exists(kBrowser); }

// The document after its scripts ran (output), with what they complained of (error: lines with CONSOLE). The browser keeps
// its files beside the page.
inline ProcessResult show_page(const std::filesystem::path& page, const std::string& fragment = "") {
  ProcessOptions options;
  options.program = kBrowser;
  return run_program({"--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0",
                      "--user-data-dir=" + (page.parent_path() / "browser").string(), "--window-size=1280,900",
                      "--virtual-time-budget=5000", "--dump-dom", "file://" + page.string() + fragment},
                     options);
}

}  // namespace snug::cli_tests

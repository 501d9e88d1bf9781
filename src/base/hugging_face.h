#pragma once
// Where Hugging Face's tools keep on this machine what they have downloaded, and what they call it. snug reads there and
// downloads nothing.

#include <filesystem>
#include <string>
#include <string_view>

namespace snug {

// The value of an environment variable; empty if it is not set.
std::string environment(const char* name);

// HF_HOME, else huggingface below XDG_CACHE_HOME or ~/.cache.
std::filesystem::path hugging_face_home();

// "owner/name" or "name", as the Hub allows it: a name that can be no path out of a cache.
bool is_repository(std::string_view name);

}  // namespace snug

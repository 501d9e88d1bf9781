#include "formats/model_tensors.h"

#include "model/parameters.h"

namespace snug {

const TensorEntry& find_tensor(const ModelSpec& model, const TensorSource& source, const std::string& name) {
  if (const TensorEntry* entry = source.find(name)) return *entry;
  for (const auto& [ours, theirs] : name_aliases(model))
    if (name.starts_with(ours))
      if (const TensorEntry* entry = source.find(theirs + name.substr(ours.size()))) return *entry;
  return source.at(name);
}

}  // namespace snug

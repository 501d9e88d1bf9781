#pragma once
// The chat template of a dataset: the one that the request names, or the model's; where it is found, and how a row's
// conversation is handed to it.

#include "chat/checkpoint_template.h"
#include "data/dataset.h"

namespace snug {

// Reads and parses the template; the renderer may be called by several threads. Throws Error if there is none, or if it
// cannot be read.
ChatRenderer make_template_renderer(const DatasetRequest& request, const Tokenizer& tokenizer);

// The template for conversations with or without tools. Throws Error as above.
chat::TemplateSource find_chat_template(const DatasetRequest& request, bool with_tools);

}  // namespace snug

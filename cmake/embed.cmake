# snug_embed(ROOM FILE SYMBOL): the text of src/ROOM/FILE as `extern const std::string_view SYMBOL` in namespace snug, so that the
# program carries its data with it. A changed file is read anew by the next build.
function(snug_embed room file symbol)
  set(path ${PROJECT_SOURCE_DIR}/src/${room}/${file})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  file(READ ${path} text)
  set(source ${PROJECT_BINARY_DIR}/embedded/${file}.cpp)
  file(GENERATE OUTPUT ${source} CONTENT "#include <string_view>

namespace snug {
extern const std::string_view ${symbol};
constexpr std::string_view kText = R\"~~~(${text})~~~\";
const std::string_view ${symbol} = kText;
}  // namespace snug
")
  target_sources(snug_${room} PRIVATE ${source})
endfunction()

# Sources of src/kernels/cpu that are compiled once for each instruction set. Highway reads what HWY_TARGET_INCLUDE names for each: the
# source itself, or the unit that it stands in.
file(GLOB sources CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/src/kernels/cpu/*.cpp)
foreach(source IN LISTS sources)
  file(STRINGS src/${source} of_each_set LIMIT_COUNT 1 REGEX "foreach_target\\.h")
  if(of_each_set)
    set_source_files_properties(src/${source} PROPERTIES COMPILE_DEFINITIONS "HWY_TARGET_INCLUDE=\"${source}\"" SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endforeach()

# snug_vector_unit(NAME SOURCES…): these are compiled together (SNUG_UNITY), because Highway's headers are a third of the time of each. A
# source that no unit names is compiled alone.
function(snug_vector_unit name)
  if(NOT SNUG_UNITY)
    return()
  endif()
  set(text "#include \"kernels/cpu/highway_targets.h\"\n#include \"hwy/foreach_target.h\"\n")
  foreach(source IN LISTS ARGN)
    string(APPEND text "#include \"kernels/cpu/${source}.cpp\"\n")
    set_source_files_properties(src/kernels/cpu/${source}.cpp PROPERTIES HEADER_FILE_ONLY ON)
  endforeach()
  set(unit ${PROJECT_BINARY_DIR}/vector_units/${name}.cpp)
  file(CONFIGURE OUTPUT ${unit} CONTENT "${text}" @ONLY)
  set_source_files_properties(${unit} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON INCLUDE_DIRECTORIES ${PROJECT_BINARY_DIR}
    COMPILE_DEFINITIONS "HWY_TARGET_INCLUDE=\"vector_units/${name}.cpp\"")
  target_sources(snug_kernels PRIVATE ${unit})
endfunction()

snug_vector_unit(norms norm layer_norm gradient_norm softmax_rows)
snug_vector_unit(optimizers adamw lion sgd adafactor)
snug_vector_unit(attention attention attention_backward attention_panel)
snug_vector_unit(rows activation elementwise rope embedding columns routed_rows)
snug_vector_unit(random dropout noise)
snug_vector_unit(products dot_product thin_product tiles pieces)
snug_vector_unit(weights dora cached_attention)

#include "weights/formats/byte_codes.h"
#include "weights/formats/fp4.h"
#include "weights/formats/ggml.h"
#include "weights/formats/packed_int.h"
#include "weights/formats/plain.h"
#include "weights/formats/word_columns.h"

namespace sluice {

std::span<const Format* const> formats() {
  static constexpr const Format* table[] = {&fp8_format,          &int8_format,  &modelopt_nvfp4_format,
                                            &packed_nvfp4_format, &mxfp4_format, &packed_mxfp4_format,
                                            &packed_int_format,   &gptq_format,  &awq_format,
                                            &ggml_format,         &plain_format};
  return table;
}

}  // namespace sluice

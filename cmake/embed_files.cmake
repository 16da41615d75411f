# cmake -D PAGE=FOLDER -D OPENAPI=FILE -D OUTPUT=FILE.cpp -P: writes the functions of server/embedded.h. The style sheets
# and scripts that index.html of PAGE links to are put in their places, and the policy allows them by their hashes.
cmake_policy(VERSION 3.25)

# base64_of_hex(VARIABLE HEX): Content-Security-Policy wants hashes in base64.
function(base64_of_hex variable hex)
  string(LENGTH ${hex} digits)
  math(EXPR missing "(6 - ${digits} % 6) % 6")
  string(REPEAT "0" ${missing} zeros)
  string(REGEX MATCHALL "......" groups "${hex}${zeros}")
  set(alphabet "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
  set(text "")
  foreach(group IN LISTS groups)
    foreach(shift 18 12 6 0)
      math(EXPR index "(0x${group} >> ${shift}) & 63")
      string(SUBSTRING ${alphabet} ${index} 1 letter)
      string(APPEND text ${letter})
    endforeach()
  endforeach()
  # Each missing byte leaves one sign over.
  math(EXPR padding "${missing} / 2")
  string(LENGTH ${text} length)
  math(EXPR length "${length} - ${padding}")
  string(SUBSTRING ${text} 0 ${length} text)
  string(REPEAT "=" ${padding} signs)
  set(${variable} "${text}${signs}" PARENT_SCOPE)
endfunction()

# put_inside(TAG LINK FILE): the file's text in place of the link to it, its hash to the list sources_of_TAG.
function(put_inside tag link file)
  file(READ ${PAGE}/${file} text)
  string(FIND "${text}" "</${tag}" end)
  if(NOT end EQUAL -1)
    message(FATAL_ERROR "${PAGE}/${file}: '</${tag}' would end the element that the file is put in")
  endif()
  string(SHA256 digest "${text}")
  base64_of_hex(digest ${digest})
  string(REPLACE "${link}" "<${tag}>${text}</${tag}>" page "${page}")
  set(page "${page}" PARENT_SCOPE)
  set(sources_of_${tag} "${sources_of_${tag}} 'sha256-${digest}'" PARENT_SCOPE)
endfunction()

# add_function(NAME TEXT): a function that returns the text.
function(add_function name text)
  string(HEX "${text}" bytes)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
  string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "  \\1\n" bytes "${bytes}")
  string(APPEND code "
static constexpr unsigned char ${name}_bytes[] = {
${bytes}};
std::string_view ${name}() {
  return {reinterpret_cast<const char*>(${name}_bytes), sizeof ${name}_bytes};
}
")
  set(code "${code}" PARENT_SCOPE)
endfunction()

file(READ ${PAGE}/index.html page)
string(REGEX MATCHALL "<link rel=\"stylesheet\" href=\"[a-z_]+\\.css\">|<script src=\"[a-z_]+\\.js\"></script>" links "${page}")
foreach(link IN LISTS links)
  string(REGEX MATCH "[a-z_]+\\.(css|js)" file ${link})
  if(CMAKE_MATCH_1 STREQUAL css)
    put_inside(style ${link} ${file})
  else()
    put_inside(script ${link} ${file})
  endif()
endforeach()
file(READ ${OPENAPI} openapi)

set(code "#include \"server/embedded.h\"\n\nnamespace sluice {\n")
add_function(page_html "${page}")
add_function(page_content_security_policy "default-src 'none'; style-src${sources_of_style}; script-src${sources_of_script}; \
img-src data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
require-trusted-types-for 'script'")
add_function(openapi_json "${openapi}")
file(WRITE ${OUTPUT} "${code}\n}  // namespace sluice\n")

# Boost.Asio and Beast, compiled once (src/server/http_boost.cpp) for all who include their headers.
find_package(Boost 1.81 REQUIRED)
find_package(OpenSSL REQUIRED)
add_library(asio_beast INTERFACE)
target_compile_definitions(asio_beast INTERFACE
  BOOST_ASIO_SEPARATE_COMPILATION BOOST_ASIO_NO_DEPRECATED BOOST_BEAST_SEPARATE_COMPILATION)
target_link_libraries(asio_beast INTERFACE Boost::headers OpenSSL::SSL)

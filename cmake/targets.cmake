# How our own targets are made: sluice_library, sluice_test. Warnings are errors here and nowhere else.
include(CheckIPOSupported)
check_ipo_supported(RESULT SLUICE_LTO LANGUAGES CXX)

add_library(sluice_options INTERFACE)
target_include_directories(sluice_options INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_compile_options(sluice_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wno-missing-field-initializers -Wnon-virtual-dtor -Woverloaded-virtual -Werror
  # False ones about optionals since g++ 13 (GCC bug 80635).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety -Wthread-safety-beta>)
if(SLUICE_SANITIZE)
  target_compile_options(sluice_options INTERFACE -fsanitize=${SLUICE_SANITIZE} -fno-sanitize-recover=all
    -fno-omit-frame-pointer -g1 -Og)
  target_link_options(sluice_options INTERFACE -fsanitize=${SLUICE_SANITIZE})
endif()
if(SLUICE_FUZZ)
  target_compile_options(sluice_options INTERFACE -fsanitize=fuzzer-no-link)  # coverage of our code for libFuzzer
endif()

# sluice_library(name SOURCES … LINKS …): the static library of one folder, with the exact list of what it links.
function(sluice_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINKS;PRIVATE_LINKS" ${ARGN})
  add_library(sluice_${name} STATIC ${arg_SOURCES})
  target_link_libraries(sluice_${name} PUBLIC sluice_options ${arg_LINKS} PRIVATE ${arg_PRIVATE_LINKS})
  if(SLUICE_LTO AND CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT SLUICE_SANITIZE)
    set_target_properties(sluice_${name} PROPERTIES INTERPROCEDURAL_OPTIMIZATION ON)
    target_compile_options(sluice_${name} PRIVATE -ffat-lto-objects)  # so that tests link in no time
  endif()
endfunction()

# sluice_test(name LINKS …): the unit tests of name.cpp, in name_test.cpp beside it.
function(sluice_test name)
  if(NOT SLUICE_TESTS)
    return()
  endif()
  cmake_parse_arguments(arg "" "" "LINKS" ${ARGN})
  add_executable(${name}_test ${name}_test.cpp)
  target_link_libraries(${name}_test PRIVATE ${arg_LINKS} GTest::gmock GTest::gtest_main)
  # g++ 12 sees overlapping copies where a literal is appended to a string (GCC PR 105651).
  target_compile_options(${name}_test PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
  target_link_options(${name}_test PRIVATE -fno-lto)
  add_test(NAME ${name} COMMAND ${name}_test)
  set_tests_properties(${name} PROPERTIES TIMEOUT 120)
endfunction()

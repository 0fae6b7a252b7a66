// The model that the tests of this folder use: a GGUF file named by the environment variable
// SLUICE_MODEL. Thread: any.
#pragma once

#include <cstdlib>
#include <string>

namespace sluice {

// Empty: none, and the test is skipped.
inline std::string test_model_path() {
  const char* const path = std::getenv("SLUICE_MODEL");
  return path != nullptr ? path : "";
}

}  // namespace sluice

// Editing a key file (`sluice key`): each change is a new file of mode 0600 renamed over the old
// one, so that a reader sees all of it or nothing of it; changes by several processes at once wait
// for each other. Comments and the other lines stay as they are.
// Thread: any.
#pragma once

#include <string>
#include <vector>

#include "access/keys.h"
#include "base/error.h"

namespace sluice {

// Makes the file if there is none. Returns the new key, which is not kept anywhere. Errors:
// kInvalidArgument (the name is taken or not a name, a limit out of range, the file is not a key
// file), kUnavailable (the file can't be written).
[[nodiscard]] Result<std::string> add_key(const std::string& path, const std::string& name,
                                          const KeyLimits& limits = {});

// Errors as add_key's, and kNotFound.
[[nodiscard]] Result<void> revoke_key(const std::string& path, const std::string& name);

[[nodiscard]] Result<std::vector<ApiKey>> list_keys(const std::string& path);

}  // namespace sluice

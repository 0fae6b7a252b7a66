#include "gateway/openai_fields.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

#include "base/concat.h"

namespace sluice {
namespace {

namespace json = boost::json;

constexpr std::string_view kWrongType = "invalid_type";

std::string_view view(const json::string& text) noexcept { return {text.data(), text.size()}; }
std::string_view view(json::string_view text) noexcept { return {text.data(), text.size()}; }

// Nothing if it is no whole number of 64 bits. 12.0 is one.
std::optional<std::int64_t> whole_number(const json::value& value) noexcept {
  if (const auto* number = value.if_int64()) return *number;
  const auto* number = value.if_double();
  constexpr double kBeyond = 9.2e18;
  if (number == nullptr || std::trunc(*number) != *number || std::fabs(*number) > kBeyond) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(*number);
}

// Nothing if it is no number, or none that a float holds.
std::optional<float> finite_number(const json::value& value) noexcept {
  float number = 0;
  if (const auto* whole = value.if_int64()) {
    number = static_cast<float>(*whole);
  } else if (const auto* large = value.if_uint64()) {
    number = static_cast<float>(*large);
  } else if (const auto* real = value.if_double()) {
    if (std::fabs(*real) > std::numeric_limits<float>::max()) return std::nullopt;
    number = static_cast<float>(*real);
  } else {
    return std::nullopt;
  }
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

std::optional<std::int32_t> token_id(std::string_view key) noexcept {
  std::int32_t id = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
  if (error != std::errc() || end != key.data() + key.size()) return std::nullopt;
  return id;
}

}  // namespace

Fields::Fields(const json::object& object, std::string path, std::optional<ApiError>& fault)
    : object_(&object), path_(std::move(path)), fault_(&fault), asked_(object.size()) {}

const json::value* Fields::find(std::string_view name) {
  const auto* found = object_->find(name);
  if (found == object_->end()) return nullptr;
  asked_[static_cast<std::size_t>(found - object_->begin())] = true;
  return found->value().is_null() ? nullptr : &found->value();
}

FieldKind Fields::kind(std::string_view name) {
  const json::value* value = find(name);
  if (value == nullptr) return FieldKind::kAbsent;
  if (value->is_string()) return FieldKind::kString;
  if (value->is_object()) return FieldKind::kObject;
  const auto* list = value->if_array();
  if (list == nullptr) return FieldKind::kOther;
  const bool tokens = !list->empty() && (list->front().is_number() || list->front().is_array());
  return tokens ? FieldKind::kTokens : FieldKind::kList;
}

bool Fields::read(std::string_view name, bool& to) {
  const json::value* value = find(name);
  if (value == nullptr) return false;
  const bool* found = value->if_bool();
  if (found == nullptr) {
    fail(name, "must be true or false", kWrongType);
    return false;
  }
  to = *found;
  return true;
}

bool Fields::read(std::string_view name, std::int32_t& to) {
  const json::value* value = find(name);
  if (value == nullptr) return false;
  const auto number = whole_number(*value);
  if (!number) {
    fail(name, "must be a whole number", kWrongType);
    return false;
  }
  if (*number < std::numeric_limits<std::int32_t>::min() ||
      *number > std::numeric_limits<std::int32_t>::max()) {
    fail(name, "must fit into 32 bits");
    return false;
  }
  to = static_cast<std::int32_t>(*number);
  return true;
}

bool Fields::read(std::string_view name, std::uint64_t& to) {
  const json::value* value = find(name);
  if (value == nullptr) return false;
  if (const auto* large = value->if_uint64()) {
    to = *large;
    return true;
  }
  const auto number = whole_number(*value);
  if (!number) {
    fail(name, "must be a whole number of 64 bits", kWrongType);
    return false;
  }
  to = static_cast<std::uint64_t>(*number);
  return true;
}

bool Fields::read(std::string_view name, float& to) {
  const json::value* value = find(name);
  if (value == nullptr) return false;
  const auto number = finite_number(*value);
  if (!number) {
    fail(name, "must be a finite number", kWrongType);
    return false;
  }
  to = *number;
  return true;
}

bool Fields::read(std::string_view name, std::string& to) {
  const json::value* value = find(name);
  if (value == nullptr) return false;
  const auto* found = value->if_string();
  if (found == nullptr) {
    fail(name, "must be a string", kWrongType);
    return false;
  }
  to = view(*found);
  return true;
}

std::string_view Fields::text(std::string_view name) {
  const json::value* value = find(name);
  if (value == nullptr) return {};
  const auto* found = value->if_string();
  if (found == nullptr) {
    fail(name, "must be a string", kWrongType);
    return {};
  }
  return view(*found);
}

bool Fields::read(std::string_view name, std::vector<std::string>& to) {
  const json::value* value = find(name);
  if (value == nullptr) return false;
  const auto* list = value->if_array();
  if (list == nullptr) {
    fail(name, "must be a list of strings", kWrongType);
    return false;
  }
  to.clear();
  to.reserve(list->size());
  for (std::size_t i = 0; i < list->size(); ++i) {
    const auto* found = (*list)[i].if_string();
    if (found == nullptr) {
      fail(concat(name, "[", i, "]"), "must be a string", kWrongType);
      return false;
    }
    to.emplace_back(view(*found));
  }
  return true;
}

bool Fields::read(std::string_view name, std::vector<std::pair<std::int32_t, float>>& to) {
  const json::value* value = find(name);
  if (value == nullptr) return false;
  const auto* entries = value->if_object();
  if (entries == nullptr) {
    fail(name, "must be an object of token ids and numbers", kWrongType);
    return false;
  }
  to.reserve(entries->size());
  for (const auto& entry : *entries) {
    const auto id = token_id(view(entry.key()));
    const auto number = finite_number(entry.value());
    if (!id || !number) {
      fail(name, "must have token ids as its keys and finite numbers as its values");
      return false;
    }
    to.emplace_back(*id, *number);
  }
  return true;
}

bool Fields::read_one_or_more(std::string_view name, std::vector<std::string>& to) {
  switch (kind(name)) {
    case FieldKind::kAbsent:
      return false;
    case FieldKind::kString:
      to.assign(1, std::string(text(name)));
      return true;
    case FieldKind::kList:
      return read(name, to);
    case FieldKind::kObject:
    case FieldKind::kTokens:
    case FieldKind::kOther:
      break;
  }
  fail(name, "must be a string or a list of strings", kWrongType);
  return false;
}

std::optional<Fields> Fields::object(std::string_view name) {
  const json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  const auto* found = value->if_object();
  if (found == nullptr) {
    fail(name, "must be an object", kWrongType);
    return std::nullopt;
  }
  return Fields(*found, path_of(name), *fault_);
}

std::vector<Fields> Fields::objects(std::string_view name) {
  std::vector<Fields> found;
  const json::value* value = find(name);
  if (value == nullptr) return found;
  const auto* list = value->if_array();
  if (list == nullptr) {
    fail(name, "must be a list", kWrongType);
    return found;
  }
  found.reserve(list->size());
  for (std::size_t i = 0; i < list->size(); ++i) {
    const std::string element = concat(name, "[", i, "]");
    const auto* object = (*list)[i].if_object();
    if (object == nullptr) {
      fail(element, "must be an object", kWrongType);
      return {};
    }
    found.emplace_back(*object, path_of(element), *fault_);
  }
  return found;
}

bool Fields::has_entries(std::string_view name) {
  if (!has(name)) return false;
  const json::array* const list = find(name)->if_array();
  return list == nullptr || !list->empty();
}

std::string Fields::json(std::string_view name) {
  const json::value* value = find(name);
  return value == nullptr ? std::string() : json::serialize(*value);
}

void Fields::accept(std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) static_cast<void>(find(name));
}

void Fields::fail(std::string_view name, std::string_view must, std::string_view code) {
  if (*fault_) return;
  std::string path = path_of(name);
  std::string message = concat(path, " ", must);
  *fault_ = ApiError{Error{Code::kInvalidArgument, std::move(message)}, std::move(path),
                     std::string(code)};
}

void Fields::fail_unsupported(std::string_view name, std::string_view why) {
  fail(name, why, "unsupported_parameter");
}

std::vector<std::string_view> Fields::unasked() const {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < asked_.size(); ++i) {
    if (!asked_[i]) names.push_back(view((object_->begin() + i)->key()));
  }
  return names;
}

std::string Fields::path_of(std::string_view name) const {
  return path_.empty() ? std::string(name) : concat(path_, ".", name);
}

}  // namespace sluice

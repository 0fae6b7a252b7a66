// Fields: typed access to one JSON object of a request's body. null is the same as absent, and
// leaves what is read into as it is. The first fault found is kept for the whole body, and names
// the field's path ("messages[2].content"); reading goes on after it, harmlessly. Keeps account of
// which fields were asked for, so that what nobody knows can be counted. Borrows the body. Thread:
// any one at a time.
#pragma once

#include <boost/json/fwd.hpp>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gateway/openai_error.h"

namespace sluice {

enum class FieldKind {
  kAbsent,
  kString,
  kObject,
  kList,
  kTokens,  // a list that begins with a number or a list
  kOther
};

class Fields {
 public:
  // `fault` outlives this and every Fields made from it.
  Fields(const boost::json::object& object, std::string path, std::optional<ApiError>& fault);

  [[nodiscard]] FieldKind kind(std::string_view name);
  [[nodiscard]] bool has(std::string_view name) { return kind(name) != FieldKind::kAbsent; }
  // Neither absent nor an empty list.
  [[nodiscard]] bool has_entries(std::string_view name);

  // Whether there was something to read; another type than `to` needs is a fault.
  bool read(std::string_view name, bool& to);
  bool read(std::string_view name, std::int32_t& to);
  bool read(std::string_view name, std::uint64_t& to);  // a negative one wraps around
  bool read(std::string_view name, float& to);
  bool read(std::string_view name, std::string& to);
  bool read(std::string_view name, std::vector<std::string>& to);
  bool read(std::string_view name, std::vector<std::pair<std::int32_t, float>>& to);  // {"12": 0.5}
  template <typename T>
  bool read(std::string_view name, std::optional<T>& to) {
    T value{};
    if (!read(name, value)) return false;
    to = std::move(value);
    return true;
  }
  // A string's text without a copy; "" if there is none.
  [[nodiscard]] std::string_view text(std::string_view name);
  // A string, or a list of strings.
  bool read_one_or_more(std::string_view name, std::vector<std::string>& to);
  [[nodiscard]] std::optional<Fields> object(std::string_view name);
  // The objects of a list; nothing if there is no list.
  [[nodiscard]] std::vector<Fields> objects(std::string_view name);
  // The field as JSON; "" if there is none.
  [[nodiscard]] std::string json(std::string_view name);

  // Fields that are known and need nothing done.
  void accept(std::initializer_list<std::string_view> names);

  void fail(std::string_view name, std::string_view must, std::string_view code = "invalid_value");
  void fail_missing(std::string_view name) {
    fail(name, "is required", "missing_required_parameter");
  }
  void fail_unsupported(std::string_view name, std::string_view why = "is not served");
  [[nodiscard]] bool failed() const noexcept { return fault_->has_value(); }

  // The fields that nobody asked for.
  [[nodiscard]] std::vector<std::string_view> unasked() const;

 private:
  [[nodiscard]] const boost::json::value* find(std::string_view name);
  [[nodiscard]] std::string path_of(std::string_view name) const;

  const boost::json::object* object_;
  std::string path_;
  std::optional<ApiError>* fault_;
  std::vector<bool> asked_;
};

}  // namespace sluice

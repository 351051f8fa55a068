// Text hash: lets a table with keys of std::string find a std::string_view without a copy.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

namespace shredway {

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

}  // namespace shredway

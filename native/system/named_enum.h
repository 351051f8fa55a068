// Named enums: an enum, the number of its values and their names, all from one list.
//
//   #define SHREDWAY_COLOURS(X)  X(red, "further columns are free")  X(green, "…")
//   SHREDWAY_NAMED_ENUM(Colour, uint8_t, kColourCount, colour_name, SHREDWAY_COLOURS)
//
// The names equal the enum's values.
#pragma once

#include <cstddef>
#include <cstdint>

#define SHREDWAY_ENUM_VALUE(name, ...) name,
#define SHREDWAY_ENUM_ONE(name, ...) +1
#define SHREDWAY_ENUM_TEXT(name, ...) #name,

#define SHREDWAY_NAMED_ENUM(Type, Number, count, name_of, LIST)       \
  enum class Type : Number { LIST(SHREDWAY_ENUM_VALUE) };             \
  inline constexpr size_t count = 0 LIST(SHREDWAY_ENUM_ONE);          \
  inline const char* name_of(Type value) {                            \
    constexpr const char* kNames[count] = {LIST(SHREDWAY_ENUM_TEXT)}; \
    return kNames[static_cast<size_t>(value)];                        \
  }

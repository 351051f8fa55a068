{
  "variables": {
    "native_tests%": 0,
    "native_bench%": 0
  },
  "target_defaults": {
    "include_dirs": ["native"],
    "cflags": ["-O3", "-Wno-restrict", "-Wno-stringop-overflow", "-Wno-stringop-overread", "-Wno-subobject-linkage"],
    "cflags_cc!": ["-std=gnu++17", "-fno-exceptions"],
    "cflags_cc": ["-std=c++20", "-fno-exceptions", "-fno-rtti", "-fvisibility=hidden"],
    "libraries": ["-ldl", "-pthread"]
  },
  "targets": [
    {
      "target_name": "shredway_core",
      "type": "static_library",
      "sources": ["<!@(node native/units.mjs core build/units/core)"]
    },
    {
      "target_name": "shredway",
      "sources": ["<!@(node native/units.mjs addon build/units/addon)"],
      "dependencies": ["shredway_core", "<!(node -p \"require('node-addon-api').targets\"):node_addon_api"],
      "defines": [
        "NAPI_VERSION=9",
        "NODE_ADDON_API_DISABLE_DEPRECATED",
        "NODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS"
      ]
    }
  ],
  "conditions": [
    ["native_tests==1", {
      "targets": [
        {
          "target_name": "shredway_native_test",
          "type": "executable",
          "dependencies": ["shredway_core"],
          "cflags!": ["-O3"],
          "cflags_cc": ["-O1"],
          "include_dirs": ["native/test"],
          "sources": ["<!@(node native/units.mjs test build/units/test)"]
        }
      ]
    }],
    ["native_bench==1", {
      "targets": [
        {
          "target_name": "shredway_bench",
          "type": "executable",
          "dependencies": ["shredway_core"],
          "sources": ["<!@(node native/units.mjs bench build/units/bench)"]
        }
      ]
    }]
  ]
}

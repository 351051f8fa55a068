{
  "variables": {
    "native_tests%": 0,
    "native_bench%": 0,
    "core_sources": [
      "native/system/base58.cc",
      "native/system/base64.cc",
      "native/system/confinement.cc",
      "native/system/kernel_clock.cc",
      "native/system/memory_lock.cc",
      "native/system/privileges.cc",
      "native/system/service_notify.cc",
      "native/system/thread_cpus.cc",
      "native/crypto/curve25519.cc",
      "native/crypto/ed25519.cc",
      "native/crypto/prepared_key.cc",
      "native/crypto/sha256.cc",
      "native/crypto/sip_hash.cc",
      "native/shred/leader_auth.cc",
      "native/shred/leader_table.cc",
      "native/shred/merkle.cc",
      "native/shred/reed_solomon.cc",
      "native/shred/shredder.cc",
      "native/shred/verdict.cc",
      "native/shred/wire.cc",
      "native/net/address.cc",
      "native/net/challenge_echo.cc",
      "native/net/interface_view.cc",
      "native/net/memory_network.cc",
      "native/net/multicast_socket.cc",
      "native/net/paced_sender.cc",
      "native/net/port_split.cc",
      "native/net/reachability_probe.cc",
      "native/net/receive_filter.cc",
      "native/net/socket_calls.cc",
      "native/net/steering.cc",
      "native/net/udp_batch.cc",
      "native/net/udp_socket.cc",
      "native/net/waiter.cc",
      "native/clone/clone_batch.cc",
      "native/clone/clone_interface.cc",
      "native/clone/clone_lists.cc",
      "native/clone/clone_plane.cc",
      "native/clone/clone_program.cc",
      "native/clone/device_features.cc",
      "native/clone/netlink_messages.cc",
      "native/clone/netlink_socket.cc",
      "native/clone/next_hop_view.cc",
      "native/clone/next_hop_watch.cc",
      "native/clone/next_hops.cc",
      "native/clone/output_rules.cc",
      "native/xdp/xdp_batch.cc",
      "native/xdp/xdp_frame.cc",
      "native/xdp/xdp_plane.cc",
      "native/xdp/xdp_program.cc",
      "native/xdp/xdp_sender.cc",
      "native/xdp/xdp_socket.cc",
      "native/transaction/co_signing.cc",
      "native/transaction/facts.cc",
      "native/transaction/inspector.cc",
      "native/transaction/instructions.cc",
      "native/transaction/key_sets.cc",
      "native/transaction/refusal.cc",
      "native/transaction/sanitize.cc",
      "native/transaction/vote.cc",
      "native/transaction/wire.cc",
      "native/verify/signature_verifier.cc",
      "native/submission/fast_path.cc",
      "native/submission/fast_path_send.cc",
      "native/submission/fast_path_thread.cc",
      "native/submission/recent_texts.cc",
      "native/submission/request_pattern.cc",
      "native/deshred/deshredder.cc",
      "native/deshred/entry_stream.cc",
      "native/deshred/fec_set.cc",
      "native/deshred/slot_restarts.cc",
      "native/stream/filter_index.cc",
      "native/stream/lookup_resolver.cc",
      "native/stream/lookup_tables.cc",
      "native/stream/stream_history.cc",
      "native/stream/stream_replays.cc",
      "native/stream/stream_ring.cc",
      "native/stream/streams.cc",
      "native/stream/tier_stream.cc",
      "native/relay/arrivals.cc",
      "native/relay/counters.cc",
      "native/relay/deshred_thread.cc",
      "native/relay/fanout_table.cc",
      "native/relay/key_preparer.cc",
      "native/relay/landings.cc",
      "native/relay/lead_times.cc",
      "native/relay/recent_shreds.cc",
      "native/relay/pending_shreds.cc",
      "native/relay/relay.cc",
      "native/relay/slot_window.cc",
      "native/relay/source_table.cc",
      "native/relay/tables.cc",
      "native/relay/target_lists.cc",
      "native/relay/sender_threads.cc",
      "native/relay/transmit.cc",
      "native/relay/worker.cc",
      "native/relay/worker_checks.cc",
      "native/relay/worker_housekeeping.cc",
      "native/relay/worker_lifecycle.cc",
      "native/relay/worker_recovered.cc"
    ],
    "addon_sources": [
      "native/addon/addon.cc",
      "native/addon/arguments.cc",
      "native/addon/fast_path_handle.cc",
      "native/addon/notifier.cc",
      "native/addon/probe_handle.cc",
      "native/addon/relay_handle.cc",
      "native/addon/relay_handle_simulated.cc",
      "native/addon/relay_handle_streams.cc",
      "native/addon/traffic_handles.cc",
      "native/addon/transaction_handles.cc"
    ]
  },
  "target_defaults": {
    "include_dirs": ["native"],
    "cflags": ["-O3", "-Wno-restrict", "-Wno-stringop-overflow", "-Wno-stringop-overread"],
    "cflags_cc!": ["-std=gnu++17", "-fno-exceptions"],
    "cflags_cc": ["-std=c++20", "-fno-exceptions", "-fno-rtti", "-fvisibility=hidden"],
    "libraries": ["-ldl", "-pthread"]
  },
  "targets": [
    {
      "target_name": "shredway_core",
      "type": "static_library",
      "sources": ["<@(core_sources)"]
    },
    {
      "target_name": "shredway",
      "sources": ["<@(addon_sources)"],
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
          "sources": ["<!@(node native/test-units.mjs build/native-tests)"]
        }
      ]
    }],
    ["native_bench==1", {
      "targets": [
        {
          "target_name": "shredway_bench",
          "type": "executable",
          "dependencies": ["shredway_core"],
          "sources": ["<!@(ls bench/native/*.cc)"]
        }
      ]
    }]
  ]
}

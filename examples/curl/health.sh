#!/bin/sh
# Health for a keep-alive: by GET, by JSON-RPC, and both over one connection.
#
#   sh health.sh GATEWAY
#
# GATEWAY is the URL of the first screen. A health call needs no key and has no rate limit.
set -eu
gateway=$1
base=${gateway%%/relay*}

curl -sS --fail "$base/gethealth" && echo
curl -sS --fail "$gateway" -d '{"jsonrpc":"2.0","id":1,"method":"getHealth"}' && echo

# The server closes a connection that is idle for ten seconds: call every five to eight seconds.
curl -sS --fail -o /dev/null -o /dev/null -w 'new connections: %{num_connects}\n' \
  "$base/gethealth" "$base/gethealth"

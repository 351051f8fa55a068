#!/bin/sh
# Health, as a keep-alive asks for it: by GET, by JSON-RPC, and both over one connection.
#
#   sh health.sh GATEWAY
#
# GATEWAY is the URL of the first screen. Getting health needs no key and counts against no limit.
set -eu
gateway=$1
base=${gateway%%/relay*}

curl -sS --fail "$base/gethealth" && echo
curl -sS --fail "$gateway" -d '{"jsonrpc":"2.0","id":1,"method":"getHealth"}' && echo

# The server closes a connection that is silent for ten seconds: ask every five to eight.
curl -sS --fail -o /dev/null -o /dev/null -w 'new connections: %{num_connects}\n' \
  "$base/gethealth" "$base/gethealth"

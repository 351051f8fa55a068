#!/bin/sh
# A tip for shreds: paid by any provider (here: the chain's own node), registered by a copy, counted for the tier.
#
#   sh register.sh GATEWAY [CHAIN]
#
# GATEWAY is the URL of the first screen, with its key; CHAIN gives the payer money and lands the tip.
set -eu
gateway=$1
chain=${2:-http://127.0.0.1:8899}
here=$(dirname "$0")
base=${gateway%%/relay*}
query=${gateway#*\?}

call() {
  curl -sS --fail-with-body "$1" -H 'Content-Type: application/json' \
    -d "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"$2\",\"params\":$3}"
}

tip_account=$(call "$gateway" getShredTipAccounts '[]' | sed -n 's/.*"result":\["\([^"]*\)".*/\1/p')
transaction=$(node "$here/sign.mjs" "$chain" "$tip_account" 200000000)
call "$chain" sendTransaction "[\"$transaction\",{\"encoding\":\"base64\"}]" >/dev/null
slot=$(call "$chain" getSlot '[]' | sed -n 's/.*"result":\([0-9]*\).*/\1/p')

# verbose=true also reports rejected entries.
curl -sS --fail-with-body "$base/shred-pay?$query&verbose=true" -H 'Content-Type: application/json' \
  -d "[{\"transaction\":\"$transaction\",\"slot\":$slot}]" && echo

# The tip counts after it has landed.
until call "$gateway" getRegistrations '[{"limit":1}]' | grep -q '"state":"counted"'; do sleep 0.2; done
call "$gateway" getTier '[]' && echo

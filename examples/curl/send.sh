#!/bin/sh
# Sends a signed transaction with curl, and queries its status.
#
#   sh send.sh GATEWAY [CHAIN]
#
# GATEWAY is the URL of the first screen, with its key; CHAIN gives the payer money. sign.mjs creates the
# transaction; curl does the rest.
set -eu
gateway=$1
chain=${2:-http://127.0.0.1:8899}
here=$(dirname "$0")

call() {
  curl -sS --fail-with-body "$gateway" -H 'Content-Type: application/json' \
    -d "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"$1\",\"params\":$2}"
}
# The first string of a JSON array, or of a member of that name; base58 and base64 need no unescaping.
first_of_result() { sed -n 's/.*"result":\["\([^"]*\)".*/\1/p'; }
text_of() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; }

tip_account=$(call getTipAccounts '[]' | first_of_result)
transaction=$(node "$here/sign.mjs" "$chain" "$tip_account" 1000000)
answer=$(call sendTransaction "[\"$transaction\",{\"encoding\":\"base64\",\"skipPreflight\":true}]")
signature=$(printf '%s' "$answer" | text_of result)
if [ -z "$signature" ]; then
  printf '%s\n' "$answer" >&2
  exit 1
fi
echo "sent $signature"

state=open
while [ "$state" = open ]; do
  sleep 0.2
  status=$(call getTransactionStatus "[\"$signature\"]")
  state=$(printf '%s' "$status" | sed 's/"events".*//' | text_of state)
done
echo "$state"
printf '%s\n' "$status"

#!/bin/sh
# Recent landed tips in lamports. Public; at most ten requests a second.
#
#   sh tip-floor.sh GATEWAY
set -eu
gateway=$1
base=${gateway%%/relay*}

curl -sS --fail "$base/tip_floor" && echo
# In SOL, in the format of block engines.
curl -sS --fail "$base/tip_floor?format=sol" && echo

#!/bin/sh
# Recent landed-tip percentiles in lamports. The endpoint is public: ten requests per second.
#
#   sh tip-floor.sh GATEWAY
set -eu
gateway=$1
base=${gateway%%/relay*}

curl -sS --fail "$base/tip_floor" && echo
# The format of block engines, in SOL.
curl -sS --fail "$base/tip_floor?format=sol" && echo

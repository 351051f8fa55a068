#!/bin/sh
# What landed tips were lately, in lamports: everybody may ask, ten times a second.
#
#   sh tip-floor.sh GATEWAY
set -eu
gateway=$1
base=${gateway%%/relay*}

curl -sS --fail "$base/tip_floor" && echo
# As block engines tell it, in SOL.
curl -sS --fail "$base/tip_floor?format=sol" && echo

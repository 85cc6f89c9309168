#!/usr/bin/env bash
# Tests the own code of tapes for VAES, also on a processor that has AES and AVX2 but no VAES: there a
# handler computes each illegal instruction by those for 128 bits.
set -euo pipefail
cd "$(dirname "$0")/.."
[ "$(uname -m)" = x86_64 ] || exit 0
mkdir -p target
cc -O1 -Wall -maes -mavx2 -shared -fPIC -o target/emulate_vaes.so tests/randomness/emulate_vaes.c
program=$(cargo test --locked --quiet --no-run -p geomdp-core --lib --message-format=json |
    sed -n 's/.*"name":"geomdp_core".*"executable":"\([^"]*\)".*/\1/p')
VAES_IS_EMULATED=1 LD_PRELOAD=$PWD/target/emulate_vaes.so "$program" draw::tape draw::cipher 2>&1 | tee target/vaes
grep -q ' 4 passed' target/vaes
grep -qw vaes /proc/cpuinfo || grep -q '^[1-9][0-9]* instructions of VAES' target/vaes

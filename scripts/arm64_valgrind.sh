#!/usr/bin/env bash
# valgrind of arm64 on an emulated processor, for scripts/arm64.sh. Its launcher would start the tool
# as a program of this machine, so the emulator starts the tool.
set -euo pipefail
tool=memcheck
for argument; do
    case $argument in --tool=*) tool=${argument#--tool=} ;; esac
done
export VALGRIND_LIB=$ARM64_ROOT/usr/libexec/valgrind VALGRIND_LAUNCHER=$ARM64_ROOT/usr/bin/valgrind
exec $EMULATOR "$VALGRIND_LIB/$tool-arm64-linux" --tool="$tool" \
    --extra-debuginfo-path="$ARM64_ROOT/usr/lib/debug" "$@"

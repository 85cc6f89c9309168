#!/usr/bin/env bash
# Checks constant time on the machine code. Each check is shown to catch a planted fault.
#   valgrind      secrets in the crate, portable and AVX2 code, debug and release; if DAY is set,
#                 release alone
#   msan          secrets in the AVX-512 code, which valgrind does not run
#   traces        instructions and addresses of a run: the same for other tapes and counts
#   wheel         secrets in the installed package, under CPython
#   instructions  of the installed package: none whose time depends on its operands
# Arguments select checks by name. scripts/arm64.sh runs the first for AArch64, on an emulated
# processor, where it covers the NEON code.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}

fail() {
    echo "$*" >&2
    exit 1
}

# Compiles rust/core/tests/constant_time.rs with a checker's marks and prints the program's path.
build() { # features profile [argument...]
    cargo test --locked --quiet --no-run -p geomdp-core --features "$1" --test constant_time \
        --profile "$2" --message-format=json "${@:3}" |
        sed -n 's/.*"name":"constant_time".*"executable":"\([^"]*\)".*/\1/p'
}

# Runs a checker on the program and on its canaries, which it must report.
secrets() { # checker...
    "$@"
    for canary in branch index early-exit; do
        status=0
        "$@" "$canary" >/dev/null 2>&1 || status=$?
        [ "$status" = 99 ] || fail "the canary '$canary' was not reported (exit $status)"
        echo "reported, as it must be: $canary"
    done
}

valgrind_() {
    for profile in $([ -n "${DAY-}" ] || echo dev) release; do
        echo "== valgrind, $profile"
        program=$(build checkmem "$profile")
        secrets "${VALGRIND:-valgrind}" --quiet --error-exitcode=99 "$program"
        if ${EMULATOR-} "$program" >/dev/null 2>&1; then fail "the check passes although nothing is checking"; fi
    done
}

msan() {
    echo "== MemorySanitizer, AVX-512"
    if ! grep -qw avx512dq /proc/cpuinfo; then
        echo "not checked: this processor has no AVX-512"
        return
    fi
    # The standard library is not instrumented, so its allocations and results are not poisoned.
    program=$(
        export RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/msan
        export RUSTFLAGS="-Zsanitizer=memory -Cllvm-args=-msan-eager-checks=0 \
            -Cunsafe-allow-abi-mismatch=sanitizer"
        build checkmsan release --target "$(rustc --print host-tuple)"
    )
    export MSAN_OPTIONS=poison_in_malloc=0:exit_code=99
    secrets "$program"
}

# Prints all instructions and addresses from the start address that the program prints.
trace() { # program argument
    start=$(valgrind --quiet --tool=none "$1" "$2" | sed 's/^0x//')
    valgrind --tool=lackey --trace-mem=yes --log-fd=9 "$1" "$2" 9>&1 >/dev/null |
        awk -v start="$start," '!on && $1 == "I" && index($2, start) {on = 1} on && !/^==/'
}

traces() {
    echo "== traces, portable and AVX2"
    program=$(build checkmem release)
    first=$(trace "$program" traceA | tee >(wc -l >target/trace-lines) | sha256sum)
    [ "$(cat target/trace-lines)" -gt 1000000 ] || fail "the trace is too short to be one"
    for letter in B C; do
        [ "$(trace "$program" trace$letter | sha256sum)" = "$first" ] || fail "the traces differ"
    done
    echo "the same for three tapes: $(cat target/trace-lines) instructions and addresses"
    first=$(trace "$program" unevenA | sha256sum)
    [ "$(trace "$program" unevenB | sha256sum)" != "$first" ] || fail "an uneven trace was not seen"
    echo "seen, as it must be: an uneven trace"
}

wheel() {
    echo "== valgrind, the installed package under CPython"
    "$python" tests/constant_time/constant_time_wheel.py
}

instructions() {
    echo "== instructions, of the installed package"
    "$python" tests/constant_time/check_instructions.py
}

mkdir -p target
for check in "${@:-valgrind msan traces wheel instructions}"; do
    for name in $check; do "${name/#valgrind/valgrind_}"; done
done

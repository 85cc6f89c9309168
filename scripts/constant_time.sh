#!/usr/bin/env bash
# Checks constant time on the machine code: by valgrind what it can run (portable and AVX2 code), by
# its instructions what it cannot (AVX-512). Each check is shown to catch a planted fault.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v valgrind >/dev/null; then
    apt-get update -qq && apt-get install -y -qq valgrind
fi
check() { valgrind --quiet --error-exitcode=99 "$@"; }

for profile in dev release; do
    program=$(cargo test --locked --quiet --no-run -p geomdp-core --features checkmem \
        --test constant_time --profile "$profile" --message-format=json |
        sed -n 's/.*"name":"constant_time".*"executable":"\([^"]*\)".*/\1/p')
    echo "== valgrind, $profile"
    check "$program"
    for canary in branch index early-exit; do
        status=0
        check "$program" "$canary" >/dev/null 2>&1 || status=$?
        if [ "$status" != 99 ]; then
            echo "the canary '$canary' was not reported (exit $status)" >&2
            exit 1
        fi
        echo "reported, as it must be: $canary"
    done
    if "$program" >/dev/null 2>&1; then
        echo "the check passes although nothing is checking" >&2
        exit 1
    fi
done

echo "== instructions, of the installed package"
python3 scripts/check_instructions.py .venv/lib/python3*/site-packages/geomdp/_core*.so

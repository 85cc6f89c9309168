#!/usr/bin/env bash
# Mutation testing of the core. With a commit, of the lines changed since, where survivors fail; else
# of all lines, where they are listed.
set -euo pipefail
cd "$(dirname "$0")/.."
export PROPTEST_DISABLE_FAILURE_PERSISTENCE=true PROPTEST_MAX_SHRINK_ITERS=0
run=(cargo mutants --package geomdp-core --output target)

mkdir -p target
if [ $# -gt 0 ]; then
    git diff "$1" >target/change.diff
    exec "${run[@]}" --in-diff target/change.diff
fi
# 2: mutants survive; 3: tests of some did not end.
"${run[@]}" || [ $? -eq 2 ] || [ $? -eq 3 ]
echo "survivors:"
cat target/mutants.out/missed.txt

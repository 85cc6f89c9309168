#!/usr/bin/env bash
# Compares the rows of docs/migration.md with the libraries themselves, each in a place of its own.
set -euo pipefail
cd "$(dirname "$0")/../.."

compare() {
    local place=.venv/bridges/$2
    if [ ! -d "$place" ]; then
        .venv/bin/python -m venv "$place.part"
        "$place.part/bin/python" -m pip install --quiet "$2" "${@:3}"
        mv "$place.part" "$place"
    fi
    (cd "$place" && PYSPARK_PYTHON=$PWD/bin/python "$PWD/bin/python" "$OLDPWD/tests/compat/bridges.py" "$1" 2> log) ||
        { tail -n 20 "$place/log"; exit 1; }
}

compare "SmartNoise SQL" smartnoise-sql==1.0.10
compare PipelineDP pipeline-dp==0.3.1
compare "OpenDP's Context for Polars" "opendp[polars]==0.16.0" pandas
# On Spark, which needs Java.
compare "Tumult Analytics" tmlt.analytics==0.21.0

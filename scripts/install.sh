#!/usr/bin/env bash
# Installs dependencies of a check, one caller at a time, since steps of the gate run in parallel:
#   program NAME [PACKAGE]  from Debian's packages, unless the program or path NAME exists
#   extras NAME...          the requirements of these extras of the package, into .venv
set -euo pipefail
cd "$(dirname "$0")/.."
exec 9>/tmp/geomdp-install
flock 9
case "$1" in
program)
    if command -v "$2" >/dev/null || test -e "$2"; then exit; fi
    apt-get update -qq && apt-get install -y -qq "${3:-$2}" >/dev/null
    ;;
extras)
    .venv/bin/python - "${@:2}" <<'PY' | .venv/bin/python -m pip install --quiet -r /dev/stdin
import sys
import tomllib

with open("pyproject.toml", "rb") as file:
    extras = tomllib.load(file)["project"]["optional-dependencies"]
print(*(line for name in sys.argv[1:] for line in extras[name]), sep="\n")
PY
    ;;
esac

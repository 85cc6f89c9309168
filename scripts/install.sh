#!/usr/bin/env bash
# Installs dependencies of a check, one caller at a time, since steps of the gate run in parallel:
#   program NAME [PACKAGE]  from Debian's packages, unless the program or path NAME exists
#   crate NAME              a program of crates.io, unless it exists
#   extras NAME...          the requirements of these extras of the package, into .venv
# Programs are outside .venv: they are installed only if CI or INSTALL is set. Otherwise one line says
# which to install.
set -euo pipefail
cd "$(dirname "$0")/.."
exec 9>/tmp/geomdp-install
flock 9
if [ "$1" != extras ]; then
    if command -v "$2" >/dev/null || test -e "$2"; then exit; fi
    if [ -z "${CI:-}${INSTALL:-}" ]; then
        package="Debian package ${3:-$2}"
        [ "$1" = program ] || package="crate $2"
        echo "$2 is missing: install the $package, or run make with INSTALL=1 to let it" >&2
        exit 1
    fi
fi
case "$1" in
program)
    apt-get update -qq && apt-get install -y -qq "${3:-$2}" >/dev/null
    ;;
crate)
    cargo install --quiet --locked "$2"
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

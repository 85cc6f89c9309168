#!/usr/bin/env bash
# Installs the wheel on newer CPythons, with the newest libraries, and runs the whole test suite
# there. Warnings are errors. Arguments: versions, 3.13 and 3.14 unless given; TESTS selects tests.
# The interpreters come from a later suite of Debian, installed in target/pythons. Needs root and
# Debian.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
suite=forky
[ $# -gt 0 ] || set -- 3.13 3.14
root=$PWD/target/pythons

bash scripts/install.sh program mmdebstrap
packages=$(printf ',python%s-venv' "$@")
if ! (cd "$root" && ls "${@/#/usr/bin/python}") >/dev/null 2>&1; then
    rm -rf "$root"
    # A mirror may be late, so its signature counts but not its date. Tests compile a little C.
    mmdebstrap --quiet --mode=root --variant=minbase --aptopt='APT::Install-Recommends "false"' \
        --aptopt='Acquire::Check-Valid-Until "false"' \
        --include="ca-certificates,gcc,libc6-dev$packages" \
        "$suite" "$root.new" "$(apt-get indextargets --format '$(REPO_URI)' | head -1)"
    mkdir "$root.new/src"
    mv "$root.new" "$root"
fi
cp /etc/resolv.conf /etc/hosts "$root/etc/"
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
rm -rf "$root/wheel"
"$python" -m pip wheel --quiet --no-deps --wheel-dir "$root/wheel" .

# Runs a command in the tree; the mounts end with the process.
inside() {
    unshare --mount bash -ec '
        mount -t proc proc "$1/proc"
        mount --rbind /dev "$1/dev"
        mount --bind . "$1/src"
        exec chroot "$1" bash -ec "cd /src; $2"' - "$root" "$1"
}
for version in "$@"; do
    echo "== Python $version"
    inside "[ -d /venv$version ] || python$version -m venv /venv$version
        bin=/venv$version/bin/python
        requirement=\$(ls /wheel/*.whl)[test]
        \$bin -m pip install --quiet --upgrade --upgrade-strategy eager \"\$requirement\"
        \$bin -m pip install --quiet --no-deps --force-reinstall /wheel/*.whl
        \$bin -W error -c 'import sys, geomdp; print(sys.version, geomdp.kernel())'
        \$bin -m pytest -q -p no:cacheprovider --numprocesses auto ${TESTS-}"
done

#!/usr/bin/env bash
# Compiles the core for Windows, and runs its tests there, by wine. Compiler, linker and wine come
# from Debian's newest suite, installed in target/windows. Needs root and Debian.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD/target/windows

bash scripts/install.sh program mmdebstrap
if [ ! -x "$root/usr/bin/rustc" ]; then
    rm -rf "$root" "$root.new"
    mkdir -p target
    # A mirror may be late, so its signature counts but not its date.
    mmdebstrap --quiet --mode=root --variant=minbase --aptopt='APT::Install-Recommends "false"' \
        --aptopt='Acquire::Check-Valid-Until "false"' \
        --include=ca-certificates,cargo,gcc,gcc-mingw-w64-x86-64-posix,libc6-dev,rust-src,rustc,wine64 \
        sid "$root.new" "$(apt-get indextargets --format '$(REPO_URI)' | head -1)"
    mkdir "$root.new/src" "$root.new/root/.cargo"
    mv "$root.new" "$root"
fi
cp /etc/resolv.conf /etc/hosts "$root/etc/"
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"

# The mounts end with the process. Debian has no standard library for Windows, so it is built here
# from its source, which a stable compiler refuses unless told otherwise.
unshare --mount bash -ec '
    mount -t proc proc "$1/proc"
    mount --rbind /dev "$1/dev"
    mount --bind . "$1/src"
    mount --bind "${CARGO_HOME:-$HOME/.cargo}" "$1/root/.cargo"
    exec chroot "$1" bash -ec "$2"' - "$root" '
    cd /src
    export HOME=/root CARGO_HOME=/root/.cargo PATH=/usr/sbin:/usr/bin:/sbin:/bin
    export CARGO_TARGET_DIR=/var/target RUSTC_BOOTSTRAP=1 WINEDEBUG=-all
    export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER=x86_64-w64-mingw32-gcc-posix
    export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER=wine64
    cargo test --locked --quiet -p geomdp-core --lib --tests --target x86_64-pc-windows-gnu \
        -Zbuild-std=std,panic_unwind,proc_macro,test'

# SPDX-License-Identifier: MIT
# Shared by quickstart.sh and test.sh; POSIX sh, for a Debian that has nothing but sh and apt-get.

BUILD_PACKAGES="gcc libc6-dev meson ninja-build pkg-config libcurl4-openssl-dev libssl-dev zlib1g-dev libuv1-dev libsqlite3-dev libjansson-dev libyaml-dev libmicrohttpd-dev uthash-dev ca-certificates"
TEST_PACKAGES="g++ clang libclang-rt-14-dev binutils libcmocka-dev python3 openssl valgrind nginx-light procps"

say() {
    printf '%s\n' "$*" >&2
}

fail() {
    say "holdfast: $*"
    exit 1
}

# Installs what is missing of "$@"; asks nothing and touches no network when all is there.
need_packages() {
    missing=
    for package in "$@"; do
        status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || status=
        [ "$status" = installed ] || missing="$missing $package"
    done
    [ -n "$missing" ] || return 0
    command -v apt-get >/dev/null 2>&1 || fail "these packages are missing:$missing (install them, then run this again)"
    as_root=
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null 2>&1 || fail "these packages are missing:$missing (run this as root once, or install sudo)"
        as_root=sudo
    fi
    say "installing:$missing"
    $as_root apt-get update -q >&2 || say "apt-get update failed; trying with the lists that are here"
    # shellcheck disable=SC2086
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing >&2 ||
        fail "could not install:$missing (see above)"
}

# A quicker linker, where it is there or can be had at once: several hundred programs are linked. Nothing depends on it.
quick_linker() {
    if ! command -v mold >/dev/null 2>&1 && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        say "installing mold, a quicker linker (it may be missing)"
        { timeout 60 apt-get -o Acquire::Retries=0 install -y -q --download-only --no-install-recommends mold &&
            DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-download --no-install-recommends mold; } >&2 ||
            say "no mold: linking with the usual linker"
    fi
    ! command -v mold >/dev/null 2>&1 || export CC_LD=mold
}

# Configures the build folder "$1" with the remaining options.
configure() {
    folder=$1
    shift
    [ -f "$folder/build.ninja" ] || meson setup "$folder" "$@" >&2 || fail "meson setup $folder failed (see above)"
    meson configure "$folder" "$@" >/dev/null || fail "meson configure $folder failed"
}

# The same, then builds all of it.
build() {
    configure "$@"
    ninja -C "$1" >&2 || fail "building $1 failed (see above)"
}

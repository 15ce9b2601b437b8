#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs what is missing, builds and runs every test; the last line is `N passed, N failed`. --full adds the long
# sweeps, the integration suite under AddressSanitizer, and valgrind. HF_SEED=N repeats a run of the property tests.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh
full=
[ "${1:-}" != --full ] || full=yes
# shellcheck disable=SC2086
need_packages $BUILD_PACKAGES $TEST_PACKAGES
quick_linker

passed=0
failed=0
# Builds what the suites of a build folder need, runs them and adds up what meson reports.
run() {
    folder=$1
    shift
    say "== $folder: meson test $*"
    code=0
    meson test -C "$folder" --print-errorlogs "$@" >"$folder/test-output.txt" 2>&1 || code=$?
    grep -vE '^ *[0-9]+/[0-9]+ .* (OK|SKIP) |^\[[0-9]+/[0-9]+\] ' "$folder/test-output.txt" >&2 || :
    ok=$(sed -n 's/^Ok: *\([0-9]*\).*/\1/p' "$folder/test-output.txt" | tail -n 1)
    bad=$(sed -nE 's/^(Fail|Unexpected Pass|Timeout): *([0-9]+).*/\2/p' "$folder/test-output.txt" |
        awk '{ sum += $1 } END { print sum + 0 }')
    [ -n "$ok" ] || ok=0
    [ "$code" = 0 ] || [ "$bad" -gt 0 ] || bad=1
    [ "$((ok + bad))" -gt 0 ] || { say "no test ran in $folder"; bad=1; }
    passed=$((passed + ok))
    failed=$((failed + bad))
}

[ -z "$full" ] || export HF_FULL=1
build build-test -Dwerror=true
run build-test

CC=clang configure build-clang -Dwerror=true -Db_sanitize=address,undefined -Db_lundef=false -Doptimization=1
export ASAN_OPTIONS=abort_on_error=1:detect_leaks=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
# shellcheck disable=SC2086
run build-clang --suite unit --suite contract --suite model --suite fault ${full:+--suite integration} --timeout-multiplier 4

configure build-tsan -Dwerror=true -Db_sanitize=thread -Doptimization=1
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
run build-tsan --suite threads --timeout-multiplier 8

if [ -n "$full" ]; then
    run build-test --suite unit --suite model --timeout-multiplier 30 \
        --wrapper 'valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite'
fi

[ "$((passed + failed))" -gt 0 ] || failed=1
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]

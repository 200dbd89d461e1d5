#!/usr/bin/env bash
# Runs what takes too long for every change, part by part, as root on Debian. Each part writes its output and its result to
# .nightly/COMMIT, and a part that has passed there is not run again: a run that was interrupted continues.
#
# Usage: integration/nightly.sh [PART...]   all parts by default
# Environment: FRESH=1 runs all parts again; HOLDFAST_NIGHTLY names another directory for the results.
#
# The exit status is 0 if all these parts have passed, now or before.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2

# The minutes are those on two cores.
declare -A run=(
	[versions]='test-versions'       # 13: all ZooKeepers, the newest Curator and kazoo, moto
	[containers]='test-containers'   # 5
	[memory]='test-memory'           # 1
	[fencing]='test-fencing'         # 8: PostgreSQL and MariaDB
	[model]='model FORM=full'        # 20
	[fuzz]='fuzz FUZZTIME=30s'       # 10
	[slow]='test-slow'               # 20: one CPU, and a machine that stands still now and then
	[long]='test-long'               # 50: fleets and chaos for minutes, thousands of clients
)
order=(versions containers memory fencing model fuzz slow long)

parts=("$@")
[ $# -gt 0 ] || parts=("${order[@]}")
for part in "${parts[@]}"; do
	[ -n "${run[$part]:-}" ] || {
		printf 'nightly: unknown part %s; want some of: %s\n' "$part" "${order[*]}" >&2
		exit 2
	}
done

dir=${HOLDFAST_NIGHTLY:-.nightly}/$(git rev-parse --short=12 HEAD) || exit 2
[ -z "${FRESH:-}" ] || rm -rf "$dir"
mkdir -p "$dir"
status=0
for part in "${parts[@]}"; do
	if ! grep -qs '^ok' "$dir/$part"; then
		printf '\n==> nightly, %s: make %s\n' "$part" "${run[$part]}"
		started=$SECONDS result=ok
		# shellcheck disable=SC2086  # words
		${MAKE:-make} --no-print-directory ${run[$part]} </dev/null 2>&1 | tee "$dir/$part.log" || result=FAILED
		printf '%s after %d s\n' "$result" "$((SECONDS - started))" >"$dir/$part"
	fi
	grep -q '^ok' "$dir/$part" || status=1
done
printf '\n==> nightly; the outputs are in %s\n' "$dir"
for part in "${parts[@]}"; do
	printf '%-10s  %s\n' "$part" "$(<"$dir/$part")"
done
exit "$status"

#!/usr/bin/env bash
# Runs every fuzz target of the repository in turn, and lists at the end which found a failure. Their inputs are in the
# testdata/fuzz folders. Commit each as a readable seed of its target (f.Add), with the fix.
#
# Usage: tools/fuzz.sh [TIME] [PATTERN]
#   TIME     how long each target runs, as go test's -fuzztime; default 30s
#   PATTERN  which targets, as a regular expression; default all
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/.."
time=${1:-30s}
pattern=${2:-.}
failed=()
ran=0

# list prints a package and a target per line. "go test -list" does not print a target's package, so each package is listed
# separately.
list() {
	local dir
	grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n 1 dirname | sort -u | while read -r dir; do
		go test -list '^Fuzz' "$dir" | sed -n "s|^Fuzz|$dir &|p"
	done
}

targets=$(list)
while read -r package target; do
	[[ $target =~ $pattern ]] || continue
	printf '\n%s %s\n' "$package" "$target"
	# By default, minimizing each new input may take a minute, in which no other input is tried.
	go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 10x "$package" </dev/null || failed+=("$package $target")
	ran=$((ran + 1))
done <<<"$targets"

if [ "$ran" = 0 ]; then
	printf 'fuzz: no target matches %s\n' "$pattern" >&2
	exit 1
fi
if [ ${#failed[@]} -gt 0 ]; then
	printf 'fuzz: FAILED: %s\n' "${failed[@]}" >&2
	exit 1
fi
printf '\nfuzz: %s targets, nothing found\n' "$ran"

#!/usr/bin/env bash
# Compares the size of each part of the repository with its limit in tools/budget.
#
# Usage: tools/budget.sh check|lower
#   check  prints the size, the limit and the bar of each part, and fails if a limit does not fit
#   lower  lowers each limit that is more than 1% above the size
set -efuo pipefail # f: git expands the pathspecs, not the shell
cd "$(dirname "$0")/.."
action=${1:-check}
export GOWORK=off
budget=tools/budget
status=0

# text UNIT PATHSPEC...: prints the files, those that git does not know yet too.
text() { git grep --untracked -h '' -- "$@"; }

# long PATHSPEC...: prints a line for each function of more than 60 lines.
long() {
	text "$@" | awk '/^func / && !/}$/ {start = NR} /^}/ {if (start && NR - start >= 60) print NR; start = 0}'
}

# run PACKAGE CASE PACKAGES: prints the number of functions of the packages that the case runs. On a busy machine it runs more than that:
# the least of three counts is near what it needs.
run() {
	for _ in 1 2 3; do
		ran "$@" || return
	done | sort -n | head -1
}

# ran prints the number of functions in one run.
ran() {
	local profile out
	profile=$(mktemp)
	out=$(go test -count=1 -run "$2" -coverpkg "$3" -coverprofile "$profile" "$1" 2>&1) || { echo "$out" >&2 && exit 1; }
	go tool cover -func "$profile" | awk '$1 != "total:" && $NF != "0.0%"' | wc -l
	rm "$profile"
}

measure() {
	local unit=$1
	shift
	case $unit in
	lines) text "$@" | wc -l ;;
	words) text "$@" | wc -w ;;
	long) long "$@" | wc -l ;;
	doc) go doc -all "$@" | wc -l ;;
	run) run "$@" ;;
	*) echo "budget: unit $unit" >&2 && exit 1 ;;
	esac
}

# judge SIZE LIMIT BAR: prints what is wrong with the limit, if anything.
judge() {
	if [ "$1" -gt "$2" ]; then
		echo "over the limit"
	elif [ "$2" -gt "$3" ] && [ $((100 * $2)) -gt $((103 * $1)) ]; then
		echo 'more than 3% below the limit: run "tools/budget.sh lower"'
	fi
}
if [ -z "$(judge 101 100 200)" ] || [ -z "$(judge 96 100 50)" ] || [ -n "$(judge 100 100 50)$(judge 96 100 100)" ]; then
	echo 'budget: judge is wrong' && exit 1
fi

rows=$(grep -v '^#' "$budget")
while read -r limit bar unit part files; do
	# shellcheck disable=SC2086  # each is a word
	size=$(measure "$unit" $files) || { echo "budget: cannot measure $unit of $part" && exit 1; }
	if [ "$action" = lower ]; then
		lowered=$((size + size / 100))
		[ "$lowered" -ge "$limit" ] ||
			sed -i -E "s|^ *$limit( +$bar $unit +$part )|$(printf '%7d' "$lowered")\1|" "$budget"
		continue
	fi
	verdict=$(judge "$size" "$limit" "$bar")
	printf '%6d of %6d, bar %5d: %-5s %-12s %s\n' "$size" "$limit" "$bar" "$unit" "$part" "$verdict"
	[ -z "$verdict" ] || status=1
done <<<"$rows"
exit "$status"

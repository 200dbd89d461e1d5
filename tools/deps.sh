#!/usr/bin/env bash
# Maintains golden lists, docs/deps/NAME.txt, of what each public package adds to a user's build.
#
# Usage: tools/deps.sh check|update
#   check   prints how the lists differ from the actual imports, and fails if they do, or if a rule below is broken
#   update  writes the lists; it refuses to write one that breaks a rule
set -euo pipefail
cd "$(dirname "$0")/.."
action=${1:-check}
lists=docs/deps
module=$(GOWORK=off go list -m)
status=0

# The same answer on every machine.
export GOWORK=off GOOS=linux GOARCH=amd64 CGO_ENABLED=0

# packages prints the public packages with the directory of their module: those of the root, and of the engines with modules of their own.
packages() {
	local mod
	for mod in go.mod */go.mod; do
		case $mod in
		go.mod | *lock/go.mod) go -C "$(dirname "$mod")" list -f "{{.ImportPath}} $(dirname "$mod")" ./... ;;
		esac
	done | grep -vE '/(internal|examples)(/| )'
}
# The engines are the packages named for their locks.
engines=$(packages | sed -n "s|^$module/\([a-z]*lock\) .*|\1|p")

name_of() {
	case $1 in
	"$module") echo holdfast ;;
	*) echo "${1#"$module/"}" | tr / - ;;
	esac
}

# list prints all packages outside the standard library, and for the contract itself also the standard packages that its own code
# imports: those are the whole of it. (What these import in turn changes with every Go release.)
list() {
	local pkg=$1 dir=$2
	printf '# What importing %s brings in, itself left out. Written by "make deps-update".\n' "$pkg"
	go -C "$dir" list -deps -f '{{if not .Standard}}{{.ImportPath}}{{end}}' "$pkg" | grep -vx "$pkg" | LC_ALL=C sort
	if [ "$pkg" = "$module" ]; then
		printf '\n# Imported from the standard library by the module'"'"'s own code in it.\n'
		# shellcheck disable=SC2016  # the dollar is the template's
		go list -deps -f '{{if not .Standard}}{{$p := .ImportPath}}{{range .Imports}}{{$p}} {{.}}{{"\n"}}{{end}}{{end}}' "$pkg" |
			awk -v m="$module" '($1 == m || index($1, m "/") == 1) && $2 !~ /\./ {print $2}' | LC_ALL=C sort -u
	fi
}

# rule PACKAGE PATTERN WHY: no line of the package's list may match.
rule() {
	local found
	[ "$1" = "$name" ] || return 0
	if found=$(grep -E "$2" <<<"$text"); then
		printf 'deps: %s must not see these: %s\n%s\n' "$name" "$3" "$found"
		status=1
	fi
}

mkdir -p "$lists"
seen=
while read -r pkg dir; do
	name=$(name_of "$pkg")
	text=$(list "$pkg" "$dir")
	seen+=" $name.txt "
	before=$status
	others=$(grep -vx "${name%%-*}" <<<"$engines"$'\nlocktest' | paste -sd '|')
	rule "$name" "^$module/($others)(/|\$)" 'engines do not know each other, and nothing else knows them or the suite'
	for client in aws-sdk-go:dynamolock mongo:mongolock zookeeper:zklock; do
		[ "$name" = "${client#*:}" ] || rule "$name" "[/-]${client%:*}[/-]" "only users of ${client#*:} take this client"
	done
	if [ "$action" = update ]; then
		[ "$status" != "$before" ] || printf '%s\n' "$text" >"$lists/$name.txt"
	elif ! diff -u --label "$lists/$name.txt" --label "what is there now" \
		<(cat "$lists/$name.txt" 2>/dev/null) <(printf '%s\n' "$text"); then
		status=1
	fi
done < <(packages)

for file in "$lists"/*.txt; do
	[ -e "$file" ] || continue
	case $seen in
	*" ${file##*/} "*) ;;
	*)
		if [ "$action" = update ]; then
			rm "$file"
		else
			echo "deps: $file belongs to no package"
			status=1
		fi
		;;
	esac
done
if [ "$action" = check ] && [ "$status" != 0 ]; then
	echo 'deps: if the change is intended, accept it with "make deps-update"'
fi
exit "$status"

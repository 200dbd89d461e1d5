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

name_of() {
	case $1 in
	"$module") echo holdfast ;;
	*) echo "${1#"$module/"}" | tr / - ;;
	esac
}

# list prints all packages outside the standard library, and for the contract itself also the standard packages that its own code
# imports: those are the whole of it. (What these import in turn changes with every Go release.)
list() {
	local pkg=$1
	printf '# What importing %s brings in, itself left out. Written by "make deps-update".\n' "$pkg"
	go list -deps -f '{{if not .Standard}}{{.ImportPath}}{{end}}' "$pkg" | grep -vx "$pkg" | LC_ALL=C sort
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
while read -r pkg; do
	name=$(name_of "$pkg")
	text=$(list "$pkg")
	seen+=" $name.txt "
	before=$status
	rule zklock 'aws' 'ZooKeeper users take no AWS SDK'
	rule zklock '^'"$module"'/(dynamolock|memlock|locktest)' 'engines do not know each other'
	rule dynamolock 'zookeeper|^'"$module"'/(zklock|memlock|locktest)' 'engines do not know each other'
	rule memlock 'aws|zookeeper|^'"$module"'/(zklock|dynamolock|locktest)' 'the in-process engine needs no other'
	rule holdfast 'aws|zookeeper|^'"$module"'/(zklock|dynamolock|memlock|locktest)' 'the contract knows no engine'
	rule locktest 'aws|zookeeper|^'"$module"'/(zklock|dynamolock)' 'the suite is engine-neutral'
	if [ "$action" = update ]; then
		[ "$status" != "$before" ] || printf '%s\n' "$text" >"$lists/$name.txt"
	elif ! diff -u --label "$lists/$name.txt" --label "what is there now" \
		<(cat "$lists/$name.txt" 2>/dev/null) <(printf '%s\n' "$text"); then
		status=1
	fi
done < <(go list ./... | grep -vE '/(internal|examples)(/|$)')

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

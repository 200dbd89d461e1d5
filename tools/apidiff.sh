#!/usr/bin/env bash
# Compares what the public packages of a module offer with what its newest release offered, and fails if a program that was
# written for that release may no longer compile, unless that is allowed:
#
#   v0.x       if the changelog has an entry under "### Breaking" that is newer than the release
#   from v1 on never: that needs another major version, and with it another module path
#
# The release is the greatest tag vX.Y.Z, of the module path's major version, among the ancestors of HEAD. The script reads it
# from the repository itself, and its dependencies from Go's module cache or the network. Before the first release there is
# nothing to compare with. Commands, examples, internal packages and modules inside the module are not compared.
#
# Usage: tools/apidiff.sh [DIR]
#   DIR   the root of the repository and of its module; by default those of this script
set -euo pipefail
shopt -s inherit_errexit
tools=$(cd "$(dirname "$0")" && pwd)
cd "${1:-$tools/..}"
export GOWORK=off
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say() { printf 'apidiff: %s\n' "$*"; }

# public prints the import paths of the packages that others can import, in the module of the present directory.
public() { go list -f '{{if and (ne .Name "main") .GoFiles}}{{.ImportPath}}{{end}}' ./... | grep -vE '(^|/)(internal|examples)(/|$)' | LC_ALL=C sort; }

apidiff() { go tool -modfile="$tools/go.mod" apidiff "$@"; }

# breaking succeeds if the changelog has an item under "### Breaking" before the section of a version.
breaking() {
	awk -v version=" ${1#v} " '
		/^## / && index($0 " ", version) { above = 1; exit }
		/^##/ { within = /^### Breaking/ }
		within && /^[-*] / { found = 1 }
		END { exit !(found && above) }
	' <(sed -E '/^## /{s/[][(),]/ /g; s/ v([0-9])/ \1/g}' CHANGELOG.md)
}

if [ "$(git rev-parse --is-shallow-repository)" = true ]; then
	say 'the clone is shallow, so its releases are not known: git fetch --unshallow --tags' >&2
	exit 1
fi
module=$(go list -m)
majors='[01]'
if [[ $module =~ /v([0-9]+)$ ]]; then
	majors=${BASH_REMATCH[1]}
fi
release=$(git tag --merged HEAD --sort=-v:refname | grep -m 1 -xE "v$majors\.[0-9]+\.[0-9]+" || true)
if [ -z "$release" ]; then
	say 'no tag yet'
	exit 0
fi

mkdir "$work/old" "$work/data"
git archive "$release" | tar -x -C "$work/old"
new=$(public)
changes=
while read -r package; do
	if ! grep -qxF "$package" <<<"$new"; then
		changes+="$package: removed"$'\n'
		continue
	fi
	(cd "$work/old" && apidiff -w "$work/data/old" "$package")
	found=$(apidiff -incompatible "$work/data/old" "$package")
	[ -z "$found" ] || changes+="$package:"$'\n'"$found"$'\n'
done < <(cd "$work/old" && public)

if [ -z "$changes" ]; then
	say "compatible with $release"
	exit 0
fi
printf '%s' "$changes"
if [[ $release != v0.* ]]; then
	say "not compatible with $release: that takes the next major version, and its module path" >&2
	exit 1
fi
if ! breaking "$release"; then
	say "not compatible with $release, and CHANGELOG.md has no entry under \"### Breaking\" above $release that says so" >&2
	exit 1
fi
say "not compatible with $release, as CHANGELOG.md says"

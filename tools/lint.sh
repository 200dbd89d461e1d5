#!/usr/bin/env bash
# All static checks, in every module of the repository. Prints the findings of each, and fails at the end if there are
# any.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
root=$PWD
status=0

# check NAME COMMAND...: fails when the command does, or when it prints anything.
check() {
	local name=$1 out code=0
	shift
	printf 'lint: %s\n' "$name"
	out=$("$@" 2>&1) || code=$?
	# A first run reports the modules that it fetches; that is not a finding.
	out=$(grep -v '^go: downloading ' <<<"$out")
	if [ "$code" != 0 ] || [ -n "$out" ]; then
		printf '%s\nlint: %s FAILED\n' "$out" "$name"
		status=1
	fi
}

# Modules are checked as their users see them, not as the workspace joins them; -modfile is refused in a workspace, too.
export GOWORK=off
# shellcheck disable=SC2317  # called by check
tool() { go tool -modfile="$root/tools/go.mod" "$@"; }

# workflows prints what actionlint misses: unpinned actions, and modules that dependabot or the workspace leaves out.
# shellcheck disable=SC2317  # called by check
workflows() {
	local mod
	grep -rnE '^[ -]*uses: ' .github/workflows | grep -vE 'uses: [^ @]+@[0-9a-f]{40} # v[0-9]+\.[0-9]+\.[0-9]+$' |
		sed 's/$/: want a commit, and a comment with its version/'
	while read -r mod; do
		mod=/$(dirname "$mod")
		mod=${mod%.}
		grep -qxE " +- $mod" .github/dependabot.yml || echo ".github/dependabot.yml does not list $mod"
		[ "$mod" = /tools ] || grep -qxE "[[:space:]]\.${mod%/}" go.work || echo "go.work does not list .$mod"
	done < <(modules)
}

# scripts tests the scripts and the programs in this directory.
# shellcheck disable=SC2317  # called by check
scripts() {
	local out
	out=$(go -C tools test -race -shuffle=on -timeout 5m ./... 2>&1) || printf '%s\n' "$out"
}

modules() { git ls-files --cached --others --exclude-standard -- go.mod '*/go.mod'; }

check "gofumpt" tool gofumpt -l .
while read -r mod; do
	dir=$(dirname "$mod")
	cd "$root/$dir" || exit 1
	check "go mod tidy in $dir" go mod tidy -diff
	# A module that only lists tools has no packages to check.
	if [ -n "$(go list ./... 2>/dev/null)" ]; then
		check "go vet in $dir" go vet ./...
		check "go fix in $dir" go fix -diff ./...
		check "staticcheck in $dir" tool staticcheck ./...
	fi
	cd "$root" || exit 1
done < <(modules)
for os in darwin windows; do
	check "go vet for $os in cmd/holdfast" env GOOS="$os" CGO_ENABLED=0 go -C cmd/holdfast vet .
done
check "tests of the tools" scripts
check "dependencies" tools/deps.sh check
check "actionlint" tool actionlint
check "workflows" workflows
check "diagrams" go run -C tools ./diagrams -check ../docs/pictures
check "documents" go run -C tools ./docs ..
if command -v shellcheck >/dev/null; then
	check "shellcheck" shellcheck packaging/*.sh tools/*.sh integration/*.sh integration/model/*.sh .ci/run
fi
# These print what they compare even if they find nothing.
for script in apidiff budget; do
	printf 'lint: %s\n' "$script"
	if ! "tools/$script.sh"; then
		printf 'lint: %s FAILED\n' "$script"
		status=1
	fi
done
exit "$status"

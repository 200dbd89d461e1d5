#!/usr/bin/env bash
# Makes the files of a release, in dist/: archives, packages, the input of the container image, and SHA256SUMS.
# The same commit and the same Go give the same bytes. PLATFORMS="linux/amd64" restricts the platforms. It needs
# GNU tar, gzip and zip.
set -euo pipefail
cd "$(dirname "$0")/.."
platforms=${PLATFORMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64}
for need in gzip tar zip; do
	command -v "$need" >/dev/null || { echo "dist: $need is missing" >&2; exit 1; }
done

# v1.2.3 on a tag; v1.2.3+4.gabcdef, which is later than v1.2.3, four commits after it.
version=$(git describe --tags --match 'v[0-9]*' --dirty 2>/dev/null ||
	echo "v0.0.0-$(git rev-list --count HEAD)-g$(git describe --always --exclude '*' --dirty)")
version=$(sed -E 's/-([0-9]+)-g/+\1.g/' <<<"$version")
number=${version#v}
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH GOWORK=off GOFLAGS=-trimpath CGO_ENABLED=0 TZ=UTC LC_ALL=C
umask 022
out=$PWD/dist
rm -rf "$out"
mkdir -p "$out/man" "$out/completions" "$out/image"

# build OUTPUT [OS ARCHITECTURE]
build() {
	GOOS=${2-} GOARCH=${3-} go -C cmd/holdfast build -ldflags "-s -w -X main.version=$version" -o "$1" .
}

# The program itself generates what is the same on every platform.
build "$out/holdfast"
"$out/holdfast" man "$out/man"
for shell in bash fish zsh; do
	"$out/holdfast" completion "$shell" >"$out/completions/holdfast.$shell"
done
cp -r "$out/man" "$out/man.gz" # as packages need them
# The pages that it links to are not packed.
sed -E 's#\]\((docs/|[A-Z]+(\.md)?\))#](https://github.com/holdfast-go/holdfast/blob/HEAD/\1#g' README.md >"$out/README.md"
gzip -9n "$out"/man.gz/*

# stamp DIR: the time of the commit for everything in it.
stamp() { find "$1" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +; }

# package ARCHITECTURE FORMAT
package() {
	ARCH=$1 VERSION=$number go tool -modfile=tools/go.mod nfpm package --config packaging/nfpm.yaml --packager "$2" --target "$out"
}

for platform in $platforms; do
	os=${platform%/*} arch=${platform#*/}
	name=holdfast_${number}_${os}_$arch
	echo "dist: $name"
	dir=$out/$name
	mkdir "$dir"
	cp -r "$out/README.md" LICENSE "$out/man" "$out/completions" "$dir"
	if [ "$os" = windows ]; then
		build "$dir/holdfast.exe" "$os" "$arch"
		stamp "$dir"
		(cd "$out" && find "$name" | sort | zip -q -X -@ "$name.zip")
	else
		build "$dir/holdfast" "$os" "$arch"
		stamp "$dir"
		tar -C "$out" --sort=name --owner=0 --group=0 --numeric-owner --format=ustar -c "$name" | gzip -9n >"$out/$name.tar.gz"
	fi
	if [ "$os" = linux ]; then
		mkdir -p "$out/image/$arch"
		cp -p "$dir/holdfast" "$out/image/$arch/"
		stamp "$out"
		package "$arch" deb
		package "$arch" rpm
	fi
	rm -r "$dir"
done
rm -r "$out/holdfast" "$out/README.md" "$out/man" "$out/man.gz" "$out/completions"
(cd "$out" && sha256sum -- *.* >SHA256SUMS && cat SHA256SUMS)

#!/usr/bin/env bash
# Fetches what "make test-versions" runs and Debian does not have, each in one exact version, into the user's cache, once: the
# newest of each ZooKeeper from 3.5 to 3.9, Curator and mongo-java-server, an emulator of MongoDB, with Maven, and kazoo and moto, a
# fake of DynamoDB, with pip. Prints nothing if everything is there.
#
# Usage: integration/versions.sh fetch      fetch all
#        integration/versions.sh fetch newest  fetch the newest ZooKeeper only
#        integration/versions.sh fetch mongo   fetch mongo-java-server only, which "make test" runs
#        integration/versions.sh peers      fetch the lock libraries that "make bench" compares with, and print a line for each: its
#                                           name, its version, and its classpath or Python, with tabs between
#        integration/versions.sh home NAME  print the folder of one of them, such as zookeeper-3.9.5: one for ZOOKEEPER_HOME
#        integration/versions.sh test       run the tests that talk to ZooKeeper on each version: all of them on the newest, with those of
#                                           doctor, the conformance tests of one form of names on the others; those that share locks with
#                                           Curator and kazoo with these versions of them; and those that talk to DynamoDB on moto, and to
#                                           MongoDB on FerretDB
#        integration/versions.sh ferretdb   run the differential test of mongolock on FerretDB, which must fail
#        integration/versions.sh newest     run the conformance tests of ZooKeeper on its newest version
#        integration/versions.sh everything VERSION
#                                           run all of them on one version of ZooKeeper
set -euo pipefail
cd "$(dirname "$0")/.."

# The newest release of each line when this list was last updated.
zookeeper=(3.5.10 3.6.4 3.7.2 3.8.6 3.9.5)
curator=5.9.0
kazoo=2.11.0
moto=5.2.5
aws=1.4.0
mongo=1.47.0 # package mongoserver names it, too
mongo_sum=e6809e40d14dcf5f8d2617e397b9aadf2c51ebbbbaff9230e8fa7d233db6128a # SHA-256 of all its jars, one after the other
ferretdb=1.24.2
# What a server needs besides what its pom says that its clients need: its metrics, the compression of its snapshots, its AdminServer,
# and a log that goes to standard error. slf4j's back end must be of the same line as its interface.
jetty=9.4.58.v20250814
server=(
	io.dropwizard.metrics:metrics-core:4.1.12.1
	org.xerial.snappy:snappy-java:1.1.10.5
	"org.eclipse.jetty:jetty-server:$jetty"
	"org.eclipse.jetty:jetty-servlet:$jetty"
	com.fasterxml.jackson.core:jackson-databind:2.15.2
)
log_of() {
	case $1 in
	3.[567].*) echo org.slf4j:slf4j-simple:1.7.36 ;;
	*) echo org.slf4j:slf4j-simple:2.0.13 ;;
	esac
}

newest=${zookeeper[-1]}

cache=${XDG_CACHE_HOME:-$HOME/.cache}/holdfast/maven

# tries COMMAND... runs a command that needs a network, up to three times.
tries() {
	local n
	for n in 1 2 3; do
		"$@" && return
		[ "$n" = 3 ] || sleep "$((n * 10))"
	done
	return 1
}

# jars NAME COORDINATES... puts jars, each group:artifact:version, with all that they depend on into the folder NAME/lib of the
# cache, completely or not at all. If the variable sum is set, it is the SHA-256 of these jars.
jars() {
	local home=$cache/$1 work g a v
	[ ! -d "$home" ] || return 0
	printf 'versions: fetching %s\n' "$1"
	mkdir -p "$cache"
	work=$(mktemp -d "$cache/new.XXXXXX")
	{
		printf '<project><modelVersion>4.0.0</modelVersion>'
		printf '<groupId>local</groupId><artifactId>fetch</artifactId><version>1</version><dependencies>'
		for coordinates in "${@:2}"; do
			IFS=: read -r g a v <<<"$coordinates"
			printf '<dependency><groupId>%s</groupId><artifactId>%s</artifactId><version>%s</version>' "$g" "$a" "$v"
			# There must be only one back end.
			printf '<exclusions><exclusion><groupId>ch.qos.logback</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency>'
		done
		printf '</dependencies></project>\n'
	} >"$work/pom.xml"
	if ! (cd "$work" && tries mvn --batch-mode --quiet org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies \
		-DoutputDirectory=lib >log 2>&1 </dev/null); then
		cat "$work/log" >&2
		rm -rf "$work"
		printf 'versions: cannot fetch %s\n' "$1" >&2
		return 1
	fi
	if [ -n "${sum:-}" ] && [ "$(LC_ALL=C && cat "$work"/lib/*.jar | sha256sum)" != "$sum  -" ]; then
		rm -rf "$work"
		printf 'versions: %s has another checksum than the one that is pinned\n' "$1" >&2
		return 1
	fi
	# Another process may have been faster.
	mv -T "$work" "$home" 2>/dev/null || rm -rf "$work"
	[ -d "$home/lib" ]
}

# python NAME PACKAGES... installs packages of PyPI into the environment NAME of the cache, completely or not at all. It is made where
# it stays, as such an environment knows its own path.
python() {
	local home=${cache%/*}/$1
	[ ! -f "$home/complete" ] || return 0
	printf 'versions: fetching %s\n' "$1"
	mkdir -p "${cache%/*}"
	(
		flock 9
		[ ! -f "$home/complete" ] || exit 0
		rm -rf "$home"
		python3 -m venv "$home"
		tries "$home/bin/python" -m pip install --quiet --disable-pip-version-check --no-input "${@:2}" </dev/null
		touch "$home/complete"
	) 9>"$home.lock"
}

interpreter=${cache%/*}/python-$kazoo-$moto/bin/python

# with_peers COMMAND... runs a command with these versions of the programs that locks are shared with, and of moto.
with_peers() {
	HOLDFAST_CURATOR="$cache/curator-$curator/lib/*" HOLDFAST_PYTHON=$interpreter "$@"
}

# on VERSION COMMAND... runs a command with that version as the one to start.
on() { HOLDFAST_ZOOKEEPER=local ZOOKEEPER_HOME=$cache/zookeeper-$1 "${@:2}"; }

# part WHAT COMMAND... runs a command, and prints its result and duration.
part() {
	local started=$SECONDS code=0
	"${@:2}" || code=1
	printf '==> %s: %s after %d s\n' "$1" "$([ "$code" = 0 ] && echo ok || echo FAILED)" "$((SECONDS - started))"
	return "$code"
}

# together COMMAND... runs commands in parallel: they mostly wait. More than two would keep each other from their heartbeats.
together() {
	local command pids=() code=0
	for command; do
		$command & # its words
		pids+=($!)
	done
	for command in "${pids[@]}"; do
		wait "$command" || code=1
	done
	return "$code"
}

# gotest ARGUMENTS... runs tests of this repository. A server that is missing is a failure: no test is skipped for it.
gotest() { HOLDFAST_CONFORMANCE=full go test -race -shuffle=on -count=1 -parallel 4 -timeout 30m "$@"; }

# It leaves out tests without ZooKeeper, and those with other programs or measurements, which "make test" runs.
all_of_it() {
	on "$1" gotest -p 2 ./integration ./integration/internal/zkserver \
		-skip 'Dynamo|Mixed|Fleet|Model|Interop|WithPeers|Examples|Capacity|TestConfigurations|TestConformance/dynamo'"${SKIP:+|$SKIP}"
}

# The forms of names differ only in the client. The fake has to answer as each version does.
conformance() { on "$1" gotest -run 'TestConformance/zookeeper/curator$|TestZooKeeperDifferential$' ./integration; }

configurations() { on "$newest" env HOLDFAST_CONFIGURATIONS=all go test -race -count=1 -timeout 30m -run TestConfigurations ./integration; }

# What doctor finds of permissions and queues depends on the version.
doctor() { on "$newest" gotest -run 'TestDoctorCounter$|TestScripts$/^doctor' ./integration/cli; }

peers() { with_peers gotest -run 'TestInterop' ./integration; }

# The modes without expiry differ only in the client, and so do TTLs, hooks, input, elections and several keys: they are tested on
# dynalite.
on_moto() {
	HOLDFAST_DYNAMODB=moto HOLDFAST_OPERATIONS=800 with_peers gotest ./integration \
		-run 'TestConformance/dynamodb|TestDynamoConditionCheck|TestDynamoDifferential$' \
		-skip 'TestConformance/dynamodb/(Fail|G8_|G9_|G12_|G15_|G18_)'
}

# ferretdb_program builds FerretDB as a library: its own command cannot be built from the module proxy.
ferretdb_program() {
	local home=${cache%/*}/ferretdb-$ferretdb
	[ ! -x "$home/ferretdb" ] || return 0
	mkdir -p "$home"
	cat >"$home/main.go" <<-'END'
		package main

		import (
			"context"
			"os"

			"github.com/FerretDB/FerretDB/ferretdb"
		)

		func main() {
			server, err := ferretdb.New(&ferretdb.Config{
				Listener: ferretdb.ListenerConfig{TCP: os.Args[1]}, Handler: "sqlite", SQLiteURL: "file:" + os.Args[2] + "/",
			})
			if err == nil {
				err = server.Run(context.Background())
			}
			panic(err)
		}
	END
	printf 'module ferretdb\n\ngo 1.25.0\n\nrequire github.com/FerretDB/FerretDB v%s\n' "$ferretdb" >"$home/go.mod"
	(cd "$home" && GOWORK=off tries go build -mod=mod -o ferretdb .)
}

# FerretDB does not compare and write atomically. The differential test has to find that.
on_ferretdb() {
	local data pid out addr=127.0.0.1:$((33000 + RANDOM % 20000)) code=0
	ferretdb_program || return 1
	data=$(mktemp -d)
	"${cache%/*}/ferretdb-$ferretdb/ferretdb" "$addr" "$data" >"$data/log" 2>&1 &
	pid=$!
	out=$(HOLDFAST_MONGODB_URI=mongodb://$addr go test -count=1 -run 'TestMongoDifferential$' ./integration 2>&1) || true
	grep -q 'Swaps of one record were carried out' <<<"$out" || code=1
	[ "$code" = 0 ] || printf '%s\n' "$out"
	kill "$pid"
	rm -rf "$data"
	return "$code"
}

ferretdb() { part "FerretDB $ferretdb, which the tests must refuse" on_ferretdb; }

others() {
	local code=0 version
	for version in "${zookeeper[@]:0:${#zookeeper[@]}-1}"; do
		part "ZooKeeper $version" conformance "$version" || code=1
	done
	part "ZooKeeper $newest, configured in other ways" configurations || code=1
	part "ZooKeeper $newest, examined by doctor" doctor || code=1
	return "$code"
}

programs() {
	local code=0
	part "Curator $curator and kazoo $kazoo" peers || code=1
	part "moto $moto" on_moto || code=1
	ferretdb || code=1
	return "$code"
}

test_all() {
	local code=0
	HOLDFAST_RESULTS=$(mktemp)
	export HOLDFAST_RESULTS
	part "ZooKeeper $newest" all_of_it "$newest" || code=1
	together others programs || code=1
	cat "$HOLDFAST_RESULTS"
	rm -f "$HOLDFAST_RESULTS"
	return "$code"
}

fetch_peers() {
	jars "curator-$curator" "org.apache.curator:curator-recipes:$curator" org.slf4j:slf4j-simple:1.7.36
	python "python-$kazoo-$moto" "kazoo==$kazoo" "moto[dynamodb,server]==$moto"
}

fetch_aws() { jars "aws-lock-client-$aws" "com.amazonaws:dynamodb-lock-client:$aws" org.slf4j:slf4j-simple:1.7.36; }

case ${1:-} in
home) printf '%s\n' "$cache/$2" ;;
fetch)
	case ${2:-} in
	newest) zookeeper=("$newest") ;;
	mongo) zookeeper=() ;;
	esac
	sum=$mongo_sum jars "mongo-java-server-$mongo" "de.bwaldvogel:mongo-java-server:$mongo"
	for version in "${zookeeper[@]}"; do
		jars "zookeeper-$version" "org.apache.zookeeper:zookeeper:$version" "${server[@]}" "$(log_of "$version")"
	done
	[ -n "${2:-}" ] || fetch_peers
	;;
peers)
	fetch_peers >&2
	fetch_aws >&2
	printf '%s\t%s\t%s\n' Curator "$curator" "$cache/curator-$curator/lib/*" kazoo "$kazoo" "$interpreter" \
		"AWS's lock client" "$aws" "$cache/aws-lock-client-$aws/lib/*"
	;;
test) test_all ;;
newest) part "ZooKeeper $newest" conformance "$newest" ;;
ferretdb) ferretdb ;;
everything) part "ZooKeeper $2" all_of_it "$2" ;;
*)
	printf 'versions: unknown argument %s\n' "${1:-}" >&2
	exit 2
	;;
esac

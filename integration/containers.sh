#!/usr/bin/env bash
# Runs the tests that talk to a server in a container, and only those.
#
# Uses the Docker daemon that answers. If none does, and the user is root on Debian, it installs docker.io and runs a daemon of
# its own, with all its state in a temporary directory; that daemon is stopped at the end. If an image cannot be pulled, a small
# one is built in its place: from this machine's own Java and ZooKeeper jars, or from Node.js and dynalite.
#
# Usage: integration/containers.sh [go test arguments]; the default is the conformance and container tests.
# Environment: HOLDFAST_ZOOKEEPER_IMAGE and HOLDFAST_DYNAMODB_IMAGE name the images.
set -euo pipefail
cd "$(dirname "$0")/.."

work=
daemon=
own_bridge=

say() { printf 'test-containers: %s\n' "$*"; }

cleanup() {
	local status=$?
	trap - EXIT
	if [ -n "$daemon" ]; then
		# Leftovers of a test that timed out would keep the daemon's mounts busy.
		docker ps -aq | xargs -r docker rm -f >/dev/null 2>&1 || true
		kill "$daemon" 2>/dev/null || true
		wait "$daemon" 2>/dev/null || true
		[ -z "$own_bridge" ] || ip link delete docker0 2>/dev/null || true
	fi
	[ -z "$work" ] || rm -rf "$work"
	exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

docker_answers() { command -v docker >/dev/null && timeout 10 docker version --format '{{.Server.Version}}' >/dev/null 2>&1; }

start_daemon() {
	if ! command -v dockerd >/dev/null; then
		if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
			say "no Docker daemon answers; start one, or run this as root on Debian" >&2
			exit 1
		fi
		say "installing docker.io from Debian's packages"
		apt-get -qq update
		# Run level 1 keeps the package's scripts from starting the system-wide service.
		RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends docker.io iptables >/dev/null
	fi
	local driver socket=$work/docker.sock
	# Docker makes its bridge and leaves it behind.
	ip link show docker0 >/dev/null 2>&1 || own_bridge=yes
	for driver in overlay2 vfs; do
		say "starting a private dockerd ($driver)"
		# Published ports reach a container through Docker's own proxy: the machine's firewall and routing stay as they are.
		dockerd --storage-driver="$driver" -H "unix://$socket" --exec-root "$work/exec" --data-root "$work/data" \
			--iptables=false --ip-forward=false --pidfile "$work/pid" >"$work/dockerd.log" 2>&1 &
		daemon=$!
		export DOCKER_HOST=unix://$socket
		for _ in $(seq 150); do
			if docker_answers; then
				return
			fi
			kill -0 "$daemon" 2>/dev/null || break
			sleep 0.2
		done
		kill "$daemon" 2>/dev/null || true
		wait "$daemon" 2>/dev/null || true
		daemon=
	done
	say "dockerd did not start; its log ends:" >&2
	tail -20 "$work/dockerd.log" >&2
	exit 1
}

# build_zookeeper imports a root file system with a minimal Java run time and ZooKeeper's jars.
build_zookeeper() {
	local root=$work/zookeeper jar=/usr/share/java/zookeeper.jar java jre lib
	java=$(dirname "$(dirname "$(readlink -f "$(command -v javac)")")")
	jre=$root/opt/java
	mkdir -p "$root"/{opt,conf,data,tmp,usr/share/java}
	"$java/bin/jlink" --output "$jre" --no-header-files --no-man-pages --compress=0 \
		--add-modules java.base,java.management,java.naming,java.security.jgss,java.security.sasl,java.xml,jdk.management,jdk.unsupported
	cp -L "$jar" /usr/share/java/slf4j-simple.jar "$root/usr/share/java/"
	# The manifest folds long lines: a line that starts with a space continues the last.
	for lib in $(unzip_manifest "$jar" | tr -d '\r' | sed -e ':a' -e 'N' -e '$!ba' -e 's/\n //g' | sed -n 's/^Class-Path: //p'); do
		[ ! -e "$lib" ] || cp -L "$lib" "$root/usr/share/java/"
	done
	copy_libraries "$root"
	tar -C "$root" -c . | docker import \
		-c 'EXPOSE 2181' \
		-c 'ENTRYPOINT ["/opt/java/bin/java","-cp","/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar","org.apache.zookeeper.server.quorum.QuorumPeerMain","/conf/zoo.cfg"]' \
		- "$1" >/dev/null
}

# build_dynamodb imports a root file system with Node.js and dynalite.
build_dynamodb() {
	local root=$work/dynamodb modules=integration/testdata/npm/node_modules
	mkdir -p "$root"/{opt,tmp}
	cp -L "$(compgen -G "$modules/node-*/bin/node" || command -v node)" "$root/opt/node"
	cp -R "$modules" "$root/opt/node_modules"
	copy_libraries "$root"
	# As in the dynamoserver package: dynalite otherwise exits when a client hangs up in the middle of a request.
	cat >"$root/opt/survive.js" <<-'EOF'
		process.on("uncaughtException", e => {
			if (e.code !== "ECONNRESET") { console.error(e); process.exit(1) }
		})
	EOF
	tar -C "$root" -c . | docker import \
		-c 'EXPOSE 8000' \
		-c 'ENTRYPOINT ["/opt/node","--require","/opt/survive.js","/opt/node_modules/dynalite/cli.js","--port","8000","--createTableMs","0","--deleteTableMs","0","--updateTableMs","0"]' \
		- "$1" >/dev/null
}

# copy_libraries adds the shared libraries that the programs below a root file system's /opt need.
copy_libraries() {
	local root=$1 lib
	# ldd fails on scripts.
	{ find "$root/opt" -type f \( -name '*.so' -o -perm -100 \) -exec ldd {} + 2>/dev/null || true; } |
		grep -o '/[^ ]*\.so[^ ]*' | grep -v "^$root" | sort -u | while read -r lib; do
		[ -e "$lib" ] || continue
		mkdir -p "$root$(dirname "$lib")"
		cp -L "$lib" "$root$lib"
	done
}

# unzip_manifest prints a jar's manifest with the JDK's own tool: a bare machine has no unzip.
unzip_manifest() {
	mkdir -p "$work/manifest"
	(cd "$work/manifest" && jar xf "$1" META-INF/MANIFEST.MF && cat META-INF/MANIFEST.MF)
}

# Sockets have short names only; the temporary directory of a build may have a long one.
work=$(mktemp -d /tmp/holdfast-docker-XXXXXX)
docker_answers || start_daemon

# provide IMAGE NAME: sets image to the IMAGE, pulled, or to a local image that build_NAME has made.
provide() {
	image=$1
	if docker image inspect "$image" >/dev/null 2>&1; then
		say "image $image is here"
	elif say "pulling $image" && timeout 120 docker pull -q "$image" >/dev/null 2>&1; then
		say "pulled $image"
	else
		image=holdfast/$2:local
		say "cannot pull $1; building $image from what is on this machine"
		integration/setup.sh local
		"build_$2" "$image"
		# The clean-up container of testcontainers could not be pulled either.
		export TESTCONTAINERS_RYUK_DISABLED=true
	fi
}

provide "${HOLDFAST_ZOOKEEPER_IMAGE:-docker.io/library/zookeeper:3.9}" zookeeper
export HOLDFAST_ZOOKEEPER=docker HOLDFAST_ZOOKEEPER_IMAGE=$image
provide "${HOLDFAST_DYNAMODB_IMAGE:-docker.io/amazon/dynamodb-local:latest}" dynamodb
export HOLDFAST_DYNAMODB=docker HOLDFAST_DYNAMODB_IMAGE=$image
export TESTCONTAINERS_HOST_OVERRIDE=127.0.0.1
unset ZOOKEEPER_SERVERS DYNAMODB DYNAMODB_ENDPOINT
[ $# -gt 0 ] || set -- -race -count=1 -timeout 10m -run 'Conformance|Container' ./integration/...
say "go test $*"
go test "$@"

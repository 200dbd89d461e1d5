#!/usr/bin/env bash
# Sees to it that there is what the tests start: ZooKeeper, and a C compiler for the race detector.
#
# Usage: integration/setup.sh [any|local]
#   local   (default) a JDK and ZooKeeper's jars on this machine, because the fault tests stop, pause and partition the servers'
#           own processes; and a C compiler, which "go test -race" wants: what "make test" needs
#   any     ZooKeeper as above, or a Docker daemon: enough for programs that only talk to a server
#
# As root on Debian it installs what is missing. Otherwise it says what to install, and fails.
set -euo pipefail

need=${1:-local}
say() { printf 'setup: %s\n' "$*"; }

have() { command -v "$1" >/dev/null; }

java_is_here() {
	if [ -n "${JAVA_HOME:-}" ] && [ -x "$JAVA_HOME/bin/javac" ]; then
		return 0
	fi
	have java && have javac
}

zookeeper_is_here() {
	if [ -n "${ZOOKEEPER_HOME:-}" ]; then
		compgen -G "$ZOOKEEPER_HOME/lib/zookeeper-*.jar" >/dev/null
	else
		[ -f /usr/share/java/zookeeper.jar ] && [ -f /usr/share/java/slf4j-simple.jar ]
	fi
}

docker_answers() { have docker && timeout 10 docker version --format '{{.Server.Version}}' >/dev/null 2>&1; }

case $need in
any | local) ;;
*)
	say "unknown argument $need; want any or local" >&2
	exit 2
	;;
esac

# The names of the missing packages, as in Debian. The JDK, not only a run time: one test server is compiled when its test starts.
missing() {
	if [ "$need" = any ] && docker_answers; then
		return
	fi
	zookeeper_is_here || echo libzookeeper-java
	java_is_here || echo "$jdk"
	if [ "$need" = local ] && ! have "$(go env CC)"; then
		echo gcc libc6-dev
	fi
}

jdk=openjdk-17-jdk-headless
packages=$(missing | xargs)
if [ -z "$packages" ]; then
	say "everything is here"
	exit 0
fi
if [ "$(id -u)" != 0 ] || ! have apt-get; then
	say "missing; the names of Debian's packages: $packages" >&2
	say "Install them, or set JAVA_HOME to a JDK and ZOOKEEPER_HOME to an unpacked ZooKeeper distribution." >&2
	[ "$need" = local ] || say "Or start Docker." >&2
	exit 1
fi

say "installing Debian packages: $packages"
export DEBIAN_FRONTEND=noninteractive
apt-get -qq update
# Other releases of Debian have another version as their default.
[ -n "$(apt-cache madison "$jdk")" ] || jdk=default-jdk-headless
# Where man pages are left out, as in container images, the JDK's package fails without this directory.
mkdir -p /usr/share/man/man1
# shellcheck disable=SC2046  # one word for each package
apt-get -qq install -y --no-install-recommends $(missing) >/dev/null
packages=$(missing | xargs)
if [ -n "$packages" ]; then
	say "installed, and what it is for is still not found: $packages" >&2
	exit 1
fi
say "done"

#!/usr/bin/env bash
# Sees to it that there is a ZooKeeper to start.
#
# Usage: integration/setup.sh [any|local]
#   local   (default) a JDK and ZooKeeper's jars on this machine: what "make test" needs, because its fault tests stop, pause
#           and partition the servers' own processes
#   any     that, or a Docker daemon: enough for tests and programs that only talk to a server
#
# As root on Debian it installs what is missing. Otherwise it says what to install, and fails.
set -euo pipefail

need=${1:-local}
# The JDK, not only a run time: one test server is compiled when its test starts.
packages=(libzookeeper-java openjdk-17-jdk-headless)

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

if java_is_here && zookeeper_is_here; then
	say "a JDK and ZooKeeper's jars are here"
	exit 0
fi
if [ "$need" = any ] && docker_answers; then
	say "a Docker daemon answers"
	exit 0
fi
if [ "$(id -u)" != 0 ] || ! have apt-get; then
	say "no ZooKeeper to start. Either" >&2
	say "  - install these packages (names as in Debian): ${packages[*]}" >&2
	say "  - or set JAVA_HOME to a JDK and ZOOKEEPER_HOME to an unpacked ZooKeeper distribution" >&2
	[ "$need" = local ] || say "  - or start Docker" >&2
	exit 1
fi

java_is_here && packages=(libzookeeper-java)
say "installing Debian packages: ${packages[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get -qq update
# Where man pages are left out, as in container images, the JDK's package fails without this directory.
mkdir -p /usr/share/man/man1
install() { apt-get -qq install -y --no-install-recommends "$@" >/dev/null; }
if ! install "${packages[@]}"; then
	say "trying the release's own default JDK"
	install libzookeeper-java default-jdk-headless
fi
if ! java_is_here || ! zookeeper_is_here; then
	say "installed, and still not there: java, javac, /usr/share/java/zookeeper.jar or slf4j-simple.jar" >&2
	exit 1
fi
say "done"

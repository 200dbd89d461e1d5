#!/usr/bin/env bash
# Installs what the tests need: ZooKeeper, what they use of npm, Curator, kazoo, Spin, tmux, bash-completion, and a C
# compiler.
#
# Usage: integration/setup.sh [any|local|newest|versions|bench|fencing] [COMMAND...]
#   local   (default) a JDK and ZooKeeper's jars on this machine, because the fault tests stop, pause and partition the servers'
#           own processes; Node.js and npm's packages, because locks are shared with a client that comes from npm; Curator's jars,
#           and a Python with kazoo, because locks are shared with those; Spin, which checks the models of the recipes, with a C
#           compiler, which "go test -race" needs as well; tmux and bash-completion, with which the command line tool is tested; Maven, with
#           which integration/versions.sh fetches an emulator of MongoDB: what "make test" needs
#   versions
#           all of that, and a Python that makes virtual environments, with which integration/versions.sh fetches other
#           versions of servers and of the programs that locks are shared with: what
#           "make test-versions" needs
#   newest  all of local, and the newest ZooKeeper: what "make test-newest" needs
#   bench   a JDK, ZooKeeper's jars, Node.js and npm's packages as above, Maven and such a Python, with which integration/versions.sh
#           fetches the lock libraries of other languages: what "make bench" needs
#   fencing
#           the programs of PostgreSQL and MariaDB, neither of which is started: what "make test-fencing" needs
#   any     ZooKeeper as above and a server for DynamoDB's API from npm, or a Docker daemon: enough for programs that only talk to
#           a server; npm is not needed where DYNAMODB_ENDPOINT names a server, either
#
# npm's packages go into testdata/npm/node_modules; so does Node.js itself where the system's is older than 20, as Debian 12's is.
#
# As root on Debian it installs what is missing, and then runs the command if there is one. Without root, but with Docker, it
# runs the command as root in a Debian container, on a copy of the repository. Otherwise it says what to install, and fails.
#
# Elsewhere than on Debian, HOLDFAST_CURATOR is a classpath with Curator and an slf4j back end, and HOLDFAST_PYTHON a Python that
# has kazoo.
#
# Environment, for the container only:
#   HOLDFAST_GO_IMAGE      the image (default docker.io/library/golang:1.26-bookworm): Debian with Go and make
#   HOLDFAST_DOCKER_FLAGS  further flags for "docker run", such as '--network host'
# The variables that "go", "npm", the tests and proxies know are passed on. What Go and npm download and build is kept in Docker's
# volume holdfast-go-cache.
set -euo pipefail

need=${1:-local}
[ $# = 0 ] || shift
say() { printf 'setup: %s\n' "$*"; }

have() { command -v "$1" >/dev/null; }

# tries COMMAND... runs a command that needs a network, up to three times.
tries() {
	local n
	for n in 1 2 3; do
		"$@" && return
		[ "$n" = 3 ] || { say "try $n failed: $*" >&2; sleep "$((n * 10))"; }
	done
	return 1
}

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

maven_is_here() { have mvn; }

venv_is_here() { python3 -c 'import ensurepip, venv' 2>/dev/null; }

npm_is_here() { have npm && have node; }

curator_is_here() {
	local jar
	[ -z "${HOLDFAST_CURATOR:-}" ] || return 0
	for jar in curator-recipes curator-framework curator-client zookeeper slf4j-simple; do
		[ -f "/usr/share/java/$jar.jar" ] || return 1
	done
}

# Not only the python3 in PATH, which need not be the one that Debian's package is for.
kazoo_is_here() {
	local python
	for python in "${HOLDFAST_PYTHON:-/usr/bin/python3}" "${HOLDFAST_PYTHON:-python3}"; do
		if "$python" -c 'import kazoo.client' >/dev/null 2>&1; then
			return 0
		fi
	done
	return 1
}

c_compiler_is_here() {
	local cc
	# It may have flags.
	read -r cc _ <<<"$(go env CC)"
	have "$cc"
}

docker_answers() { have docker && timeout 10 docker version --format '{{.Server.Version}}' >/dev/null 2>&1; }

case $need in
any | local | newest | versions | bench | fencing) ;;
*)
	say "unknown argument $need; want any, local, newest, versions, bench or fencing" >&2
	exit 2
	;;
esac

npm_is_wanted() {
	case $need in
	any) [ -z "${DYNAMODB_ENDPOINT:-}" ] && ! docker_answers ;;
	fencing) return 1 ;;
	esac
}

# The names of the missing packages, as in Debian. The JDK, not only a run time: one test server is compiled when its test starts.
missing() {
	if [ "$need" = fencing ]; then
		compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || echo postgresql
		have mariadb-install-db || echo mariadb-server-core
		have my_print_defaults || echo mariadb-client-core
		return
	fi
	if [ "$need" = any ] && docker_answers; then
		return
	fi
	zookeeper_is_here || echo libzookeeper-java
	java_is_here || echo "$jdk"
	if npm_is_wanted && ! npm_is_here; then
		echo nodejs npm
	fi
	case $need in local | newest | versions | bench) maven_is_here || echo maven ;; esac
	case $need in versions | bench) venv_is_here || echo python3-venv ;; esac
	case $need in
	local | newest | versions)
		c_compiler_is_here || echo gcc libc6-dev
		curator_is_here || echo libcurator-recipes-java
		kazoo_is_here || echo python3-kazoo
		have spin || echo spin
		have tmux || echo tmux
		[ -f /usr/share/bash-completion/bash_completion ] || echo bash-completion
		;;
	esac
}

# in_container runs a command as root in a Debian container. The repository goes there through a pipe: nothing in it can change,
# and it works with a daemon anywhere.
in_container() {
	local image=${HOLDFAST_GO_IMAGE:-docker.io/library/golang:1.26-bookworm} flags=() name testflags
	cd "$(dirname "$0")/.."
	say "missing here: $packages; not root, but Docker answers: running \"$*\" in a container of $image"
	read -ra flags <<<"${HOLDFAST_DOCKER_FLAGS:-}"
	for name in CI ZOOKEEPER_SERVERS HOLDFAST_ZOOKEEPER DYNAMODB DYNAMODB_ENDPOINT HOLDFAST_DYNAMODB{,_IMAGE,_PORT} HOLDFAST_MONGODB_URI \
		AWS_{REGION,DEFAULT_REGION,ACCESS_KEY_ID,SECRET_ACCESS_KEY,SESSION_TOKEN} \
		{HTTP,HTTPS,NO}_PROXY {http,https,no}_proxy GOPRIVATE GONOPROXY GONOSUMDB GOTOOLCHAIN npm_config_registry; do
		flags+=(-e "$name") # unchanged, and only if set
	done
	# These may be set in Go's own configuration, too.
	for name in GOPROXY GOSUMDB GOFLAGS; do
		flags+=(-e "$name=$(go env "$name")")
	done
	# So may npm's. In the container npm finds no configuration but this.
	if have npm; then
		flags+=(-e "npm_config_registry=$(npm config get registry 2>/dev/null)")
	fi
	# make reads the variable as text in which a dollar is two.
	testflags=${TESTFLAGS:-}
	flags+=(-e "TESTFLAGS=${testflags//\$/\$\$}")
	# shellcheck disable=SC2016  # the dollars are the inner shell's
	tar -c --exclude=./.git --exclude=node_modules . |
		docker run --rm -i -v holdfast-go-cache:/cache -e GOMODCACHE=/cache/mod -e GOCACHE=/cache/build -e XDG_CACHE_HOME=/cache "${flags[@]}" "$image" \
			bash -euc '
				# The end of this shell, which is process 1, is the end of all.
				trap "exit 130" INT
				trap "exit 143" TERM
				mkdir /holdfast
				cd /holdfast
				tar -x --no-same-owner
				integration/setup.sh "$@" </dev/null &
				wait $!
			' bash "$need" "$@"
}

# npm_packages installs what the lock file names, unless it is there.
npm_packages() (
	cd "$(dirname "$0")/testdata/npm"
	[ ! node_modules/.package-lock.json -nt package-lock.json ] || exit 0
	flags=(--ignore-scripts --no-audit --no-fund --prefer-offline --loglevel=error)
	# The optional packages are Node.js.
	! node -e 'process.exit(process.versions.node.split(".")[0] < 20 ? 1 : 0)' || flags+=(--omit=optional)
	tries npm ci "${flags[@]}" >/dev/null
)

# finish installs npm's packages, and goes on to the command.
finish() {
	! npm_is_wanted || npm_packages || {
		say "cannot install npm's packages; see above" >&2
		exit 1
	}
	case $need in
	local) "$(dirname "$0")/versions.sh" fetch mongo ;;
	newest) "$(dirname "$0")/versions.sh" fetch newest ;;
	versions) "$(dirname "$0")/versions.sh" fetch ;;
	bench) "$(dirname "$0")/versions.sh" peers >/dev/null ;;
	esac
	say "$1"
	shift
	[ $# = 0 ] || exec "$@"
	exit 0
}

jdk=openjdk-17-jdk-headless
packages=$(missing | xargs)
[ -n "$packages" ] || finish "everything is here" "$@"
if [ "$(id -u)" != 0 ] || ! have apt-get; then
	if [ $# != 0 ] && docker_answers; then
		in_container "$@"
		exit
	fi
	say "missing; the names of Debian's packages: $packages" >&2
	say "Install them, or set JAVA_HOME to a JDK, ZOOKEEPER_HOME to an unpacked ZooKeeper distribution, HOLDFAST_CURATOR to a classpath and" >&2
	say "HOLDFAST_PYTHON to a Python with kazoo, and put Node.js, npm, spin, tmux and, if it is missing, mvn into PATH; bash-completion belongs into /usr/share." >&2
	if docker_answers; then
		say "Or leave it: \"make test\" then runs in a container, as Docker answers." >&2
	else
		say "Or start Docker, and allow this user to use it." >&2
	fi
	exit 1
fi

say "installing Debian packages: $packages"
export DEBIAN_FRONTEND=noninteractive
tries apt-get -qq update
# Other releases of Debian have another version as their default.
[ -n "$(apt-cache madison "$jdk")" ] || jdk=default-jdk-headless
# Where man pages are left out, as in container images, the JDK's package fails without this directory.
mkdir -p /usr/share/man/man1
no_cluster=/etc/postgresql-common/createcluster.d/holdfast.conf
if [[ $packages == *postgresql* ]]; then # its package starts a server otherwise
	mkdir -p "${no_cluster%/*}"
	echo 'create_main_cluster = false' >"$no_cluster"
fi
# shellcheck disable=SC2046  # one word for each package
tries apt-get -qq install -y --no-install-recommends $(missing) >/dev/null
rm -f "$no_cluster"
packages=$(missing | xargs)
if [ -n "$packages" ]; then
	say "installed, and what it is for is still not found: $packages" >&2
	exit 1
fi
finish "done" "$@"

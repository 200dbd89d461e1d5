#!/usr/bin/env bash
# Runs a command on a machine that is made worse than this one, as root on Linux: the verdict of a test must depend on the
# library, not on the machine.
#
# Usage: integration/slow.sh quota COMMAND...    with at most one CPU for the command and all that it starts
#        integration/slow.sh freeze COMMAND...   while all of these stand still for 0.3 to 2.5 s, every 4 to 16 s
#
# It uses the cgroups of the machine, version 1 or 2. The exit status is the command's, or 2 if there are no cgroups to be had.
set -euo pipefail

how=${1:-}
shift || true
name=holdfast-$$
all=/sys/fs/cgroup

no() {
	printf 'slow: %s\n' "$*" >&2
	exit 2
}

[ $# != 0 ] || no 'want quota or freeze, and a command'
if [ -f "$all/cgroup.controllers" ]; then # version 2
	group=$all/$name
	freezing=(cgroup.freeze 1 0)
	limit=('cpu.max=100000 100000')
	[ "$how" != quota ] || echo +cpu >"$all/cgroup.subtree_control" || no 'no controller for CPUs'
else
	case $how in freeze) group=$all/freezer/$name ;; *) group=$all/cpu/$name ;; esac
	freezing=(freezer.state FROZEN THAWED)
	limit=(cpu.cfs_period_us=100000 cpu.cfs_quota_us=100000)
fi
mkdir "$group" || no "cannot make $group"

# between FROM TO prints a random time between two, in seconds; they are in milliseconds.
between() {
	local ms=$(($1 + RANDOM % ($2 - $1)))
	printf '%d.%03d' "$((ms / 1000))" "$((ms % 1000))"
}

freezer=
tidy() {
	[ -z "$freezer" ] || kill "$freezer" 2>/dev/null || true
	[ "$how" != freeze ] || echo "${freezing[2]}" >"$group/${freezing[0]}"
	# What the command left behind ends before the group does.
	local pid tries
	for tries in 1 2 3 4 5; do
		while read -r pid; do kill -9 "$pid" 2>/dev/null || true; done <"$group/cgroup.procs"
		! rmdir "$group" 2>/dev/null || return 0
		sleep "$tries"
	done
}
trap tidy EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

case $how in
quota)
	for file in "${limit[@]}"; do
		echo "${file#*=}" >"$group/${file%%=*}"
	done
	;;
freeze)
	while :; do
		sleep "$(between 4000 16000)"
		echo "${freezing[1]}" >"$group/${freezing[0]}"
		sleep "$(between 300 2500)"
		echo "${freezing[2]}" >"$group/${freezing[0]}"
	done &
	freezer=$!
	;;
*) no "unknown argument $how; want quota or freeze" ;;
esac
code=0
(
	echo "$BASHPID" >"$group/cgroup.procs"
	exec "$@"
) || code=$?
exit "$code"

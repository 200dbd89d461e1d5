#!/usr/bin/env bash
# Checks the Promela models exhaustively with Spin: it must prove each property in all states, and find the counterexample
# when a cure is removed.
#
# Usage: integration/model/run.sh [-v] [short|full] [NAME...]
#   short  the cases marked so: the most telling, about forty seconds of one core
#   full   (default) all cases: about nineteen minutes
#   NAME   only these cases, or all cases of a model: zookeeper-queue, for example
#   -v     print the events of each counterexample, and the verifier's command
#
# Each model X.pml has a table X.cases beside it. A line of that is
#
#   name | expectation | switches | what it shows
#
# expectation  "proof": the search is complete and finds no error; or "counterexample TEXT": the search ends with an error whose
#              message contains TEXT, such as the name of the variable that is asserted, or "invalid end state". The word "short"
#              before it puts the case into the short form as well.
# switches     words: -DNAME[=VALUE] for the model's preprocessor, cc:FLAG for the compiler of the verifier (cc:-DBFS: the shortest
#              counterexample), pan:FLAG for the verifier itself (pan:-a pan:-Nliveness for the formula "liveness").
# Empty lines and those that begin with # are left out.
#
# The exit status is 0 if every case is as expected, 1 if not, 2 if there was nothing to run.
set -uo pipefail
cd "$(dirname "$0")" || exit 2

# Bounds for each case, far above what any needs.
seconds=900
megabytes=6000

verbose=
if [ "${1:-}" = -v ]; then
	verbose=1
	shift
fi
form=full
case ${1:-} in
short | full)
	form=$1
	shift
	;;
esac
wanted=" $* "

for program in spin gcc timeout; do
	if ! command -v "$program" >/dev/null; then
		printf 'model: %s is missing: run "make setup"\n' "$program" >&2
		exit 2
	fi
done

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
# The verifier runs in the background, so that a signal is heard at once.
child=
trap '[ -z "$child" ] || kill "$child" 2>/dev/null; exit 130' INT
trap '[ -z "$child" ] || kill "$child" 2>/dev/null; exit 143' TERM

# trim TEXT: without the spaces around it.
trim() { sed -e 's/^[[:space:]]*//' -e 's/[[:space:]]*$//' <<<"$1"; }

# search OPTIMISATION SWITCH...: builds the verifier of $model in $dir, and runs it; its output is in $dir/out. Fails if it could not
# be built.
search() {
	local word defines=() cc=("$1" -w "-DMEMLIM=$megabytes" -DVECTORSZ=4096) pan=(-m2000000 -w22) safety=-DSAFETY claim=-DNOCLAIM
	shift
	for word; do
		case $word in
		-D* | -U*) defines+=("$word") ;;
		cc:*) cc+=("${word#cc:}") ;;
		pan:*)
			pan+=("${word#pan:}")
			case $word in
			pan:-a) safety='' ;;
			pan:-l) safety='' claim='' ;; # with cc:-DNP: its claim is that a loop goes on for ever
			pan:-N*) claim='' ;;
			esac
			;;
		*)
			printf 'unknown switch %s\n' "$word" >"$dir/out"
			return 1
			;;
		esac
	done
	cp "$model.pml" "$dir/" || return 1
	[ -z "$verbose" ] || printf '  spin -a %s %s.pml; gcc %s pan.c; ./pan %s\n' "${defines[*]}" "$model" "${cc[*]} $safety $claim" "${pan[*]}"
	(
		cd "$dir" || exit 1
		rm -f pan* ./*.trail
		# shellcheck disable=SC2086  # an empty word is to vanish
		spin -a "${defines[@]}" "$model.pml" && gcc "${cc[@]}" $safety $claim -o pan pan.c
	) >"$dir/out" 2>&1 || return 1
	(
		cd "$dir" || exit 1
		ulimit -v $(((megabytes + 2000) * 1024))
		exec timeout "$seconds" ./pan -n "${pan[@]}"
	) >"$dir/out" 2>&1 &
	child=$!
	wait "$child"
	printf 'exit status %s\n' $? >>"$dir/out"
	child=
	replay=(spin -t -T "${defines[@]}" "$model.pml")
}

# verdict: what the verifier found, from $dir/out: "proof", "counterexample MESSAGE" or why it is neither.
verdict() {
	local message
	# Each of these ends a search early, without a result.
	if grep -qE 'out of memory|reached -DMEMLIM|memory limit|max search depth too small|VECTORSZ|hash array size exceeded' "$dir/out"; then
		echo "incomplete: $(grep -m1 -E 'out of memory|reached -DMEMLIM|memory limit|max search depth too small|VECTORSZ|hash array size exceeded' "$dir/out")"
		return
	fi
	message=$(sed -n 's/^pan:[0-9]*: \(.*\) (at depth [0-9]*)$/\1/p' "$dir/out" | head -n 1)
	if [ -n "$message" ]; then
		echo "counterexample $message"
	elif grep -q 'errors: 0$' "$dir/out" && grep -q '^exit status 0$' "$dir/out" && ! grep -qi 'search not completed' "$dir/out"; then
		echo proof
	else
		echo "incomplete: $(tail -n 3 "$dir/out" | tr '\n' ' ')"
	fi
}

# check NAME EXPECTATION SWITCHES: one case, and its line.
check() {
	local name=$1 expected=$2 result began ended states depth ok=ok
	local -a words
	read -ra words <<<"$3"
	began=$(date +%s%N)
	# Most counterexamples are found sooner than the compiler optimises.
	if search "$([ "$expected" = proof ] && echo -O2 || echo -O0)" "${words[@]}"; then
		result=$(verdict)
	else
		result="not built: $(head -n 3 "$dir/out" | tr '\n' ' ')"
	fi
	ended=$(date +%s%N)
	case $expected in
	proof) [ "$result" = proof ] || ok=FAILED ;;
	"counterexample "?*)
		# The message found must contain the expected one.
		case $result in
		"counterexample "*"${expected#counterexample }"*) ;;
		*) ok=FAILED ;;
		esac
		;;
	*)
		result="bad expectation"
		ok=FAILED
		;;
	esac
	states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' "$dir/out" | head -n 1)
	depth=$(sed -n 's/.*depth reached \([0-9]*\),.*/\1/p' "$dir/out" | head -n 1)
	printf '%-34s %-32s %10s %8s %7s  %s\n' "$name" "$expected" "${states:--}" "${depth:--}" \
		"$(((ended - began) / 1000000000)).$((((ended - began) / 100000000) % 10))" "$ok"
	if [ $ok != ok ]; then
		printf '  %s: found: %s\n' "$name" "$result"
		return 1
	fi
	if [ -n "$verbose" ] && [ "$expected" != proof ]; then
		printf '  %s\n' "$result"
		# The model's output describes the events.
		(cd "$dir" && timeout 60 "${replay[@]}") | sed -e '/^spin: /,$d' -e 's/^[[:space:]]*/    /'
	fi
}

ran=0 status=0
for table in *.cases; do
	[ -f "$table" ] || continue
	model=${table%.cases}
	while IFS='|' read -r name expected switches _; do
		name=$(trim "$name")
		[[ -n $name && $name != \#* ]] || continue
		expected=$(trim "$expected")
		short=
		if [[ $expected = "short "* ]]; then
			short=1
			expected=$(trim "${expected#short }")
		fi
		[ "$form" = full ] || [ -n "$short" ] || continue
		[[ $wanted = "  " || $wanted = *" $name "* || $wanted = *" $model "* ]] || continue
		[ $ran != 0 ] || printf '%-34s %-32s %10s %8s %7s\n' name expected states depth seconds
		ran=$((ran + 1))
		check "$name" "$expected" "$switches" </dev/null || status=1
	done <"$table"
done
if [ $ran = 0 ]; then
	echo "model: no such case" >&2
	exit 2
fi
exit $status

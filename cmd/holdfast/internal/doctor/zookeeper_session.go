package doctor

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/zklock"
)

// session compares the session timeout with what was asked for.
func (e *ensemble) session(ctx context.Context) ([]Finding, error) {
	asked := e.Options.SessionTimeout
	if asked == 0 {
		asked = zklock.DefaultSessionTimeout
	}
	got := e.main.client.SessionTimeout()
	for _, s := range e.reached() {
		if other := s.client.SessionTimeout(); other != got {
			return only(warning(
				"give all servers the same minSessionTimeout, maxSessionTimeout and tickTime",
				"%s gives sessions of %v, and %s of %v: what a client gets depends on where it is connected", e.main.addr, got, s.addr, other,
			))
		}
	}
	tick := parseTick(e.word(ctx, e.main.addr, "conf"))
	return only(judgeSession(asked, got, e.Options.TickTime, tick))
}

// judgeSession judges the session timeout that was negotiated. The tick is 0 if
// the server does not tell.
func judgeSession(asked, got, configured, tick time.Duration) Finding {
	told := fmt.Sprintf("a timeout of %v was asked for, and is what the servers give", asked)
	if asked != got {
		told = fmt.Sprintf("a timeout of %v was asked for, and the servers give %v", asked, got)
	}
	if tick > 0 {
		told += fmt.Sprintf(" (%.3g ticks of %v)", float64(got)/float64(tick), tick)
	}
	switch {
	case tick > 0 && got < 2*tick && configured < tick:
		return problem(fmt.Sprintf("give --tick-time %v, or a --lease well above %v", tick, 2*tick),
			"%s: with less than two ticks, a holder that was cut off may learn of its session's end too late", told)
	case asked != got:
		return warning(fmt.Sprintf("give --lease %v, or change minSessionTimeout or maxSessionTimeout of the servers", got), "%s", told)
	case tick > 0 && got <= 2*tick:
		return warning(fmt.Sprintf("give a --lease well above %v", 2*tick), "%s: at two ticks, the leader's pings must be exactly on time", told)
	}
	return ok("%s", told)
}

// parseTick finds the tick in a server's answer to conf.
func parseTick(answer string) time.Duration {
	for line := range strings.Lines(answer) {
		if text, found := strings.CutPrefix(strings.TrimSpace(line), "tickTime="); found {
			if ms, err := strconv.Atoi(text); err == nil && ms > 0 {
				return time.Duration(ms) * time.Millisecond
			}
		}
	}
	return 0
}

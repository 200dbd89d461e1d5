package zktimes

import (
	"testing"
	"time"
)

// TestRelations compares the durations with each other, at every session timeout.
func TestRelations(t *testing.T) {
	for _, session := range []time.Duration{100 * time.Millisecond, 800 * time.Millisecond, 10 * time.Second, time.Minute, 24 * time.Hour} {
		for _, heartbeat := range []time.Duration{-1, 0, time.Millisecond, session / 5, time.Hour} {
			x := Of(session, heartbeat, 0, 0)
			wide := Of(session, heartbeat, 0, x.MaxMargin)
			for name, holds := range map[string]bool{
				"a sync of an idle session proves something of the one before it":              x.Window < x.Idle,
				"an idle session can prove enough for a grant":                                 session-x.Idle-x.Window > x.Enough,
				"so does one of a session with a wide margin, or the next":                     wide.Window < 2*wide.Idle && wide.Idle <= x.Idle,
				"with the widest margin, the first heartbeats of an idle session come in time": wide.Idle+wide.Window+wide.Again+x.MaxMargin <= session,
				"with the widest margin, a heartbeat may be answered late":                     2*x.Heartbeat+x.Window+x.MaxMargin <= session-x.Enough+x.Heartbeat && x.MaxMargin > session/20,
				"a margin that is left out is not wide":                                        Of(session, heartbeat, 0, session/20).Idle == x.Idle,
				"there is a heartbeat per window":                                              x.Heartbeat > 0 && x.Heartbeat <= x.Window,
				"a server that does not answer a heartbeat is left before it ends":             x.Heartbeat+x.Answer <= session/2,
				"after a server fell silent there is time to greet another":                    x.Silence < session && x.Answer < x.Silence,
				"after a pause and a try there is some of the session left":                    session < time.Second || x.Redial+x.FirstReply < session/2,
				"pauses that double have room to":                                              x.Doubt < x.MaxDoubt,
				"the window leaves some of the lease at the longest timeout":                   Of(x.Longest, heartbeat, 0, 0).Window+x.Heartbeat < session,
				"with a longer tick, the window is longer: a leader pings by ticks":            Of(session, heartbeat, session, 0).Window > x.Window,
			} {
				if !holds {
					t.Errorf("T = %v, heartbeat %v: it does not hold that %s: %+v", session, heartbeat, name, x)
				}
			}
		}
	}
}

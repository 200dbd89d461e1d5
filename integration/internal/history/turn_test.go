package history

import (
	"strings"
	"testing"
	"time"
)

// TestTurn: a key is free from the confirmed release of the last who had it on, or else from a lease after it was lost, or its process
// was gone. From then on, or since it asked, nobody may have waited for longer than a turn, apart from when two faults hit its requests.
func TestTurn(t *testing.T) {
	rules := scriptRules
	rules.Turn, rules.Hushed, rules.Endured = 50*time.Millisecond, []string{"events lost"}, []string{"events lost"}
	waits := func(s *script, from, to int64) *script { return s.acquire("2.1", 2, from, to).held("2.1", 2, to+1) }
	released := func() *script { return begin().release("1.1", 1, 70, 80) }
	gone := func() *script { return begin().killed("1.1", 70) }
	lost := func() *script {
		return begin().lost("1.1", 1, 70, "session_expired").call("1.1", Release, 1, 190, 195, Gone)
	}
	together := func(s *script) *script { // of two who asked
		return s.call("3.1", Acquire, 0, 20, 200, GaveUp).edit(
			func(r *Record) bool { return r.What == Invoke && r.Process == "3.1" }, func(r *Record) { r.All = true },
		)
	}
	stands := func(s *script) *script { return s.asked(2, func(r *Record) { r.Stands = true }) }
	fault := func(s *script, kind string, from, to int64) *script {
		return s.add(from, Record{What: Begin, N: 1, Fault: kind}).add(to, Record{What: End, N: 1, Fault: kind})
	}
	hit := func(s *script, n int, from, to int64, client string) *script { // single requests
		target := client + ": next 3 of kind grant, unexpected EOF"
		return s.add(from, Record{What: Begin, N: n, Fault: "late request", Target: target}).add(to, Record{What: End, N: n, Fault: "late request", Target: target})
	}
	beset := func(client string) *script { return hit(hit(released(), 1, 85, 120, client), 2, 90, 130, client) }
	late := func(s *script, to int64) *script { // a request of a call that is over by then
		return fault(s.call("3.1", Acquire, 0, 20, 30, GaveUp).killed("3.1", 90), "late request", 25, to)
	}
	for name, c := range map[string]struct {
		s    *script
		says string // "": nothing is wrong
	}{
		"in time":                             {waits(released(), 5, 130), ""},
		"late":                                {waits(released(), 5, 131), `process "2.1": acquire, invoked at 0.005000 s, has waited from 0.080000 s to 0.131000 s (51ms)`},
		"after a while in which nobody asked": {waits(released(), 200, 250), ""},
		"late, after that":                    {waits(released(), 200, 251), "from 0.200000 s to 0.251000 s"},
		"a release that goes on":              {waits(begin().call("1.1", Release, 1, 70, 80, Pending), 5, 230), ""},
		"late, after that was over":           {waits(begin().call("1.1", Release, 1, 70, 80, Pending), 5, 231), "from 0.180000 s"},
		"a process that was killed":           {waits(gone(), 5, 220), ""},
		"late, after it was killed":           {waits(gone(), 5, 221), "from 0.170000 s"},
		"one that was lost":                   {waits(lost(), 5, 220), ""},
		"late, after it was lost":             {waits(lost(), 5, 221), "from 0.170000 s"},
		"one that was killed while it asked":  {waits(released().call("3.1", Acquire, 0, 20, 0, "").killed("3.1", 90), 5, 240), ""},
		"late, after that one was killed":     {waits(released().call("3.1", Acquire, 0, 20, 0, "").killed("3.1", 90), 5, 241), "from 0.190000 s"},
		"behind one whose client was closed, and not confirmed": {
			waits(released().call("3.1", Acquire, 0, 20, 75, GaveUp).call("3.1", Close, 0, 70, 75, Pending), 5, 325), "",
		},
		"late, behind that one": {
			waits(released().call("3.1", Acquire, 0, 20, 75, GaveUp).call("3.1", Close, 0, 70, 75, Pending), 5, 326), "from 0.275000 s",
		},
		"a request that arrives after its process was killed":        {waits(late(released(), 120), 5, 270), ""},
		"late, behind a request that arrived after that":             {waits(late(released(), 120), 5, 271), "from 0.220000 s"},
		"a request that arrives before its process was killed":       {waits(late(released(), 86), 5, 240), ""},
		"late, behind a request that arrived before that":            {waits(late(released(), 86), 5, 241), "from 0.190000 s"},
		"late, behind one whose process was there when that arrived": {waits(fault(released().call("3.1", Acquire, 0, 20, 30, GaveUp), "late request", 25, 120), 5, 271), "from 0.080000 s"},
		"late, behind one that was not killed":                       {waits(released().call("3.1", Acquire, 0, 20, 130, GaveUp), 5, 240), "acquire, invoked at"},
		"for ever":                                                   {released().call("2.1", Acquire, 0, 5, 400, GaveUp), "from 0.080000 s to 0.400000 s"},
		"for as long as its process was there":                       {released().call("2.1", Acquire, 0, 5, 0, "").killed("2.1", 130), ""},
		"for longer":                                                 {released().call("2.1", Acquire, 0, 5, 0, "").killed("2.1", 131), "from 0.080000 s to 0.131000 s"},
		"a try":                                                      {released().call("2.1", Try, 0, 5, 300, GaveUp), ""},
		"one that stands for election":                               {stands(waits(released(), 5, 300)), ""},
		"another may have it among others":                           {waits(together(released()), 5, 350), ""},
		"late, after that one gave up":                               {waits(together(released()), 5, 351), "from 0.300000 s"},
		"events are lost":                                            {waits(fault(released(), "events lost", 85, 200), 5, 250), ""},
		"late, though events have been lost":                         {waits(fault(released(), "events lost", 85, 200), 5, 251), "from 0.200000 s"},
		"late, though something else was wrong":                      {waits(fault(released(), "break", 85, 200), 5, 150), "from 0.080000 s"},
		"two faults at once hit who waits":                           {waits(beset("client 2"), 5, 160), ""},
		"late, after two faults at once":                             {waits(beset("client 2"), 5, 161), "from 0.080000 s to 0.161000 s"},
		"late, and two faults hit others":                            {waits(beset("client 1"), 5, 131), "from 0.080000 s"},
		"late, though one fault hits who waits":                      {waits(hit(released(), 1, 85, 120, "client 2"), 5, 131), "from 0.080000 s"},
		"others had it for a moment":                                 {waits(released().acquire("3.1", 3, 20, 120).held("3.1", 3, 121).release("3.1", 3, 122, 125), 5, 170), ""},
		"late, after others had it for a moment":                     {waits(released().acquire("3.1", 3, 20, 120).held("3.1", 3, 121).release("3.1", 3, 122, 125), 5, 176), "from 0.125000 s"},
	} {
		t.Run(name, func(t *testing.T) {
			var wrong []string
			for _, v := range Check(c.s.calm().records, rules) {
				if v.Rule == RuleTurn {
					wrong = append(wrong, v.String())
				}
			}
			if c.says == "" && len(wrong) > 0 || c.says != "" && (len(wrong) != 1 || !strings.Contains(wrong[0], c.says)) {
				t.Errorf("%q, want one that says %q", wrong, c.says)
			}
			rules := rules
			rules.Turn = 0
			for _, v := range Check(c.s.records, rules) {
				if v.Rule == RuleTurn {
					t.Errorf("it is not to be checked, and %v", v)
				}
			}
		})
	}
}

// TestPrompt: when nothing is wrong, and has not been for a while, no request waits for long if nothing is in its way.
func TestPrompt(t *testing.T) {
	rules := scriptRules
	rules.Prompt, rules.Relief, rules.Recovery = 40*time.Millisecond, 20*time.Millisecond, 60*time.Millisecond
	rules.Endured, rules.Lasting, rules.Queued = []string{"lost reply", "client killed"}, []string{"client killed"}, true
	waits := func(till int64) *script {
		return begin().release("1.1", 1, 70, 80).acquire("2.1", 2, 5, till).held("2.1", 2, till+1)
	}
	fault := func(s *script, n int, kind string, from, to int64) *script {
		s.add(from, Record{What: Begin, N: n, Fault: kind})
		if to > 0 {
			s.add(to, Record{What: End, N: n, Fault: kind})
		}
		return s
	}
	mates := func(free int64) *script { // one of two permits is free from then on, and another request waits for it until 400
		return (&script{}).acquire("1.1", 1, 0, 1).held("1.1", 1, 2).release("1.1", 1, free-5, free).
			acquire("3.1", 3, 0, 2).held("3.1", 3, 3, 395).release("3.1", 3, 396, 399).
			acquire("2.1", 9, 5, 400).held("2.1", 9, 401).release("2.1", 9, 402, 403).permits(2, 1, 3, 9)
	}
	for name, c := range map[string]struct {
		s    *script
		says string // "": nothing is wrong
	}{
		"in time":                    {waits(120), ""},
		"late":                       {waits(121), "has waited from 0.080000 s to 0.121000 s (41ms)"},
		"after a fault":              {fault(waits(160), 1, "stall", 30, 60), ""},
		"late, after a fault":        {fault(waits(161), 1, "stall", 30, 60), "from 0.120000 s to 0.161000 s"},
		"after one of no weight":     {fault(waits(125), 1, "lost reply", 60, 65), ""},
		"late, after one of those":   {fault(waits(126), 1, "lost reply", 60, 65), "from 0.085000 s to 0.126000 s"},
		"after one that lasts":       {fault(waits(165), 1, "client killed", 60, 65), ""},
		"late, after one that lasts": {fault(waits(166), 1, "client killed", 60, 65), "from 0.125000 s to 0.166000 s"},
		"in a fault":                 {fault(waits(400), 1, "stall", 100, 0), ""},
		"before a fault":             {fault(waits(400), 1, "stall", 120, 0), ""},
		"late, before a fault":       {fault(waits(400), 1, "stall", 121, 0), "from 0.080000 s to 0.121000 s"},
		"between two":                {fault(fault(waits(400), 1, "stall", 30, 60), 2, "stall", 160, 0), ""},
		"late, between two":          {fault(fault(waits(400), 1, "stall", 30, 60), 2, "stall", 161, 0), "from 0.120000 s to 0.161000 s"},
		"in a fault, within another": {fault(fault(waits(400), 1, "stall", 30, 390), 2, "lost reply", 50, 51), ""},
		"behind two mates":           {mates(390), ""},
		"late, behind one mate":      {mates(80), "one of 2, invoked at 0.005000 s, has waited from 0.080000 s to 0.400000 s"},
		"behind another limit":       {mates(80).permits(3, 1, 3), ""},
		"behind a waiting lock":      {mates(80).call("4.1", Acquire, 0, 25, 390, GaveUp), ""},
		"late, before a later lock":  {mates(80).call("4.1", Acquire, 0, 26, 390, GaveUp), "from 0.080000 s to 0.400000 s"},
		"late, behind a gone lock":   {mates(80).call("4.1", Acquire, 0, 3, 100, GaveUp), "from 0.105000 s to 0.400000 s"},
		"late, with a lower token":   {mates(80).acquire("4.1", 10, 3, 404), "from 0.080000 s to 0.400000 s"},
		"behind one of AcquireAll":   {mates(80).acquire("4.1", 10, 3, 404).asked(10, func(r *Record) { r.All = true }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			found := Check(c.s.calm().records, rules)
			if c.says == "" && len(found) > 0 || c.says != "" && (len(found) != 1 || found[0].Rule != RuleTurn || !strings.Contains(found[0].Text, c.says)) {
				t.Errorf("%v, want one that says %q", found, c.says)
			}
		})
	}
}

// TestPromptOverTheDead: where only those who watch a key can tell that its holder is gone, who asks later has a lease more.
func TestPromptOverTheDead(t *testing.T) {
	rules := scriptRules
	rules.Prompt, rules.Relief, rules.Recovery, rules.Watched = 40*time.Millisecond, 20*time.Millisecond, 60*time.Millisecond, true
	gone := func() *script { return begin().killed("1.1", 70) }
	asked := func() *script { return begin().release("1.1", 1, 70, 80).asks("3.1", 0, 85, 0, "").killed("3.1", 90) }
	gaveUp := func(closed string) *script {
		return begin().release("1.1", 1, 70, 80).asks("3.1", 0, 85, 90, GaveUp).call("3.1", Close, 0, 90, 95, closed)
	}
	waits := func(s *script, from, till int64) *script {
		return s.acquire("2.1", 9, from, till).held("2.1", 9, till+1)
	}
	others := func(s *script) *script {
		return s.acquire("4.1", 5, 260, 300).held("4.1", 5, 301).release("4.1", 5, 305, 310)
	}
	for name, c := range map[string]struct {
		s    *script
		says string // "": nothing is wrong
	}{
		"it was waited for":                          {waits(gone(), 5, 210), ""},
		"late":                                       {waits(gone(), 5, 211), "from 0.170000 s to 0.211000 s"},
		"who asked later has to watch it":            {waits(gone(), 330, 470), ""},
		"late, after that":                           {waits(gone(), 330, 471), "from 0.430000 s to 0.471000 s"},
		"who was killed while it asked":              {waits(asked(), 330, 470), ""},
		"late, after that was killed":                {waits(asked(), 330, 471), "from 0.430000 s to 0.471000 s"},
		"who closed and could not be sure":           {waits(gaveUp(Pending), 330, 470), ""},
		"late, after that one closed":                {waits(gaveUp(Pending), 330, 471), "from 0.430000 s to 0.471000 s"},
		"late, after one who was sure":               {waits(gaveUp(OK), 330, 371), "from 0.330000 s to 0.371000 s"},
		"one that was lost":                          {waits(begin().lost("1.1", 1, 70, "lease_expired"), 330, 470), ""},
		"a release that goes on":                     {waits(begin().call("1.1", Release, 1, 70, 80, Pending), 330, 470), ""},
		"late, after a release":                      {waits(begin().release("1.1", 1, 70, 80), 330, 371), "from 0.330000 s to 0.371000 s"},
		"late, after one that it had waited for":     {waits(begin().release("1.1", 1, 70, 80), 60, 121), "from 0.080000 s to 0.121000 s"},
		"others have shared it":                      {waits(others(gone()).permits(2, 5), 330, 470), ""},
		"late, after another had it alone":           {waits(others(gone()), 330, 371), "from 0.330000 s to 0.371000 s"},
		"late, after one that asked later had it so": {waits(others(asked()), 330, 371), "from 0.330000 s to 0.371000 s"},
	} {
		t.Run(name, func(t *testing.T) {
			var wrong []string
			for _, v := range Check(c.s.calm().records, rules) {
				if v.Rule == RuleTurn {
					wrong = append(wrong, v.Text)
				}
			}
			if c.says == "" && len(wrong) > 0 || c.says != "" && (len(wrong) != 1 || !strings.Contains(wrong[0], c.says)) {
				t.Errorf("%q, want one that says %q", wrong, c.says)
			}
		})
	}
}

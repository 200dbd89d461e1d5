package history

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// The rules, as they stand in [Violation]. The package documentation explains each.
const (
	RuleExclusion = "exclusion"
	RuleVerified  = "verified"
	RuleTokens    = "tokens"
	RuleEnded     = "ended"
	RuleCause     = "cause"
	RuleFailed    = "failed"
	RuleTerm      = "term"
	RuleFree      = "free"
	RuleObserve   = "observe"
	RuleAsk       = "ask"
	RuleTurn      = "turn"
	RuleSettle    = "settle"
	RuleHistory   = "history"
)

// Rules describe the run to a check.
type Rules struct {
	// Lease is the engine's: the session timeout that was negotiated, or the lease of an item.
	Lease time.Duration
	// Settle is how long a call may take that was under way when the faults ended, or was invoked later. If it is 0, no time
	// is checked, and no record of [Calm] is needed.
	Settle time.Duration
	// Steady says that the machine of the run never stands still: then a lease does not run out by itself.
	Steady bool
	// Endured are the kinds of faults that cost no lease on such a machine. Lasting are Endured faults that leave a grant which ends with
	// its lease: of a killed process, or of a request that arrived late.
	Endured, Lasting []string
	// Singly are Endured faults that may cost a lease together with another fault of the same target.
	Singly []string
	// Turn is how long a key may stay free while a request waits for it, in a run that has only Endured faults. 0 is not checked.
	//
	// A grant is in the way of a request until its release was confirmed, or until a lease after its holder was lost or its process was
	// gone. With Queued, only earlier requests are in the way: each one that does not share with the request, and as many sharers as can
	// hold the key together. Times in which two faults hit requests of the client do not count.
	Turn time.Duration
	// Prompt is the same, in any run, for times in which nothing is wrong, nor has been for as long as Recovery; after Endured faults
	// that are not Lasting, as long as Relief. 0 is not checked.
	Prompt, Recovery, Relief time.Duration
	// Queued says that the engine serves requests in the order of their arrival, which is also the order of their tokens.
	Queued bool
	// Watched says that the engine shows dead holders until a client has watched them for a lease: a request that was invoked after
	// their death waits a lease longer, and a break excuses no holder unless it was made at once.
	Watched bool
	// Hushed are the kinds of faults in which the engine does not send clients the events that they watch for.
	Hushed []string
	// Endless says that grants have no lease: a disconnected holder believes in a grant that was broken or reclaimed until it
	// observes the end.
	Endless bool
	// Late is how long after the end of a process its requests may still reach the engine. 0 means Lease.
	Late time.Duration
	// Namesakes says that a holder sees only the owner of its successor. So it cannot tell a process of its owner that waited for the
	// end of the lease from one that reclaimed the lock.
	Namesakes bool
}

// Violation is one violation of a rule.
type Violation struct {
	Rule     string
	Key      string
	From, To int64  // when, in nanoseconds of [Now]
	Text     string // with times since the first record of the history
}

// String returns the violation in one line.
func (v Violation) String() string {
	if v.Key == "" {
		return v.Rule + ": " + v.Text
	}
	return fmt.Sprintf("%s: key %q: %s", v.Rule, v.Key, v.Text)
}

// Check returns all violations in a history, ordered by their beginnings. Records may be in any order. At most [MostPerRule] violations of
// a rule are listed; one more says how many were left out.
func Check(records []Record, rules Rules) []Violation {
	if rules.Late == 0 {
		rules.Late = rules.Lease
	}
	f := &findings{counts: map[string]int{}}
	s := newStory(records, rules, f)
	for _, check := range []func(*findings){
		s.checkRecords, s.checkTokens, s.checkEnded, s.checkCauses, s.checkFailed, s.checkExclusion, s.checkVerified, s.checkRefused,
		s.checkTerms, s.checkCloses, s.checkFree, s.checkObservers, s.checkAsks, s.checkTurns, s.checkSettle,
	} {
		check(f)
	}
	return f.sorted()
}

// MostPerRule is how many violations of one rule are listed.
const MostPerRule = 20

type findings struct {
	list   []Violation
	counts map[string]int // by rule; nil if the violations are not wanted
}

func (f *findings) add(v Violation) {
	if f.counts == nil {
		return
	}
	if f.counts[v.Rule]++; f.counts[v.Rule] <= MostPerRule {
		f.list = append(f.list, v)
	}
}

func (f *findings) sorted() []Violation {
	slices.SortStableFunc(f.list, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Key, b.Key))
	})
	for _, rule := range slices.Sorted(maps.Keys(f.counts)) {
		if n := f.counts[rule] - MostPerRule; n > 0 {
			last := f.list[len(f.list)-1].From
			f.list = append(f.list, Violation{Rule: rule, From: last, To: last, Text: fmt.Sprintf("and %d more", n)})
		}
	}
	return f.list
}

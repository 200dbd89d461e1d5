package history

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// The rules, as they stand in [Violation].
const (
	RuleExclusion    = "exclusion"    // two hold a key that exclude each other, or more than there are permits
	RuleTokens       = "tokens"       // a token is used twice, or falls
	RuleEnded        = "ended"        // a lock that had ended was live again
	RuleCause        = "cause"        // a lock ended for a cause that had not happened
	RuleFailed       = "failed"       // a call failed without a fault to explain it
	RuleLinearizable = "linearizable" // no order of the calls explains what they answered
	RuleTerm         = "term"         // lead ran outside of its term
	RuleFree         = "free"         // a key, or a permit, that nobody has cannot be had
	RuleObserve      = "observe"      // an observer was told what was not so, or not told the last state
	RuleNamed        = "named"        // a refusal named a holder who was none
	RuleAsk          = "ask"          // a holder was not told that it was asked for its lock, or was told and nobody had asked
	RuleTurn         = "turn"         // a key stayed free, for which somebody waited
	RuleSettle       = "settle"       // after the faults, a call did not return in time
	RuleHistory      = "history"      // the records contradict each other, or show nothing
)

// Rules is what a check needs to know about the run.
type Rules struct {
	// Lease is the engine's: the session timeout that was negotiated, or the lease of an item.
	Lease time.Duration
	// Settle is how long a call may take that was under way when the faults ended, or was invoked later. If it is 0, no time
	// is checked, and no record of [Calm] is needed.
	Settle time.Duration
	// Steady says that the machine of the run never stands still: then a lease does not run out by itself.
	Steady bool
	// Endured are the kinds of faults for which no lease runs out on such a machine; Lasting are those of them that leave something
	// which goes with a lease: a lock whose holder was killed, or a grant that nobody knows of.
	Endured, Lasting []string
	// Singly are those of the Endured that may cost a lease together with another fault of the same target.
	Singly []string
	// Turn is how long a key may stay free while somebody waits for it, in a run that has no other faults than these. 0 is not
	// checked.
	Turn time.Duration
	// Prompt is the same, in any run, for a time in which nothing is wrong, nor has been for as long as Recovery; Relief is that of
	// Endured faults that are not Lasting. 0 is not checked.
	Prompt, Recovery, Relief time.Duration
	// Queued says that the engine serves requests in the order of their arrival, which is also that of their tokens.
	Queued bool
	// Watched says that the engine shows holders that are gone until somebody has watched them for a lease: who asks for a key later
	// than they went has a lease more.
	Watched bool
	// Hushed are the kinds of faults in which the engine does not tell clients what they watch for.
	Hushed []string
	// Endless says that grants have no lease: who is cut off from the engine believes in one that was broken or reclaimed until it
	// hears of that.
	Endless bool
	// Late is how long after a process has ended its requests may still reach the engine. 0 means Lease.
	Late time.Duration
	// Namesakes says that a holder cannot tell a process that has waited for the end of its lease from one that has reclaimed
	// its lock, if that has the same owner: of what took its place, it sees only whose it is.
	Namesakes bool
}

// Violation is one violation of a rule.
type Violation struct {
	Rule     string
	Key      string
	From, To int64  // when, in nanoseconds of [Now]
	Text     string // with times since the first record of the history
}

// String returns what is wrong, in one line.
func (v Violation) String() string {
	if v.Key == "" {
		return v.Rule + ": " + v.Text
	}
	return fmt.Sprintf("%s: key %q: %s", v.Rule, v.Key, v.Text)
}

// Check returns all that is wrong with a history, in the order of when it went wrong. Records may be in any order. The
// package documentation explains each rule. At most [MostPerRule] violations of a rule are listed; one more says how many
// were left out.
func Check(records []Record, rules Rules) []Violation {
	if rules.Late == 0 {
		rules.Late = rules.Lease
	}
	f := &findings{counts: map[string]int{}, dirty: map[string]bool{}}
	s := newStory(records, rules, f)
	s.checkRecords(f)
	s.checkTokens(f)
	s.checkEnded(f)
	s.checkCauses(f)
	s.checkFailed(f)
	s.checkExclusion(f)
	s.checkRefused(f)
	s.checkLinearizable(f)
	s.checkTerms(f)
	s.checkCloses(f)
	s.checkFree(f)
	s.checkObservers(f)
	s.checkNamed(f)
	s.checkAsks(f)
	s.checkTurns(f)
	s.checkSettle(f)
	return f.sorted()
}

// MostPerRule is how many violations of one rule are worth reading.
const MostPerRule = 20

type findings struct {
	list   []Violation
	counts map[string]int  // by rule; nil if nobody asks
	dirty  map[string]bool // keys of which a rule about grants has been broken
}

func (f *findings) add(v Violation) {
	if f.counts == nil {
		return
	}
	switch v.Rule {
	case RuleExclusion, RuleTokens, RuleEnded:
		f.dirty[v.Key] = true
	}
	if f.counts[v.Rule]++; f.counts[v.Rule] <= MostPerRule {
		f.list = append(f.list, v)
	}
}

func (f *findings) sorted() []Violation {
	slices.SortStableFunc(f.list, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Key, b.Key))
	})
	var last int64 = math.MinInt64
	for _, v := range f.list {
		last = max(last, v.From)
	}
	for _, rule := range []string{
		RuleExclusion, RuleTokens, RuleEnded, RuleCause, RuleFailed, RuleLinearizable, RuleTerm, RuleFree, RuleObserve,
		RuleNamed, RuleAsk, RuleTurn, RuleSettle, RuleHistory,
	} {
		if n := f.counts[rule] - MostPerRule; n > 0 {
			f.list = append(f.list, Violation{Rule: rule, From: last, To: last, Text: fmt.Sprintf("and %d more", n)})
		}
	}
	return f.list
}

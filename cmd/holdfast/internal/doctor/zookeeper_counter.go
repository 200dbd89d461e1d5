package doctor

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast/internal/sequence"
)

// next is the sequence number that the next child gets. What a server shows of
// the counter is twice that, less the number of children, in 32 bits.
func (l lockNode) next() uint32 { return uint32(l.stat.Cversion+l.stat.NumChildren) / 2 }

// counters looks for locks of which the sequence counter nears its end.
func (e *ensemble) counters(ctx context.Context) ([]Finding, error) {
	set, err := e.locks(ctx)
	if refusedByZooKeeper(err) {
		return only(ok(seePermissions))
	}
	if err != nil {
		return nil, err
	}
	highest := uint32(0)
	var findings []Finding
	const cure = "stop those who use the lock, delete %s, start them again (docs/operating.md, A counter near its end)"
	for _, l := range set {
		if l.stat == nil {
			continue
		}
		next := l.next()
		highest = max(highest, next)
		switch {
		case next >= sequence.Last:
			findings = append(findings, problem(fmt.Sprintf(cure, l.path),
				"the sequence counter of %s is at its end, %d: Curator, kazoo and go-zookeeper's Lock may let two have it", l.path, sequence.Last))
		case next >= sequence.Warn:
			findings = append(findings, warning(fmt.Sprintf(cure, l.path),
				"the sequence counter of %s is at %d, %d before its end", l.path, next, sequence.Last-next))
		}
	}
	if len(findings) == 0 {
		return only(ok("the highest sequence counter is at %d of %d", highest, sequence.Last))
	}
	return findings, nil
}

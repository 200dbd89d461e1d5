package dynamolock

import "github.com/holdfast-go/holdfast/driver"

// unanswered are writes of a grant, or of its intent, that have had no answer: they may have been carried out, or may still
// be. They have one owner at a time, who has to see that nothing comes of them:
//
//	the contender   while its call goes on: its next write finds out
//	the hold        of the lock that it was granted: its release has them looked after
//	the goroutine   that a caller leaves behind whose ctx has ended with a write under way
//	the leftover    of the key, when all of these are over: it reads the item until none can arrive any more
//
// handOver passes them on.
type unanswered struct {
	requests int
	last     driver.Instant // after the last was given up
}

// handOver returns them, to another owner.
func (u *unanswered) handOver() unanswered {
	all := *u
	*u = unanswered{}
	return all
}

func (u *unanswered) none() bool { return u.requests == 0 }

func (u *unanswered) add(ended driver.Instant) {
	u.merge(unanswered{requests: 1, last: ended})
}

func (u *unanswered) merge(o unanswered) {
	switch {
	case o.none():
		return
	case u.none():
		*u = o
		return
	}
	u.requests += o.requests
	if o.last.Sub(u.last) > 0 {
		u.last = o.last
	}
}

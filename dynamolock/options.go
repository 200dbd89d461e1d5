package dynamolock

import (
	"log/slog"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// The defaults and bounds of [Options].
const (
	DefaultLease       = 20 * time.Second
	MinLease           = time.Second
	MaxLease           = 24 * time.Hour
	DefaultPoll        = time.Second
	MinPoll            = 10 * time.Millisecond
	DefaultOpenTimeout = 15 * time.Second
	DefaultTTL         = 30 * 24 * time.Hour
	MinTTL             = 24 * time.Hour
)

// Mode says what happens to a lock whose holder falls silent, and which form its item
// has. All programs that use a key must use the same mode.
type Mode int

const (
	// FailOpen: the lock is a lease. Others can take it when its holder has not renewed
	// it for that long. The item is that of the npm client's FailOpen.
	FailOpen Mode = iota

	// FailClosed: the lock never expires. When its holder dies, somebody has to end it
	// by Break, or claim it by WithReclaim. The item is that of the npm client's
	// FailClosed, which has no token: Token is 0, so resources cannot be fenced. A
	// release deletes the item.
	FailClosed

	// FailClosedFenced is FailClosed with a token, so the item stays after a release.
	// Only holdfast knows this form.
	FailClosedFenced
)

// String returns the name of the mode.
func (m Mode) String() string {
	switch m {
	case FailOpen:
		return "FailOpen"
	case FailClosed:
		return "FailClosed"
	case FailClosedFenced:
		return "FailClosedFenced"
	}
	return "unknown"
}

// Options are the settings of a client. The zero value of each field but Table
// stands for its default. [New] copies them and never changes them.
type Options struct {
	// Table is the name or the ARN of the table. Required.
	Table string

	// Keys are the table's key attributes. Default: a partition key "id" of
	// type S.
	Keys Keys

	// Mode says whether locks expire with their lease. Default: FailOpen.
	Mode Mode

	// Lease is how long others wait for a silent holder. Default 0: [DefaultLease].
	// From [MinLease] to [MaxLease], in whole milliseconds. Each item has its holder's
	// lease, so clients may have different ones. In the modes that fail closed it only
	// sets the pace of heartbeats and retries.
	Lease time.Duration

	// Heartbeat is the time from one renewal of a lock to the next, and in the
	// modes that fail closed, from one check to the next. Default 0: Lease/4.
	// Less than a third of Lease, so that a few renewals can fail.
	Heartbeat time.Duration

	// Poll is the time from one read of a key that is waited for to the next, give or take
	// an eighth, and so how late a waiter may notice a release. Clients that only try a held key read it
	// once per Poll/10 at most, or per 100 ms if that is less. Default 0:
	// [DefaultPoll], or Lease if that is less. From [MinPoll] to Lease.
	Poll time.Duration

	// Timeout bounds each single request. Default 0: Lease/6, at most 5 s.
	// Positive; Heartbeat + 2 x Timeout must be less than Lease - Margin, so that one
	// lost request does not cost the lock. Heartbeats start with a shorter limit: Timeout/8,
	// but at least 250 ms, and at least three times what recent answers took. The limit rises
	// to Timeout as more of them in a row are not answered, and before the lease is over.
	Timeout time.Duration

	// RetryDelay is the delay before a failed heartbeat, release or read is tried again.
	// It doubles: up to Heartbeat/4 for heartbeats, up to Lease/4 for what is given back
	// in the background, and up to Heartbeat, or 30 s if that is less, for the rest.
	// Default 0: Heartbeat/50, from 10 ms to 1 s. Not more than Heartbeat. How Acquire
	// retries is set by [holdfast.WithRetry]. The SDK's own retries are switched off:
	// they do not know when a lease ends, and all requests share their quota.
	RetryDelay time.Duration

	// Margin is how much sooner a client gives up a lock than others may take it, for
	// clocks that run at different rates. Default 0: max(50 ms, Lease/20). Not negative;
	// more than half of Lease counts as half.
	Margin time.Duration

	// TrustLocalTime lets a waiter compare the time that a holder wrote into the item
	// with its own wall clock. It takes a lock that has expired by Margin or more by that
	// comparison, without watching it for a lease. That is safe only as long as the
	// clocks of all machines agree to within Margin and no process pauses. Default:
	// false. The npm client has the same option.
	TrustLocalTime bool

	// TTLAttribute, if set, is the attribute that tells DynamoDB's Time to Live when to
	// delete an unused item: TTL after it was last written. It must not be a key or one
	// of the lock's own attributes. Tokens go on rising when a deleted key comes back: see
	// G3 in the package documentation. Default "": items stay. In the modes that fail
	// closed, the item of a held lock does not have it.
	//
	// The clients of a table may have different settings here: see "Time to Live"
	// in docs/dynamodb.md.
	TTLAttribute string

	// TTL is how long an unused item stays, if TTLAttribute is set. Default
	// 0: [DefaultTTL]. At least [MinTTL], and ten times Lease. It counts from the
	// wall clock, or from the date in the server's answers if that is later.
	TTL time.Duration

	// OpenTimeout bounds New where ctx has no deadline. Default 0:
	// [DefaultOpenTimeout].
	OpenTimeout time.Duration

	// Owner is the default owner name, 1 to [holdfast.MaxOwner] bytes of UTF-8
	// without NUL. Default "": host:pid:random.
	Owner string

	// Logger receives the log of the client. Default nil: silent.
	Logger *slog.Logger

	// Hooks are called when something happens to the client or its locks. Each Heartbeat
	// has the Key of its lock; the modes that fail closed have no lease to renew, and
	// never call it. There is no queue, so Queued is never called. Default: none.
	Hooks holdfast.Hooks
}

// filled returns a copy of what New or CreateTable is given, as fill leaves it.
func filled(options *Options) (o Options, err error) {
	if options != nil {
		o = *options
	}
	err = o.fill()
	return o, err
}

// fill refuses what is out of bounds and fills in the defaults that are not
// holdfast's.
func (o *Options) fill() error {
	if err := checkTable(o.Table); err != nil {
		return err
	}
	if err := o.Keys.fill(); err != nil {
		return err
	}
	if o.Mode < FailOpen || o.Mode > FailClosedFenced {
		return driver.Invalid("Options.Mode", "%d is none of FailOpen, FailClosed, FailClosedFenced", int(o.Mode))
	}
	if err := o.fillTimes(); err != nil {
		return err
	}
	return o.fillTTL()
}

func (o *Options) fillTTL() error {
	if o.TTLAttribute == "" {
		if o.TTL != 0 {
			return driver.Invalid("Options.TTL", "it needs a TTLAttribute")
		}
		return nil
	}
	if err := o.Keys.checkFree("Options.TTLAttribute", o.TTLAttribute); err != nil {
		return err
	}
	if o.TTL == 0 {
		o.TTL = max(DefaultTTL, 10*o.Lease)
	}
	if least := max(MinTTL, 10*o.Lease); o.TTL < least {
		return driver.Invalid("Options.TTL", "%v, at least %v is needed", o.TTL, least)
	}
	return nil
}

// checkTable refuses a name that is missing, or that DynamoDB would refuse later.
func checkTable(name string) error {
	const least, most, arn = 3, 255, 1024
	switch {
	case name == "":
		return driver.Invalid("Options.Table", "it is empty")
	case strings.HasPrefix(name, "arn:") && len(name) <= arn:
	case len(name) < least || len(name) > most:
		return driver.Invalid("Options.Table", "%d bytes; a name has from %d to %d, an ARN at most %d", len(name), least, most, arn)
	}
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-', c == '.', c == ':', c == '/':
		default:
			return driver.Invalid("Options.Table", "%q has other characters than letters, digits, '_', '-' and '.'", name)
		}
	}
	return nil
}

package holdfastprom

import (
	"math"
	"slices"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/driver"
)

// Options configure a [Collector]. The zero value, like nil, has the defaults. New copies
// them.
type Options struct {
	// Engine and Client are the values of the labels with these names, for programs with
	// several clients: each registered Collector needs its own pair. Default "": in
	// Prometheus that is the same as no label.
	Engine, Client string

	// KeyLabel, if set, gives metrics about locks the label key: it returns the value for
	// a lock's key. It should have few values, such as the kind of the locked thing
	// without its number. For an AcquireAny that has not been granted the key is "". It is
	// called for one key at a time, if the Collector serves one client. In one registry,
	// either all Collectors must have it or none. Default: no such label.
	KeyLabel func(key string) string

	// The upper bounds of the buckets of histograms: in seconds, and for QueueBuckets
	// in waiters. HeldBuckets are those of terms, too. Each must be greater than the one before. Default nil: see
	// DefaultAcquireBuckets and the like.
	AcquireBuckets, HeldBuckets, HeartbeatBuckets, QueueBuckets []float64
}

// DefaultAcquireBuckets reach from a local server's round trip to a queue of minutes.
func DefaultAcquireBuckets() []float64 {
	return []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}
}

// DefaultHeldBuckets reach from a critical section to a day of leadership.
func DefaultHeldBuckets() []float64 {
	return []float64{.001, .01, .1, .5, 1, 5, 15, 60, 300, 900, 3600, 6 * 3600, 24 * 3600}
}

// DefaultHeartbeatBuckets reach from a local server's round trip to the length of a
// lease.
func DefaultHeartbeatBuckets() []float64 {
	return []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
}

// DefaultQueueBuckets reach to a thousand waiters.
func DefaultQueueBuckets() []float64 { return []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000} }

// resolve returns a copy with all defaults filled in, or an error.
func (o *Options) resolve() (Options, error) {
	var c Options
	if o != nil {
		c = *o
	}
	for name, value := range map[string]string{"Options.Engine": c.Engine, "Options.Client": c.Client} {
		if !utf8.ValidString(value) {
			return c, driver.Invalid(name, "%q is not valid UTF-8", value)
		}
	}
	for _, b := range []struct {
		name     string
		bounds   *[]float64
		standard []float64
	}{
		{"Options.AcquireBuckets", &c.AcquireBuckets, DefaultAcquireBuckets()},
		{"Options.HeldBuckets", &c.HeldBuckets, DefaultHeldBuckets()},
		{"Options.HeartbeatBuckets", &c.HeartbeatBuckets, DefaultHeartbeatBuckets()},
		{"Options.QueueBuckets", &c.QueueBuckets, DefaultQueueBuckets()},
	} {
		if len(*b.bounds) == 0 {
			*b.bounds = b.standard
		}
		*b.bounds = slices.Clone(*b.bounds)
		last := math.Inf(-1)
		for _, bound := range *b.bounds {
			if !(bound > last) {
				return c, driver.Invalid(b.name, "%v is not greater than the bound before, %v", bound, last)
			}
			last = bound
		}
	}
	return c, nil
}

package memlock

import "github.com/holdfast-go/holdfast/driver"

// NewOn is New on another clock.
func NewOn(c driver.Clock, options *Options) (*Client, error) {
	var o Options
	if options != nil {
		o = *options
	}
	o.clock = c
	return New(&o)
}

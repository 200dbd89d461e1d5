package dynamolock

// Lines is the number of keys that a client remembers because it waits for them or has
// tried them.
func Lines(c *Client) int {
	c.engine.mu.Lock()
	defer c.engine.mu.Unlock()
	return len(c.engine.lines)
}

// Leftovers is the number of keys that a client must still release after calls that are
// over

func Leftovers(c *Client) int {
	x := c.engine.leftovers
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.byName)
}

// SetMaxLines sets how many keys clients remember, and returns how many it was.
func SetMaxLines(n int) int {
	was := maxLines
	maxLines = n
	return was
}

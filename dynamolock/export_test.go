package dynamolock

// Lines is the number of keys that a client remembers.
func Lines(c *Client) int {
	x := c.engine.lines
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.of)
}

// Streaks is the number of keys for which a client knows of failed writes.
func Streaks(c *Client) int {
	x := c.engine.streaks
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.of)
}

// HasData reports whether a client remembers the data of some lock.
func HasData(c *Client) bool {
	x := c.engine.lines
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, l := range x.of {
		if l.seen.item != nil && l.seen.item.data != nil {
			return true
		}
	}
	return false
}

// Leftovers is the number of keys that a client must still release after calls that have returned.
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

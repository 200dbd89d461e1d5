package dynamolock

// Lines is how many keys a client remembers that it waits for or has tried.
func Lines(c *Client) int {
	c.engine.mu.Lock()
	defer c.engine.mu.Unlock()
	return len(c.engine.lines)
}

// Errands is how many keys a client has yet to see to when those who called have
// gone.
func Errands(c *Client) int {
	x := c.engine.errands
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

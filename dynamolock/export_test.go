package dynamolock

// Lines is how many keys a client remembers that it waits for or has tried.
func Lines(c *Client) int {
	c.backend.mu.Lock()
	defer c.backend.mu.Unlock()
	return len(c.backend.lines)
}

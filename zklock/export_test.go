package zklock

// Chain has the client's permits of every limit but 1 wait as those of a large limit do.
func (c *Client) Chain() { c.engine.mostCounted = 1 }

package dynamolock

func Streaks(c *Client) int   { return 0 }
func Leftovers(c *Client) int { return 0 }

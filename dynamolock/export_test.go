package dynamolock

func Lines(c *Client) int     { return 0 }
func Streaks(c *Client) int   { return 0 }
func HasData(c *Client) bool  { return false }
func Leftovers(c *Client) int { return 0 }
func SetMaxLines(n int) int   { return 0 }

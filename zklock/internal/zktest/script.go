package zktest

// Take takes the first byte off a script; 0 if there is none.
func Take(script *[]byte) byte {
	if len(*script) == 0 {
		return 0
	}
	first := (*script)[0]
	*script = (*script)[1:]
	return first
}

package zktest

import "encoding/binary"

// Take takes the first byte off a script; 0 if there is none.
func Take(script *[]byte) byte {
	if len(*script) == 0 {
		return 0
	}
	first := (*script)[0]
	*script = (*script)[1:]
	return first
}

// Take32 takes a number off a script.
func Take32(script *[]byte) int32 {
	return int32(binary.BigEndian.Uint32([]byte{Take(script), Take(script), Take(script), Take(script)}))
}

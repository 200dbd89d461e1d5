// Package jute reads and writes ZooKeeper's encoding, for what speaks its protocol without go-zookeeper.
package jute

import "encoding/binary"

// A Decoder reads values from Rest. A value that is cut short reads as zero, and sets Bad.
type Decoder struct {
	Rest []byte
	Bad  bool
}

func (d *Decoder) take(n int) []byte {
	if n < 0 || n > len(d.Rest) {
		d.Rest, d.Bad = nil, true
		return nil
	}
	taken := d.Rest[:n]
	d.Rest = d.Rest[n:]
	return taken
}

// Int32 reads an int.
func (d *Decoder) Int32() int32 {
	if b := d.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

// Int64 reads a long.
func (d *Decoder) Int64() int64 {
	if b := d.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

// Bool reads a boolean.
func (d *Decoder) Bool() bool {
	b := d.take(1)
	return len(b) == 1 && b[0] != 0
}

// Bytes reads a buffer, which is nil if its length is -1.
func (d *Decoder) Bytes() []byte {
	n := d.Int32()
	if n < 0 || d.Bad {
		return nil
	}
	return append([]byte{}, d.take(int(n))...)
}

// String reads a ustring.
func (d *Decoder) String() string { return string(d.Bytes()) }

// List reads a vector of what read reads.
func List[T any](d *Decoder, read func() T) []T {
	var out []T
	for n := d.Int32(); n > 0 && !d.Bad; n-- {
		out = append(out, read())
	}
	return out
}

// An Encoder appends values to B.
type Encoder struct{ B []byte }

// Int32 writes an int.
func (e *Encoder) Int32(v int32) { e.B = binary.BigEndian.AppendUint32(e.B, uint32(v)) }

// Int64 writes a long.
func (e *Encoder) Int64(v int64) { e.B = binary.BigEndian.AppendUint64(e.B, uint64(v)) }

// Bool writes a boolean.
func (e *Encoder) Bool(v bool) {
	if v {
		e.B = append(e.B, 1)
		return
	}
	e.B = append(e.B, 0)
}

// Bytes writes a buffer. Nil has the length -1.
func (e *Encoder) Bytes(p []byte) {
	if p == nil {
		e.Int32(-1)
		return
	}
	e.String(string(p))
}

// String writes a ustring.
func (e *Encoder) String(s string) {
	e.Int32(int32(len(s)))
	e.B = append(e.B, s...)
}

// Strings writes a vector of ustrings.
func (e *Encoder) Strings(all []string) {
	e.Int32(int32(len(all)))
	for _, s := range all {
		e.String(s)
	}
}

// Frame returns what write writes, behind its length.
func Frame(write func(e *Encoder)) []byte {
	e := &Encoder{B: make([]byte, 4, 64)}
	write(e)
	binary.BigEndian.PutUint32(e.B, uint32(len(e.B)-4))
	return e.B
}

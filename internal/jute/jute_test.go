package jute

import (
	"slices"
	"testing"
)

func TestRoundTrip(t *testing.T) {
	e := &Encoder{}
	e.Int32(-7)
	e.Int64(1 << 40)
	e.Bool(true)
	e.Bool(false)
	e.Bytes(nil)
	e.Bytes([]byte{})
	e.String("ü")
	e.Strings([]string{"a", ""})
	d := &Decoder{Rest: e.B}
	if n := d.Int32(); n != -7 {
		t.Error(n)
	}
	if n := d.Int64(); n != 1<<40 {
		t.Error(n)
	}
	if !d.Bool() || d.Bool() {
		t.Error("booleans")
	}
	if b := d.Bytes(); b != nil {
		t.Error(b)
	}
	if b := d.Bytes(); b == nil || len(b) > 0 {
		t.Error(b)
	}
	if s := d.String(); s != "ü" {
		t.Error(s)
	}
	if all := List(d, d.String); !slices.Equal(all, []string{"a", ""}) {
		t.Error(all)
	}
	if d.Bad || len(d.Rest) > 0 {
		t.Errorf("bad %v, %d bytes left", d.Bad, len(d.Rest))
	}
}

func TestCutShort(t *testing.T) {
	for name, read := range map[string]func(*Decoder){
		"int32":  func(d *Decoder) { d.Int32() },
		"int64":  func(d *Decoder) { d.Int64() },
		"bool":   func(d *Decoder) { d.Bool() },
		"bytes":  func(d *Decoder) { d.Bytes() },
		"string": func(d *Decoder) { _ = d.String() },
		"list":   func(d *Decoder) { List(d, d.Int64) },
	} {
		for _, rest := range [][]byte{nil, {0, 0, 0}, {0x7f, 0xff, 0xff, 0xff}, {0, 0, 0, 9, 1}} {
			if name == "int32" && len(rest) >= 4 || name == "bool" && rest != nil {
				continue
			}
			d := &Decoder{Rest: rest}
			read(d)
			if !d.Bad {
				t.Errorf("%s of % x is not bad", name, rest)
			}
		}
	}
}

func TestFrame(t *testing.T) {
	if b := Frame(func(e *Encoder) { e.Bool(true) }); !slices.Equal(b, []byte{0, 0, 0, 1, 1}) {
		t.Errorf("% x", b)
	}
}

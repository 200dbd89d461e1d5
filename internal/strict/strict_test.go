package strict

import "testing"

func TestCheck(t *testing.T) {
	panics := func(ok bool) (text any) {
		defer func() { text = recover() }()
		Check(ok, "%d is not %d", 1, 2)
		return nil
	}
	if text := panics(false); text != nil {
		t.Errorf("outside of tests: %v", text)
	}
	On()
	if text := panics(true); text != nil {
		t.Errorf("what is so: %v", text)
	}
	if text := panics(false); text != "1 is not 2" {
		t.Errorf("what is not so: %v", text)
	}
}

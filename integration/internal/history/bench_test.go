package history

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"
)

// BenchmarkMillion measures the cost of a long run: reading and checking a million records.
func BenchmarkMillion(b *testing.B) {
	var lines bytes.Buffer
	write := json.NewEncoder(&lines)
	records := simulate(1, 8, 4, 10*time.Minute, true)
	for len(records) > 1_000_000 {
		records = records[:1_000_000]
	}
	for _, r := range records {
		if err := write.Encode(r); err != nil {
			b.Fatal(err)
		}
	}
	b.Logf("%d records, %d MB", len(records), lines.Len()>>20)
	b.Run("Read", func(b *testing.B) {
		for b.Loop() {
			if _, err := Read(bytes.NewReader(lines.Bytes())); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Check", func(b *testing.B) {
		for b.Loop() {
			Check(records, Rules{Lease: scriptRules.Lease})
		}
	})
	b.Run("Count", func(b *testing.B) {
		for b.Loop() {
			Count(records)
		}
	})
}

package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"
)

// Report is the whole result of a run.
type Report struct {
	Began    time.Time `json:"began"`
	Took     string    `json:"took"`
	Machine  Machine   `json:"machine"`
	Versions []Version `json:"versions"`
	Rows     []Row     `json:"rows"`
}

// Version is the version of a component.
type Version struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// numbers matches an array of numbers, as json.MarshalIndent writes it.
var numbers = regexp.MustCompile(`\[[-+0-9.eE,\s]+\]`)

// Encode writes the report as JSON, a list of numbers on one line.
func (r *Report) Encode() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(r); err != nil {
		return nil, err
	}
	return numbers.ReplaceAllFunc(b.Bytes(), func(list []byte) []byte {
		return []byte(strings.Join(strings.Fields(string(list)), ""))
	}), nil
}

// Decode reads what Encode has written.
func Decode(b []byte) (*Report, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	r := new(Report)
	if err := d.Decode(r); err != nil {
		return nil, err
	}
	for _, row := range r.Rows {
		if c := row.Contest; c != nil && (c.Ops < 1 || len(c.Ours.Blocks) == 0 || len(c.Ours.Blocks) != len(c.Other.Blocks)) {
			return nil, fmt.Errorf("row %q: its blocks are no pairs", row.Name)
		}
	}
	return r, nil
}

// Read reads a report from a file.
func Read(path string) (*Report, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r, err := Decode(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// Save writes the report to a file.
func (r *Report) Save(path string) error {
	b, err := r.Encode()
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o644)
}

// Setting says when and on what the run was made.
func (r *Report) Setting() string {
	var with []string
	for _, v := range r.Versions {
		with = append(with, v.Name+"\u00a0"+v.Version)
	}
	return fmt.Sprintf("%s, %s; %s", r.Began.UTC().Format(time.DateOnly), r.Machine, strings.Join(with, ", "))
}

// contests are those of a kind, grouped by place.
func (r *Report) contests(k kind) []Row {
	var places []string
	by := make(map[string][]Row)
	for _, row := range r.Rows {
		c := row.Contest
		if c == nil || c.kind() != k {
			continue
		}
		if len(by[c.Where]) == 0 {
			places = append(places, c.Where)
		}
		by[c.Where] = append(by[c.Where], row)
	}
	var out []Row
	for _, where := range places {
		out = append(out, by[where]...)
	}
	return out
}

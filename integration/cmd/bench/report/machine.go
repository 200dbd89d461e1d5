package report

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
)

// Machine is where a run was made.
type Machine struct {
	CPU        string `json:"cpu"`
	Cores      int    `json:"cores"`
	Virtual    bool   `json:"virtual"` // other virtual machines may use a part
	System     string `json:"system"`
	LoadBefore string `json:"load_before"` // averages over 1, 5 and 15 minutes
	LoadAfter  string `json:"load_after"`
}

// ThisMachine describes this machine before a run.
func ThisMachine() Machine {
	m := Machine{Cores: runtime.NumCPU(), System: runtime.GOOS + "/" + runtime.GOARCH, LoadBefore: Load()}
	b, _ := os.ReadFile("/proc/cpuinfo")
	m.CPU, m.Virtual = processor(string(b))
	return m
}

// String names the machine in a few words.
func (m Machine) String() string {
	virtual := ""
	if m.Virtual {
		virtual = "virtual "
	}
	return fmt.Sprintf("%s, %d %sCPUs, %s", m.CPU, m.Cores, virtual, m.System)
}

// processor reads Linux's name of the first processor. Not every architecture
// has one, and other systems have no such file.
func processor(cpuinfo string) (name string, virtual bool) {
	name = "unknown processor"
	for line := range strings.Lines(cpuinfo) {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(key) {
		case "model name":
			name = value
		case "flags":
			return name, slices.Contains(strings.Fields(value), "hypervisor")
		}
	}
	return name, false
}

// Load is the machine's load average, where there is one.
func Load() string {
	b, err := os.ReadFile("/proc/loadavg")
	fields := strings.Fields(string(b))
	if err != nil || len(fields) < 3 {
		return "unknown"
	}
	return strings.Join(fields[:3], " ")
}

package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/holdfast-go/holdfast/integration/internal/history"
)

// world is where a run takes place: on this machine, or in a simulation, in whose time and processes the same run happens.
type world struct {
	start   func(context.Context, casting) (stage, error) // servers
	process func(*journal, clientConfig) (process, error) // client processes
	now     func() int64                                  // for stamps
	history string                                        // the file of the journal; "": none
	steady  bool                                          // time does not go on while the machine stands still
	endured []string                                      // the kinds of faults that then cost no lease
	again   string                                        // the command that performs the same faults
}

// machine is the world of real servers and processes.
func machine(s settings) world {
	return world{
		start: engineOf(s.Engine).start,
		process: func(j *journal, config clientConfig) (process, error) {
			p, err := startProcess(s.Dir, j, config)
			if err != nil {
				return nil, err // not a process that is a nil *childProcess
			}
			return p, nil
		},
		now:     history.Now,
		history: filepath.Join(s.Dir, historyFile),
		again:   fmt.Sprintf("make chaos ENGINE=%s SEED=%d", s.Engine, s.Seed),
	}
}

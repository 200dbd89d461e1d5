package verdict

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/integration/internal/child"
)

// tryVariable tells a binary that is started again which try this is.
const tryVariable = "HOLDFAST_VERDICT_TRY"

// Main runs the tests of a binary and, if none has failed, those again that were inconclusive. run is m.Run with what belongs
// around it, such as stopping servers: each try is a process of its own. Main returns the exit code. Call it from TestMain.
func Main(run func() int) int {
	state.inMain = true
	state.try, _ = strconv.Atoi(os.Getenv(tryVariable))
	state.try = max(state.try, 1)
	code := run()
	if code != 0 || len(state.inconclusive) == 0 {
		return code
	}
	var names []string
	for name, reason := range state.inconclusive {
		names = append(names, name)
		fmt.Printf("verdict: inconclusive at try %d of %d: %s: %s\n", state.try, Tries, name, reason)
	}
	slices.Sort(names)
	again := exec.Command(os.Args[0], arguments(os.Args[1:], pattern(names))...)
	again.Env = append(os.Environ(), fmt.Sprintf("%s=%d", tryVariable, state.try+1))
	again.Stdout, again.Stderr = os.Stdout, os.Stderr
	again.SysProcAttr = child.Attr()
	runtime.LockOSThread() // the thread whose end would end the child
	if err := again.Run(); err != nil {
		fmt.Printf("verdict: try %d: %v\n", state.try+1, err)
		return 1
	}
	return 0
}

// arguments returns the arguments of a test binary that runs only the tests of pattern. go test itself reads what the first
// process logs of its inputs.
func arguments(args []string, pattern string) []string {
	args = slices.DeleteFunc(slices.Clone(args), func(arg string) bool {
		name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-"), "=")
		return name == "test.run" || name == "test.testlogfile"
	})
	return append([]string{"-test.run=" + pattern}, args...)
}

// pattern matches exactly the tests with these names.
func pattern(names []string) string {
	var patterns []string
	for _, name := range names {
		elements := strings.Split(name, "/")
		for i, element := range elements {
			elements[i] = "^" + regexp.QuoteMeta(element) + "$"
		}
		patterns = append(patterns, strings.Join(elements, "/"))
	}
	return strings.Join(patterns, "|")
}

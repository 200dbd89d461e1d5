package report

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// figures are the circumstances of the run, the pictures, and the tables of
// all measurements.
func (r *Report) figures() string {
	var b strings.Builder
	b.WriteString(r.circumstances())
	fmt.Fprintf(&b, `
![Bar chart: what one operation takes with holdfast and with others, each with its 95%% interval; the figures are below](%s)

![Bar chart: what one hand-off takes by the number of waiters, with holdfast and with others; the figures are below](%s)
`, path.Base(peersFile), path.Base(waitersFile))
	b.WriteString("\n| where | what | holdfast | other | ratio [95%] (least to greatest pair) | over |\n|---|---|---|---|---|---|\n")
	for _, row := range slices.Concat(r.contests(alone), r.contests(waited), r.contests(shared), r.contests(elected)) {
		c := row.Contest
		fmt.Fprintf(&b, "| %s | %s | %s | %s, %s | %s%s | %s |\n", c.Where, c.What, brief(c.PerOp(c.Ours).Median),
			c.Other.Name, brief(c.PerOp(c.Other).Median), row.ratio(), row.spread(), row.Over)
	}
	b.WriteString("\nWhat is counted: requests, events, memory.\n")
	b.WriteString("\n| what | median [95%] (least to greatest) | bar | over |\n|---|---|---|---|\n")
	for _, row := range r.Rows {
		if row.Contest == nil {
			fmt.Fprintf(&b, "| %s, %s | %s%s | %s | %s |\n", row.Name, row.Measured, row.median(), row.spread(), row.Bar, row.Over)
		}
	}
	return b.String()
}

// circumstances are the date, the machine and what ran on it.
func (r *Report) circumstances() string {
	return fmt.Sprintf("%s.\nClients, servers and proxies share the machine, whose load average was %s before the run.\n",
		r.Setting(), strings.Fields(r.Machine.LoadBefore + " unknown")[0])
}

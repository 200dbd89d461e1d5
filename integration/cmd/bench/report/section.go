package report

import (
	"fmt"
	"strings"
)

// section is the README's account of the run.
func (r *Report) section() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s.\nClients, servers and proxies share the machine, whose load average was %s before the run.\n",
		r.Setting(), strings.Fields(r.Machine.LoadBefore + " unknown")[0])
	fmt.Fprintf(&b, "\n![Bar chart: what one operation takes with holdfast and with others, each with its 95%% interval; the figures are in the first table below](%s)\n", peersFile)
	fmt.Fprintf(&b, "\n![Plot: what one hand-off takes against the number of waiters, with holdfast and with go-zookeeper's Lock; the figures are in the first table below](%s)\n", waitersFile)

	b.WriteString("\n<details><summary>The figures, with how far they are apart and what they rest on</summary>\n")
	b.WriteString("\n| where | what | holdfast | other | ratio [95%] (least to greatest pair) | over |\n|---|---|---|---|---|---|\n")
	for _, row := range append(r.contests(false), r.contests(true)...) {
		c := row.Contest
		fmt.Fprintf(&b, "| %s | %s | %s | %s, %s | %s%s | %s |\n", c.Where, c.What, brief(c.PerOp(c.Ours).Median),
			c.Other.Name, brief(c.PerOp(c.Other).Median), row.ratio(), row.spread(), row.Over)
	}

	b.WriteString("\n</details>\n\n<details><summary>What is counted: requests, events, memory</summary>\n")
	b.WriteString("\n| what | median [95%] (least to greatest) | bar | over |\n|---|---|---|---|\n")
	for _, row := range r.Rows {
		if row.Contest == nil {
			fmt.Fprintf(&b, "| %s, %s | %s%s | %s | %s |\n", row.Name, row.Measured, row.median(), row.spread(), row.Bar, row.Over)
		}
	}
	b.WriteString("\n</details>\n")
	return b.String()
}

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/integration/cmd/bench/report"
)

// electionSession is the session, or the lease, of all candidates that are killed. The server looks every half second
// which sessions have ended, so it is a twelfth of the session late at most.
const electionSession = 6 * time.Second

// heatSize is how many elections one process leads, and loses when it is killed.
const heatSize = 6

// runner is a library whose leaders are killed: in turns, one of two processes leads and the other one waits.
type runner struct {
	name   string
	start  func() (*peer, error)
	key    string
	leads  *peer
	waits  *peer
	last   []time.Duration   // how long each election had no leader
	rounds [][]time.Duration // the same, of all kills that count
}

// failover measures how long after the SIGKILL of a leader another process leads, with all libraries at the same time: while
// they wait for a session's end they need no processor. The bar is T, 10% more, and a round trip, which is not counted.
func failover(ctx context.Context, s *servers, emit func(report.Row)) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	runners, err := s.runners(ctx)
	if err != nil {
		return err
	}
	defer func() {
		for _, r := range runners {
			r.close()
		}
	}()
	if err := each(runners, func(r *runner) error { return r.begin(ctx) }); err != nil {
		return err
	}
	for wanted, spoilt := s.times(6, 1), 0; len(runners[0].rounds) < wanted; {
		if err := each(runners, func(r *runner) error { return r.prepare(ctx) }); err != nil {
			return err
		}
		// Those on DynamoDB have seen two heartbeats by then, and it is any moment between two of them, in each library.
		if err := pause(ctx, electionSession/2+rand.N(electionSession/3)); err != nil {
			return err
		}
		if err := each(runners, func(r *runner) error { return r.kill(ctx) }); err != nil {
			return err
		}
		if early := beforehand(runners); early != nil {
			if spoilt++; spoilt > wanted {
				return fmt.Errorf("%q lost elections without a kill, %d times: the machine is too busy", early, spoilt)
			}
			continue
		}
		for _, r := range runners {
			r.rounds = append(r.rounds, r.last)
		}
	}
	onZooKeeper, dynamo := runners[0], runners[1]
	emit(onZooKeeper.judge("ZooKeeper", "session"))
	emit(dynamo.judge("DynamoDB", fmt.Sprintf("lease, polled every %v,", electionPoll)))
	for _, other := range runners[2:] {
		emit(onZooKeeper.against(other))
	}
	return nil
}

// runners are holdfast on ZooKeeper and on DynamoDB, and the others.
func (s *servers) runners(ctx context.Context) ([]*runner, error) {
	z, err := s.zooKeeper(ctx)
	if err != nil {
		return nil, err
	}
	d, err := s.dynamoDB(ctx)
	if err != nil {
		return nil, err
	}
	e, err := s.etcdServer(ctx)
	if err != nil {
		return nil, err
	}
	classpath, err := s.program(ctx, "Curator")
	if err != nil {
		return nil, err
	}
	python, err := s.program(ctx, "kazoo")
	if err != nil {
		return nil, err
	}
	bench, err := os.Executable()
	if err != nil {
		return nil, err
	}
	session := electionSession.String()
	zk := []string{z.server.Addr(), strconv.FormatInt(electionSession.Milliseconds(), 10), "0"}
	name := s.name("failover")
	run := func(name, key, file, source string, args func(path string) []string) *runner {
		return &runner{name: name, key: key, start: func() (*peer, error) {
			return startPeer(file, source, func(path string) ([]string, error) { return args(path), nil })
		}}
	}
	return []*runner{
		run(onZK.name, name, "ours", "", func(string) []string { return []string{bench, candidateCommand, "zookeeper", zk[0], session} }),
		run(onDynamo.name, name, "ours", "", func(string) []string {
			return append(d.target.Env(), bench, candidateCommand, "dynamodb", d.table, session)
		}),
		run(latch.name, peerQueue(name+"-latch"), latchFile, latchSource, func(path string) []string { return append(java(classpath, path), zk...) }),
		run(kazooElection.name, peerQueue(name+"-kazoo"), kazooElectionFile, kazooElectionSource, func(path string) []string {
			return append([]string{python, path}, zk...)
		}),
		run(etcdElection.name, name, "etcd", "", func(string) []string { return e.contend(electionSession) }),
	}, nil
}

// each calls f for all at the same time.
func each(runners []*runner, f func(*runner) error) error {
	failed := make([]error, len(runners))
	var all sync.WaitGroup
	for i, r := range runners {
		all.Go(func() {
			if err := f(r); err != nil {
				failed[i] = fmt.Errorf("%s: %w", r.name, err)
			}
		})
	}
	all.Wait()
	return errors.Join(failed...)
}

// begin starts the first leader.
func (r *runner) begin(ctx context.Context) error {
	if err := r.prepare(ctx); err != nil {
		return err
	}
	r.leads, r.waits = r.waits, nil
	_, err := r.leads.askAll(ctx, "lead", r.key, heatSize, heatSize)
	return err
}

// prepare starts a process that waits.
func (r *runner) prepare(ctx context.Context) (err error) {
	if r.waits, err = r.start(); err != nil {
		return err
	}
	_, err = r.waits.ask(ctx, "stand", r.key, heatSize)
	return err
}

// kill ends the process that leads, and waits until the other one does.
func (r *runner) kill(ctx context.Context) error {
	if err := r.leads.process.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	took, err := r.waits.askAll(ctx, "lead", r.key, heatSize, heatSize)
	if err != nil {
		return err
	}
	r.last = took
	r.leads.close()
	r.leads, r.waits = r.waits, nil
	return nil
}

// beforehand returns the names of those of which a leader lost its term before the kill. That happens on a machine so busy that
// it misses heartbeats for a whole session; such a round counts for nobody.
func beforehand(runners []*runner) (names []string) {
	for _, r := range runners {
		if slices.Min(r.last) == 0 {
			names = append(names, r.name)
		}
	}
	return names
}

func (r *runner) close() {
	for _, p := range []*peer{r.leads, r.waits} {
		if p != nil {
			p.close()
		}
	}
}

// judge compares the longest time after each kill with the session.
func (r *runner) judge(where, session string) report.Row {
	var all, longest []float64
	for _, took := range r.rounds {
		longest = append(longest, float64(slices.Max(took))/float64(electionSession))
		for _, d := range took {
			all = append(all, float64(d))
		}
	}
	median := time.Duration(report.MedianInterval(all).Median)
	return report.Judge(where+", from the leader's SIGKILL until the next leads, at most",
		fmt.Sprintf("of a %s of %v; median %v", session, electionSession, median.Round(10*time.Millisecond)),
		fmt.Sprintf("the longest of %d elections, %d kills", heatSize, len(r.rounds)), report.AtMost(1.10), longest)
}

// against compares the same kills of two libraries. Who sends more heartbeats has a session that ends later: see docs/operations.md, Speed.
func (r *runner) against(other *runner) report.Row {
	where := standing.name
	if other.name == etcdElection.name {
		where = withEtcd.name
	}
	return report.Compare(report.Contest{
		Where: where, What: fmt.Sprintf("from SIGKILL until the next leads, session of %v", electionSession),
		Election: true, Op: "fail-over", Ops: heatSize, Ours: r.side(), Other: other.side(),
	}, report.AtMost(1.15))
}

func (r *runner) side() report.Side {
	side := report.Side{Name: r.name}
	for _, took := range r.rounds {
		var sum time.Duration
		for _, d := range took {
			sum += d
		}
		side.Blocks = append(side.Blocks, sum)
	}
	return side
}

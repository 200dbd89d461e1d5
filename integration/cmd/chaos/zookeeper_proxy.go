package main

import (
	"slices"

	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/nemesis"
)

// proxyWire is a wire on this machine. It has none of the troubles of a simulated server.
type proxyWire struct {
	troubles[linkTrouble]
	proxy *faultproxy.Proxy
}

func newProxyWire(server string) (*proxyWire, error) {
	proxy, err := faultproxy.StartZooKeeper(server)
	w := &proxyWire{proxy: proxy}
	w.apply = w.set
	return w, err
}

// set lets a trouble begin beside the others, or the others begin again after one has ended.
func (w *proxyWire) set(all []*linkTrouble, begun *linkTrouble) (err error) {
	if begun != nil {
		all = []*linkTrouble{begun}
	} else {
		err = w.proxy.Heal()
	}
	for _, t := range slices.Backward(all) {
		var dir faultproxy.Direction
		if t.toServer {
			dir |= faultproxy.ToServer
		}
		if t.toClient {
			dir |= faultproxy.ToClient
		}
		switch {
		case t.refused:
			w.proxy.Cut()
		case t.silent:
			w.proxy.HalfOpen()
			w.proxy.Drop()
		case t.loses:
			w.proxy.BlackHole(dir)
		default:
			w.proxy.Stall(dir)
		}
	}
	return err
}

func (w *proxyWire) used() bool { return w.proxy.Conns() > 0 }

func (w *proxyWire) lose(fault nemesis.Kind, op faultproxy.Op, _ uint32) (disarm func()) {
	if fault == nemesis.LostReply {
		w.proxy.LoseReply(op, "")
	} else {
		w.proxy.LoseRequest(op, "")
	}
	return w.proxy.Disarm
}

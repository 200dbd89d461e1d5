package driver

// A Granted ties a holdfast.Lock to its hold, for [HoldOf]. Package holdfast embeds it.
type Granted struct {
	host Host
	hold Hold
}

// NewGranted returns the tie for a hold that the driver of host has granted.
func NewGranted(host Host, hold Hold) Granted { return Granted{host, hold} }

func (g *Granted) of(host Host) Hold {
	if g.host != host {
		return nil
	}
	return g.hold
}

// HoldOf returns the engine's side of a *holdfast.Lock, which is not nil; nil for the lock of another client. It is for engines that
// offer more than the contract.
func HoldOf(host Host, lock interface{ of(host Host) Hold }) Hold { return lock.of(host) }

// Package zkfake is an ensemble of ZooKeeper servers inside the process. It speaks ZooKeeper's wire protocol with real clients and
// runs on the time of the process, which is virtual in a [testing/synctest] bubble.
//
// An [Ensemble] has one or more members. The first leads: it orders all writes in one log, and ends sessions of which it has not
// heard. The others follow, a little behind: they answer reads themselves, pass writes and syncs on, and report the sessions that
// they have heard of when the leader pings them. A [Link] is the network of one client. Members can be parted from their leader
// ([Ensemble.Part]), and links cut, healed and broken.
//
// What it has: sessions that are resumed, moved and expire by ticks; ephemeral, sequential and container znodes; all requests that
// zklock and go-zookeeper make, transactions among them; watches, and those that are set again on a new connection; zxids and
// Stats. What it does not have yet: elections of a leader, and a leader that has lost its quorum; access control; bounds of sizes;
// time-to-live znodes; observers; a member that loses its data.
//
// It follows the source of ZooKeeper 3.8: names in comments are classes and methods there.
package zkfake

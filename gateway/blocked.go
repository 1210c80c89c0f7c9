// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"

	"github.com/hookgate/hookgate/internal/limits"
	"github.com/hookgate/hookgate/internal/subject"
)

// blocked answers that a chain with onPartialCoverage: Block lets the Machines of a request be as they are. Cluster API
// writes the message to its log alone, so it is kept with the holds, and reported for an event.
func (d *Dispatcher) blocked(r Request, t target, message string) proto.Message {
	d.config.Observer.Block(r.Hook, t.chain.Name, r.Message, message)
	if d.config.Blocked != nil {
		apiVersion, kind, namespace, name := subject.Owner(r.Message)
		if name != "" && len(namespace)+len(name) <= limits.NameBytes { // of an object that may exist
			owner := corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name}
			d.config.Blocked(owner, t.chain.Name, message)
		}
	}
	return newFailure(r.Hook, message)
}

// unblocked notes that a chain does not block the update of a request, or not any more.
func (d *Dispatcher) unblocked(r Request, t target) {
	if t.chain.Block {
		d.config.Observer.Unblock(r.Hook, t.chain.Name, r.Message)
	}
}

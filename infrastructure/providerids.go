// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/infrastructure/internal/clusterapi"
	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
)

// providerIDIndex is the name of the indexes of objects by their provider IDs.
const providerIDIndex = "providerID"

// ownerKey identifies an object that has a provider ID.
type ownerKey struct {
	kind string
	name types.NamespacedName
}

// String returns the key for a text.
func (k ownerKey) String() string { return k.kind + " " + k.name.String() }

// providerIDs knows which object each provider ID belongs to: those that are stored, from the cache, and those that are
// about to be, which two objects may be at the same time. It is safe for concurrent use.
type providerIDs struct {
	reader client.Reader // the cache, with the index

	mu      sync.Mutex
	claimed map[string]ownerKey
	owned   map[ownerKey]map[string]bool
}

func newProviderIDs(reader client.Reader) *providerIDs {
	return &providerIDs{reader: reader, claimed: map[string]ownerKey{}, owned: map[ownerKey]map[string]bool{}}
}

// claim claims a provider ID for an object. If another object has it already, it returns the text of its key instead.
func (p *providerIDs) claim(ctx context.Context, owner ownerKey, id string) (string, error) {
	stored := &infrav1.HookgateMachineList{}
	if err := p.reader.List(ctx, stored, client.MatchingFields{providerIDIndex: id}); err != nil {
		return "", fmt.Errorf("list HookgateMachines: %w", err)
	}
	for i := range stored.Items {
		other := ownerKey{infrav1.HookgateMachineKind, client.ObjectKeyFromObject(&stored.Items[i])}
		if other != owner && (owner.kind != infrav1.HookgateMachinePoolKind || !belongs(&stored.Items[i], owner.name)) {
			return other.String(), nil
		}
	}
	pools := &infrav1.HookgateMachinePoolList{}
	if err := p.reader.List(ctx, pools, client.MatchingFields{providerIDIndex: id}); err != nil {
		return "", fmt.Errorf("list HookgateMachinePools: %w", err)
	}
	for i := range pools.Items {
		if other := (ownerKey{infrav1.HookgateMachinePoolKind, client.ObjectKeyFromObject(&pools.Items[i])}); other != owner {
			return other.String(), nil
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if other, ok := p.claimed[id]; ok && other != owner {
		return other.String(), nil
	}
	p.claimed[id] = owner
	if p.owned[owner] == nil {
		p.owned[owner] = map[string]bool{}
	}
	p.owned[owner][id] = true
	return "", nil
}

// belongs reports whether a HookgateMachine is one of a pool.
func belongs(m *infrav1.HookgateMachine, pool types.NamespacedName) bool {
	return m.Namespace == pool.Namespace &&
		clusterapi.OwnerOf(m, infrav1.GroupVersion.Group, infrav1.HookgateMachinePoolKind) == pool.Name
}

// forget gives up the claims of an object that is gone.
func (p *providerIDs) forget(owner ownerKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id := range p.owned[owner] {
		delete(p.claimed, id)
	}
	delete(p.owned, owner)
}

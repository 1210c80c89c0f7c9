// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package via

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hookgate/hookgate/internal/base/limits"
)

// PathMember is the member of a handler in an answer to Discovery that has its Path. A gateway adds it for askers that
// are gateways, too.
const PathMember = "hookgateVia"

// Path names the gateways that a call to a handler passes after the one that registers it: their ids, separated by
// commas, from the nearest to the one that calls the extension. It is empty for a handler that the extension itself
// offers.
type Path string

// Through returns the path of the handler for those who call it by way of the gateway that registers it.
func (p Path) Through(gateway string) Path {
	if p == "" {
		return Path(gateway)
	}
	return Path(gateway) + "," + p
}

// Check returns an error unless p is a list of at most limits.GatewayHops ids.
func (p Path) Check() error {
	if p == "" {
		return nil
	}
	if len(p) > limits.GatewayHops*(maxID+len(",")) {
		return fmt.Errorf("has more than %d gateways", limits.GatewayHops)
	}
	ids := strings.Split(string(p), ",")
	if len(ids) > limits.GatewayHops {
		return fmt.Errorf("has more than %d gateways", limits.GatewayHops)
	}
	for _, id := range ids {
		if !valid(id, maxID) {
			return errors.New("want ids of gateways, separated by commas")
		}
	}
	return nil
}

// Refuses reports whether a call that has come by w could not reach the handler: it would come back to a gateway that
// it has passed, or pass more than limits.GatewayHops. Both must be valid.
func (p Path) Refuses(w Way) bool {
	if p == "" || w == "" {
		return false
	}
	ids, entries := strings.Split(string(p), ","), strings.Split(string(w), ",")
	return len(ids)+len(entries) > limits.GatewayHops || slices.ContainsFunc(entries, func(entry string) bool {
		id, _, _ := strings.Cut(strings.TrimSpace(entry), "/")
		return slices.Contains(ids, id)
	})
}

// CheckID returns an error unless id may be the id of a gateway.
func CheckID(id string) error {
	if !valid(id, maxID) {
		return fmt.Errorf("want 1 to %d letters, digits, and characters '-', '.' and '_'", maxID)
	}
	return nil
}

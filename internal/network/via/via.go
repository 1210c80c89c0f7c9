// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package via records the gateways that a call has passed, so that a call that comes back to one of them is cut there.
//
// A way is the value of one header or metadata key: one entry for each gateway, separated by commas, oldest first. An
// entry is the gateway's id and the registered name of the handler that it called, separated by a slash. Discovery has
// no handler. Functions are pure, but for NewGateway.
package via

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
)

// Header carries the Way of a request.
const Header = "Hookgate-Via"

// maxID and maxHandler bound the parts of an entry. A handler's registered name has two labels or subdomains.
const maxID, maxHandler = 64, 400

// NewGateway returns a new id for a gateway, which no other gateway has.
func NewGateway() string { return rand.Text() }

// GatewayOf returns the id of all gateways that have the given parts in common, such as the replicas of a deployment.
func GatewayOf(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// Way is the way of a request. The zero value is the way of a request that has passed no gateway.
type Way string

// Of returns the way in the values of a request's header.
func Of(values []string) Way { return Way(strings.Join(values, ",")) }

// Next returns w, continued through a gateway that calls a handler. The handler is empty for Discovery.
func (w Way) Next(gateway, handler string) Way {
	if w == "" {
		return Way(gateway + "/" + handler)
	}
	return w + Way(", "+gateway+"/"+handler)
}

// Check returns an error of kind Loop if the way has led through the gateway before, or through more gateways than
// limits.GatewayHops, and of kind InvalidRequest if it cannot be read. The text of a Loop names the handlers of the
// loop, and is the same for the same way.
func (w Way) Check(gateway string) error {
	if w == "" {
		return nil
	}
	if len(w) > limits.GatewayHops*(maxID+maxHandler+len("/, ")) {
		return hook.Errorf(hook.InvalidRequest, "header %s is too long", Header)
	}
	entries := strings.Split(string(w), ",")
	var handlers []string // from the first occurrence of gateway, or from the start
	found := false
	for _, entry := range entries {
		id, handler, ok := strings.Cut(strings.TrimSpace(entry), "/")
		if !ok || !valid(id, maxID) || handler != "" && !valid(handler, maxHandler) {
			return hook.Errorf(hook.InvalidRequest,
				"header %s is not a list of <gateway>/<handler>: leave the header out, or pass on the received header "+
					"unchanged", Header)
		}
		if id == gateway && !found {
			found, handlers = true, nil
		}
		if handler != "" {
			handlers = append(handlers, strconv.Quote(handler))
		}
	}
	names := text.Join(handlers, ", ", limits.GatewayHops)
	switch {
	case found && len(handlers) == 0:
		return hook.Errorf(hook.Loop, "the request has come back to the gateway that sent it: "+
			"the ExtensionConfig must have the address of the extension itself")
	case found:
		return hook.Errorf(hook.Loop, "the call has come back to this gateway by way of %s: "+
			"remove the ExtensionConfig that leads back", names)
	case len(entries) > limits.GatewayHops:
		return hook.Errorf(hook.Loop, "the call has passed more than %d gateways, by way of %s: "+
			"call the extension from a gateway nearer to it", limits.GatewayHops, names)
	}
	return nil
}

// valid reports whether s has up to n characters of names, and at least one.
func valid(s string, n int) bool {
	if s == "" || len(s) > n {
		return false
	}
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '.', c == '_':
		default:
			return false
		}
	}
	return true
}

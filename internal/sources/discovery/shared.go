// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"github.com/hookgate/hookgate/internal/calls/circuit"
	"github.com/hookgate/hookgate/internal/contract/convert"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
)

// Shared is what the source of a cluster shares with the gateway of its process, and with other sources. A source whose
// Shared is empty works on its own.
type Shared struct {
	// Discoverer calls extensions. Nil means one of the source, which connects to the addresses of their clientConfigs.
	Discoverer Discoverer
	// Observer may be nil.
	Observer Observer
	// Backoff is for extensions that do not answer. Zero means DefaultBackoff.
	Backoff Backoff
	// References, which may be nil, receives the CustomResourceDefinitions.
	References *convert.References
	// Losses records the losses of conversions in calls of this process. It may be nil.
	Losses *convert.Losses
	// Circuits has the circuits of this process, which the condition Available shows. It may be nil.
	Circuits Circuits
	// Own holds the addresses of this gateway. ExtensionConfigs with one of them are refused.
	Own extensionconfig.Addresses
}

// Circuits knows the circuits of extensions in this process. It must be safe for concurrent use.
type Circuits interface {
	// Circuit returns the status of the circuit of an extension, which is closed if the extension was never called. If
	// that is closed and the one of a handler is not, it returns the handler's, and the handler's name.
	Circuit(extensionConfig string) (s circuit.Status, handler string)
	// Notify sets the function that is called when a circuit opens or closes. It neither blocks nor calls back.
	Notify(changed func(extensionConfig string))
}

// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extensionconfig

import (
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/kinds"
	"github.com/hookgate/hookgate/registry"
)

// Kind is the kind of the objects.
const Kind = "ExtensionConfig"

// Description describes the kind.
var Description = kinds.Kind{Name: Kind, Closes: closes}

// closes makes calls wait for the handlers that an ExtensionConfig may have.
func closes(s kinds.Spec, c *kinds.Closed) {
	c.Extension = &registry.Undiscovered{
		Name: c.Name, NamespaceSelector: s.Namespaces(), Mistake: c.Mistake, Default: hook.Fail,
	}
	if kinds.Unusable(c.Name) {
		c.Extension.Name, c.Extension.Unreadable = "", c.String()
	}
}

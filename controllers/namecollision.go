// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/registry"
)

// The condition NameCollision says that an ExtensionConfig is not called, because another object has its name.
const (
	collisionCondition = "NameCollision"
	collisionReason    = v1alpha1.NameCollisionReason
)

// standing is what the other objects of a registry mean for an ExtensionConfig: the messages of the conditions
// SeveralOffered and NameCollision.
type standing struct{ several, collision string }

// standings returns the standing of each ExtensionConfig that has one.
func standings(s *registry.Snapshot, hooks *catalog.Catalog) map[string]standing {
	all := map[string]standing{}
	for name, message := range severalOffered(s, hooks) {
		all[name] = standing{several: message}
	}
	for _, name := range s.Shadowed() {
		of := all[name]
		of.collision = "The extension is not called: its name is also " + s.TakenByLocal(name) + ": rename one of the two"
		all[name] = of
	}
	return all
}

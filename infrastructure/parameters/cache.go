// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package parameters

import "k8s.io/utils/lru"

// cached is how many schemas a Cache keeps: those of some twenty InfrastructureClasses, each of which takes less than
// 1 MiB.
const cached = 64

// A Cache compiles schemas, and keeps those that were used last: to compile one takes some milliseconds. It is safe for
// concurrent use.
type Cache struct{ schemas *lru.Cache }

// NewCache returns an empty Cache.
func NewCache() *Cache { return &Cache{schemas: lru.New(cached)} }

// A compilation is the result of Compile.
type compilation struct {
	schema *Schema
	err    error
}

// Compile is Compile for a text that may have been compiled before.
func (c *Cache) Compile(text []byte) (*Schema, error) {
	key := string(text)
	if known, ok := c.schemas.Get(key); ok {
		return known.(compilation).schema, known.(compilation).err
	}
	schema, err := Compile(text)
	c.schemas.Add(key, compilation{schema, err})
	return schema, err
}

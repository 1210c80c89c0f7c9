// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"maps"
	"slices"

	"github.com/hookgate/hookgate/internal/kinds/allkinds"
)

// Valid is an object as it was last valid.
type Valid struct {
	Kind string
	Name string
	// File is the manifest that defines it.
	File string
	// Content is the object as JSON.
	Content []byte
}

// Valid returns the objects in effect, of the kinds that decide what calls get, by kind and name. The Decoder must keep
// their content.
func (v *Inventory) Valid() []Valid {
	var all []Valid
	for _, k := range allkinds.Table() {
		for _, name := range slices.Sorted(maps.Keys(v.objects[k.Name])) {
			if o := v.objects[k.Name][name]; o.content != nil {
				all = append(all, Valid{k.Name, name, o.File, o.content})
			}
		}
	}
	return all
}

// Restore returns the inventory of objects as they were last valid. One that is not valid now is left out.
func Restore(objects []Valid, words *Decoder) *Inventory {
	manifests := make([]File, 0, len(objects))
	for i := range objects {
		manifests = append(manifests, File{file: objects[i].File, content: objects[i].Content})
	}
	restored, _ := (&Inventory{}).Next(manifests, words)
	restored.read, restored.Closed = nil, nil
	return restored
}

// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
)

// scrub cleans the texts for people in an answer: its message, and those of its conditions.
func (s *scrubber) scrub(m protoreflect.Message) {
	fields := m.Descriptor().Fields()
	if f := fields.ByName("message"); f != nil && m.Has(f) {
		m.Set(f, protoreflect.ValueOfString(s.clean(m.Get(f).String())))
	}
	f := fields.ByName("conditions")
	if f == nil {
		return
	}
	list := m.Get(f).List()
	for i := range min(list.Len(), limits.InstanceConditions) {
		if c, ok := list.Get(i).Message().Interface().(*hooksv1alpha1.Condition); ok {
			c.Message = s.clean(c.GetMessage())
		}
	}
}

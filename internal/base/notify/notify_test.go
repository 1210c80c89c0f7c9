// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"slices"
	"testing"
)

func ready(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestSignalCoalesces(t *testing.T) {
	s := NewSignal()
	if ready(s.C()) {
		t.Fatal("a new Signal has a notification")
	}
	s.Notify()
	s.Notify()
	if !ready(s.C()) {
		t.Fatal("Notify made nothing to receive")
	}
	if ready(s.C()) {
		t.Fatal("two notifications were received as two")
	}
	s.Notify()
	if !ready(s.C()) {
		t.Fatal("Notify after a receive made nothing to receive")
	}
}

func TestSetReturnsEachKeyOnceInOrder(t *testing.T) {
	s := NewSet[string]()
	for _, key := range []string{"b", "a", "b"} {
		s.Add(key)
	}
	if !ready(s.C()) || ready(s.C()) {
		t.Fatal("three additions are not one notification")
	}
	if got := s.Take(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("Take = %q, want a and b", got)
	}
	if got := s.Take(); len(got) != 0 {
		t.Errorf("second Take = %q, want none", got)
	}
	s.Add("c")
	if got := s.Take(); !ready(s.C()) || !slices.Equal(got, []string{"c"}) {
		t.Errorf("Take after another Add = %q, want c and a notification", got)
	}
}

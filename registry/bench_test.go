// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"fmt"
	"testing"
)

// large returns a registry of 2,000 registrations with 10 handlers each, of all kinds of hooks.
func large(tb testing.TB) *Registry {
	tb.Helper()
	r := New()
	for _, err := range r.ApplyAll(largeRegistrations()) {
		if err != nil {
			tb.Fatal(err)
		}
	}
	return r
}

func largeRegistrations() []Registration {
	regs := make([]Registration, 2000)
	for i := range regs {
		regs[i] = largeRegistration(i)
	}
	return regs
}

func largeRegistration(i int) Registration {
	reg := registration(fmt.Sprintf("config-%d", i))
	for j := range 10 {
		h := registration("x", fmt.Sprintf("handler-%d", j)).Handlers[0]
		h.Hook = gvh([]string{"BeforeClusterCreate", "BeforeClusterDelete", "GeneratePatches"}[j%3])
		reg.Handlers = append(reg.Handlers, h)
	}
	return reg
}

func TestLookupsDoNotAllocate(t *testing.T) {
	r := New()
	mustApply(t, r, registration("acme", "v", "a--b"))
	gh, label := gvh("BeforeClusterCreate").GroupHook(), Label("a--b.acme")
	allocs := testing.AllocsPerRun(100, func() {
		s := r.Snapshot()
		s.Handlers(gh)
		s.Handler("v.acme")
		s.Handler("v--acme")
		s.Handler(label)
	})
	if allocs != 0 {
		t.Errorf("lookups allocate %v times", allocs)
	}
}

func BenchmarkHandler(b *testing.B) {
	r := large(b)
	for _, name := range []string{"handler-3.config-1234", "handler-3--config-1234"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := r.Snapshot().Handler(name); !ok {
					b.Fatal("not found")
				}
			}
		})
	}
}

func BenchmarkHandlers(b *testing.B) {
	r := large(b)
	gh := gvh("BeforeClusterDelete").GroupHook()
	b.ReportAllocs()
	for b.Loop() {
		if len(r.Snapshot().Handlers(gh)) != 6000 {
			b.Fatal("not found")
		}
	}
}

// BenchmarkApply replaces one registration of 10 handlers among 2,000.
func BenchmarkApply(b *testing.B) {
	r := large(b)
	reg := largeRegistration(1234)
	b.ReportAllocs()
	for b.Loop() {
		if err := r.Apply(reg); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkApplyAll fills a registry with 2,000 registrations of 10 handlers.
func BenchmarkApplyAll(b *testing.B) {
	regs := largeRegistrations()
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range New().ApplyAll(regs) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package circuit

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookgate/hookgate/hook"
)

var errRefused = hook.Errorf(hook.Unreachable, "connection refused")

// fixture is a circuit and its settings.
type fixture struct {
	*testing.T
	Circuit
	settings Settings
}

func newFixture(t *testing.T) *fixture { return &fixture{T: t, settings: Default()} }

// call makes one call, and reports whether it passed and whether it changed the circuit.
func (f *fixture) call(o Outcome) (passed, changed bool) {
	p, _, ok := f.Enter(&f.settings)
	if !ok {
		return false, false
	}
	var err error
	if o == Failure {
		err = errRefused
	}
	return true, f.Leave(p, &f.settings, o, err)
}

// calls makes calls that must pass without a change.
func (f *fixture) calls(n int, o Outcome) {
	f.Helper()
	for i := range n {
		if passed, changed := f.call(o); !passed || changed {
			f.Fatalf("call %d of %d with outcome %d: passed %t, changed %t", i+1, n, o, passed, changed)
		}
	}
}

func (f *fixture) opens() {
	f.Helper()
	if passed, changed := f.call(Failure); !passed || !changed {
		f.Fatalf("the circuit has not opened: passed %t, changed %t", passed, changed)
	}
}

func (f *fixture) want(s State) {
	f.Helper()
	if got := f.Status().State; got != s {
		f.Fatalf("the circuit is %s, want %s", got, s)
	}
}

// probe enters the circuit with a call that must be a probe.
func (f *fixture) probe() Pass {
	f.Helper()
	p, _, ok := f.Enter(&f.settings)
	if !ok || !p.Probe() {
		f.Fatalf("got %+v, %t, want a probe", p, ok)
	}
	return p
}

func (f *fixture) refuses() {
	f.Helper()
	if passed, _ := f.call(Success); passed {
		f.Fatal("a call passed")
	}
}

// due waits until a probe is due, and no longer.
func (f *fixture) due() (waited time.Duration) {
	f.Helper()
	_, after, ok := f.Enter(&f.settings)
	if ok || after <= 0 {
		f.Fatalf("a call got %t, %s: want a refusal with a time", ok, after)
	}
	time.Sleep(after - 1)
	f.refuses()
	time.Sleep(1 * time.Nanosecond)
	f.want(HalfOpen)
	return after
}

func TestOpensAtTheLimit(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		before func(*fixture) // the next failure opens
	}{
		"Consecutive": {"five in a row", func(f *fixture) { f.calls(4, Failure) }},
		"AfterASuccess": {"a success starts over", func(f *fixture) {
			f.calls(4, Failure)
			f.calls(1, Success)
			f.calls(4, Failure)
		}},
		"UnknownBetween": {"what says nothing changes nothing", func(f *fixture) {
			f.calls(4, Failure)
			f.calls(100, Unknown)
		}},
		"One": {"the least that can be set", func(f *fixture) { f.settings.ConsecutiveFailures = 1 }},
		"Rate": {"16 of 20 are 80 %", func(f *fixture) {
			for range 3 {
				f.calls(1, Success)
				f.calls(4, Failure)
			}
			f.calls(1, Success)
			f.calls(3, Failure)
		}},
		"RateForgets": {"successes of more than 30 s ago do not count", func(f *fixture) {
			f.calls(1000, Success)
			time.Sleep(slots * slotTime)
			for range 3 {
				f.calls(1, Success)
				f.calls(4, Failure)
			}
			f.calls(1, Success)
			f.calls(3, Failure)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				tc.before(f)
				f.want(Closed)
				f.opens()
				f.want(Open)
				f.refuses()
				if s := f.Status(); s.Kind != hook.Unreachable || !s.Since.Equal(time.Now()) || s.Entered[Open] != 1 {
					t.Errorf("%s: got %+v", tc.reason, s)
				}
			})
		})
	}
}

// The window has the calls of the current three seconds and of the 27 before, however long calls have come.
func TestWindow(t *testing.T) {
	var w window
	var times []int // of all calls, in seconds
	now := 0
	call := func() {
		times = append(times, now)
		wantCalls, wantFailed := 0, 0
		for i, at := range times {
			if now/3-at/3 < slots {
				wantCalls, wantFailed = wantCalls+1, wantFailed+(i+1)%2
			}
		}
		calls, failed := w.add(time.Unix(0, 0).Add(time.Duration(now)*time.Second), len(times)%2 == 1)
		if calls != wantCalls || failed != wantFailed {
			t.Errorf("after %d s: %d calls, %d failed, want %d and %d", now, calls, failed, wantCalls, wantFailed)
		}
	}
	for ; now < 100; now++ { // three times around
		call()
	}
	for _, pause := range []int{0, 4, 1, 3, 12, 27, 2, 28, 1, 29, 27, 26, 301, 3} {
		now += pause
		call()
	}
}

func TestStaysClosed(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		calls  func(*fixture)
	}{
		"Successes": {"nothing failed", func(f *fixture) { f.calls(100, Success) }},
		"Unknown":   {"nothing is known", func(f *fixture) { f.calls(100, Unknown) }},
		"BelowRate": {"15 of 20 are less than 80 %", func(f *fixture) {
			for range 20 {
				f.calls(1, Success)
				f.calls(3, Failure)
			}
		}},
		"FewCalls": {"19 calls are too few for a rate", func(f *fixture) {
			f.calls(1, Success)
			f.calls(4, Failure)
			for range 3 {
				f.calls(1, Success)
				f.calls(3, Failure)
			}
			f.calls(1, Success)
			f.calls(1, Failure)
		}},
		"SlowFailures": {"failures leave the window", func(f *fixture) {
			f.settings.ConsecutiveFailures = 10000
			for range 100 {
				f.calls(19, Failure)
				time.Sleep(slots * slotTime)
			}
		}},
		"Disabled": {"the operator wants none", func(f *fixture) {
			f.settings.Disabled = true
			f.calls(1000, Failure)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				tc.calls(f)
				if s := f.Status(); s.State != Closed || !s.Since.IsZero() {
					t.Errorf("%s: got %+v", tc.reason, s)
				}
			})
		})
	}
}

// Probes come at intervals that double up to the limit, give or take a fifth, and a success starts over.
func TestIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		for range 2 {
			f.calls(4, Failure)
			f.opens()
			for _, seconds := range []int{1, 2, 4, 8, 16, 32, 60, 60, 60} {
				want := time.Duration(seconds) * time.Second
				got := f.due()
				if got < want*8/10 || got > want*12/10 || got > time.Minute {
					t.Fatalf("waited %s, want %s give or take a fifth", got, want)
				}
				if passed, changed := f.call(Failure); !passed || changed {
					t.Fatalf("a probe that fails: passed %t, changed %t", passed, changed)
				}
				f.want(Open)
			}
			f.due()
			if passed, changed := f.call(Success); !passed || !changed {
				t.Fatalf("a probe that succeeds: passed %t, changed %t", passed, changed)
			}
			f.want(Closed)
			if s := f.Status(); !s.Since.Equal(time.Now()) {
				t.Errorf("closed since %s, want now", s.Since)
			}
		}
		if s := f.Status(); s.Entered != [...]uint64{Closed: 2, HalfOpen: 20, Open: 20} {
			t.Errorf("entered %v", s.Entered)
		}
	})
}

// One probe passes at a time, and one that says nothing makes way for the next.
func TestOneProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.settings.ConsecutiveFailures = 1
		f.opens()
		f.due()
		probe := f.probe()
		f.refuses()
		f.Leave(probe, &f.settings, Unknown, nil)
		f.want(HalfOpen)
		f.Leave(f.probe(), &f.settings, Success, nil)
		f.want(Closed)
	})
}

// A call that began before the circuit opened or closed does not count after it.
func TestLateOutcomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.settings.ConsecutiveFailures = 1
		late := make([]Pass, 100)
		for i := range late {
			late[i], _, _ = f.Enter(&f.settings)
		}
		f.opens()
		if f.Leave(late[0], &f.settings, Success, nil) {
			t.Error("a late success closed the circuit")
		}
		f.want(Open)
		f.due()
		f.call(Success)
		f.want(Closed)
		for _, p := range late[1:] {
			if f.Leave(p, &f.settings, Failure, errRefused) {
				t.Fatal("a late failure opened the circuit")
			}
		}
		f.want(Closed)
	})
}

// The kind that is reported stays the same until the circuit closes, while the cause is that of the last failure.
func TestCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.settings.ConsecutiveFailures = 1
		f.opens()
		f.due()
		probe, _, _ := f.Enter(&f.settings)
		timeout := hook.Errorf(hook.Timeout, "no answer")
		f.Leave(probe, &f.settings, Failure, timeout)
		if kind, last := f.Cause(); kind != hook.Unreachable || !errors.Is(last, timeout) {
			t.Errorf("got %s, %v", kind, last)
		}
	})
}

// An answer to discovery makes the next call a probe, and the interval after it stays as long as it would have been.
func TestAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.Answered()
		f.want(Closed)
		f.settings.ConsecutiveFailures = 1
		f.opens()
		for range 3 {
			f.Answered()
			f.want(HalfOpen)
			f.call(Failure)
			f.want(Open)
		}
		if waited := f.due(); waited < 6400*time.Millisecond {
			t.Errorf("the fourth interval is %s, want about 8 s", waited)
		}
	})
}

// Settings that disable an open circuit close it at once.
func TestDisablingCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.settings.ConsecutiveFailures = 1
		f.opens()
		f.settings.Disabled = true
		f.calls(10, Failure)
		f.want(Closed)
	})
}

// A probe that was under way when settings closed the circuit does not keep later ones from being made.
func TestDisablingDuringAProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.settings.ConsecutiveFailures = 1
		f.opens()
		f.due()
		probe := f.probe()
		f.settings.Disabled = true
		f.calls(1, Failure)
		f.Leave(probe, &f.settings, Failure, errRefused)
		f.settings.Disabled = false
		f.opens()
		f.due()
		if passed, changed := f.call(Success); !passed || !changed {
			t.Errorf("the next probe: passed %t, changed %t", passed, changed)
		}
		f.want(Closed)
	})
}

// Whatever the order of many calls, never do two probes run at the same time.
func TestConcurrency(t *testing.T) {
	f := newFixture(t)
	f.settings = Settings{ConsecutiveFailures: 3, FailureRatePercent: 50, MinOpen: 1, MaxOpen: 1}
	var wg sync.WaitGroup
	var probes atomic.Int32
	for i := range 8 {
		wg.Go(func() {
			for n := range 5000 {
				p, _, ok := f.Enter(&f.settings)
				if !ok {
					continue
				}
				if p.Probe() {
					if probes.Add(1) != 1 {
						t.Error("two probes at the same time")
					}
					runtime.Gosched()
					probes.Add(-1)
				}
				f.Leave(p, &f.settings, Outcome((n/7+i)%3), errRefused)
			}
		})
	}
	wg.Wait()
	if s := f.Status(); s.Entered[Open] == 0 || s.Entered[Closed] == 0 {
		t.Errorf("the circuit never opened or never closed: %v", s.Entered)
	}
}

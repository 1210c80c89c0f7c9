// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/contract/convert"
	"github.com/hookgate/hookgate/registry"
)

// The handler of a rule that has only a mistaken version is down with the mistake: its calls fail.
func TestClosedRuleIsDown(t *testing.T) {
	r := registry.New()
	closure := registry.Closure{Kind: "HookRule", Name: "size", Mistake: "spec.hold: no such member"}
	closed, ok := closure.Registration("rule", hook.GroupVersionHook{Group: hook.Group, Version: hook.Version, Hook: "BeforeClusterCreate"})
	if !ok {
		t.Fatal("the rule has no registration")
	}
	if err := r.SetLocal("HookRule", []registry.Registration{closed})[0]; err != nil {
		t.Fatal(err)
	}
	closure.Extensions = []string{"size"}
	r.SetClosures("HookRule", []registry.Closure{closure})
	reporter := Reporter{
		Catalog: catalog.New(), Registry: r,
		Observer: NewObserver(NewMetrics(prometheus.NewRegistry(), r, catalog.New(), "test"), noop.NewTracerProvider(), slog.New(slog.DiscardHandler), convert.NewLosses(nil)),
	}
	got := reporter.locals(time.Now(), r.Snapshot(), nil, []status.InProcess{{Name: "size"}})[0].Handler
	want := `HookRule "size" has a mistake; until you correct or delete it, the gateway refuses every call that the object may apply to: spec.hold: no such member`
	if got == nil || got.State != status.Down || got.Error != want {
		t.Errorf("got %+v, want %s with %s", got, status.Down, want)
	}
}
